"""Every command and option that a page tells its reader to type exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from tfdyno.cli.main import tfdyno
from tfdyno.cli.measure.bench_serve import bench_serve

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "reference"),
    *sorted((ROOT / "examples").rglob("README.md")),
]
FENCE = re.compile(r"```(\w*)[^\n]*\n(.*?)```", re.S)
INLINE = re.compile(r"(?<!`)`(tfdyno\s[^`]+)`(?!`)")
TYPED = re.compile(r"(?:^|[\s;&|(])tfdyno (.*)")
ENDS = {"--", ";", "|", "||", "&&", "&", ">"}
"""What follows one of these is not tfdyno's."""


def typed(text: str) -> Iterator[list[str]]:
    """Words behind ``tfdyno`` of every command in a page's blocks and sentences."""
    shell = "\n".join(body for kind, body in FENCE.findall(text) if kind == "bash")
    lines = [
        found[1]
        for line in shell.replace("\\\n", " ").splitlines()
        if (found := TYPED.search(line))
    ]
    inline = [span.removeprefix("tfdyno") for span in INLINE.findall(FENCE.sub("", text))]
    for line in [*lines, *inline]:
        try:
            yield shlex.split(line, comments=True)
        except ValueError:  # an apostrophe, as in a line of output
            yield line.split()


def wrong(words: list[str]) -> list[str]:
    """Give the commands and options among these words that there are not."""
    command: click.Command = tfdyno
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(click.Context(command), rest[0])
        if found is None:
            return [rest[0]]
        command = found
        del rest[0]
    if "--serve" in rest and command.name == "bench":
        command = bench_serve
    known = {"--help", "-h", "--version"}
    for parameter in command.params:
        known |= {*parameter.opts, *parameter.secondary_opts}
    end = next((at for at, word in enumerate(rest) if word in ENDS), len(rest))
    options = [re.split(r"[=,;:.)]", word)[0] for word in rest[:end]]
    return [word for word in options if re.match(r"--?[a-z]", word) and word not in known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_says_to_type_exists(page: Path) -> None:
    found = {" ".join(words): wrong(words) for words in typed(page.read_text(encoding="utf-8"))}
    assert {line: words for line, words in found.items() if words} == {}


def test_the_check_sees_a_wrong_word_wherever_it_stands() -> None:
    page = "```bash\ntfdyno advice a.py\ntfdyno bench a.py \\\n  --rnus 3 -- --own\n```\n"
    page += "`tfdyno models ad x`, `tfdyno bench\n--serve http://h --clients 2 --rusn 2`"
    assert [wrong(words) for words in typed(page)] == [["advice"], ["--rnus"], ["ad"], ["--rusn"]]
