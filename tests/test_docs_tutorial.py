"""The tutorial from data to a service runs as written, from an empty folder to a load test."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.served import QUIET, ROOT, running, serving_folder

PAGE = ROOT / "docs" / "tutorials" / "from-data-to-service.md"
BLOCK = re.compile(
    r"<!-- (?P<mark>file|step|prints)(?:: (?P<name>\S+))? -->\n```\w+\n(?P<body>.*?)```\n", re.S
)
URL = "http://127.0.0.1:8501/v1/models/digits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Commands of the page, the part of it that they stand in, and what it has them print."""

    commands: str
    part: str = ""
    prints: str = ""

    def missing(self, printed: str) -> list[str]:
        """Give the lines of the page that were not printed, up to their first figure or ellipsis.

        A line with ! is left out: it tells of one measurement.
        """
        lines = [line for line in self.prints.splitlines() if not line.startswith("!")]
        words = [" ".join(re.split(r"[\d…]", line)[0].split()) for line in lines]
        text = " ".join(printed.split())
        return [line for line in words if line not in text]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The blocks of the tutorial: files by name, steps in their order."""

    files: dict[str, str]
    steps: tuple[Step, ...]

    def part(self, name: str) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.part == name)


def page() -> Page:
    files: dict[str, str] = {}
    steps: list[Step] = []
    for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        if block["mark"] == "file":
            files[block["name"]] = block["body"]
        elif block["mark"] == "step":
            steps.append(Step(commands=block["body"], part=block["name"] or ""))
        else:
            steps[-1] = replace(steps[-1], prints=block["body"])
    return Page(files=files, steps=tuple(steps))


def run(folder: Path, commands: str) -> str:
    # the names tfdyno and python are those of this environment, whatever is installed
    python = shlex.quote(sys.executable)
    names = f'tfdyno() {{ {python} -m tfdyno "$@"; }}\npython() {{ {python} "$@"; }}'
    done = subprocess.run(
        ["bash", "-ec", f"{names}\n{commands}"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        cwd=folder, timeout=280,
        env={**os.environ, **QUIET, "PYTHONPATH": str(ROOT / "src"), "TFDYNO_STORE": "store"},
    )  # fmt: skip
    # the doctor says 1 where it finds an error, as on a machine whose GPU TensorFlow cannot use
    assert done.returncode in ((0, 1) if "doctor" in commands else (0,)), done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Begin with nothing but the two files that the page has its reader write."""
    empty = tmp_path_factory.mktemp("digits")
    for name, body in page().files.items():
        (empty / name).write_text(body, encoding="utf-8")
    return empty


@pytest.fixture(scope="module")
def printed(folder: Path) -> list[str]:
    """Run each step before the server, in order: what they print."""
    return [run(folder, step.commands) for step in page().part("")]


def test_every_block_of_the_page_is_run_but_those_that_make_environments() -> None:
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"```(?:bash|python)\n.*?```", text, re.S)
    marked = [block for block in BLOCK.findall(text) if block[0] != "prints"]
    unmarked = [block for block in blocks if not any(body in block for *_, body in marked)]
    assert [re.findall(r"make setup|serve --setup", block) for block in unmarked] == [
        ["make setup"],
        ["serve --setup"],
    ]


@pytest.mark.tf
def test_each_step_prints_what_the_page_shows(printed: list[str]) -> None:
    steps = page().part("")
    assert len(printed) == len(steps) > 8
    for step, text in zip(steps, printed, strict=True):
        if "doctor" not in step.commands or not shutil.which("nvidia-smi"):
            assert step.missing(text) == [], step.commands


@pytest.mark.tf
def test_the_kept_model_is_served_asked_and_load_tested(
    request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving_folder()  # skips where there is none, before a minute of steps
    assert any("digits:1" in text for text in request.getfixturevalue("printed"))
    monkeypatch.setenv("TFDYNO_STORE", str(folder / "store"))
    (serve,) = page().part("serve")
    with (
        tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as temporary,
        running(*serve.commands.split()[2:], temporary=Path(temporary)) as server,
    ):
        for step in page().part("ask"):
            text = run(folder, step.commands.replace(URL, server.url))
            assert step.missing(text.replace(server.url, URL)) == [], step.commands
        assert serve.missing(server.first_line.replace(server.url, URL)) == []
