"""The docs cannot go stale: commands have help, generated pages are current, examples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tfdyno.catalog.time_model import time_model
from tfdyno.cli.main import COMMANDS, tfdyno

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")
RUNNABLE = re.compile(
    r"<!-- run(?P<slow>: slow)? -->\n```(?P<kind>bash|python)\n(?P<body>.*?)```", re.S
)
"""A snippet that a test runs stands under ``<!-- run -->`` (or ``<!-- run: slow -->``)."""


def load(name: str) -> click.Command:
    command = tfdyno.get_command(click.Context(tfdyno), name)
    assert command is not None
    return command


def walk(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(path, command)]
    below = [walk(child, f"{path} {name}") for name, child in command.commands.items()]
    return [(path, command), *(pair for pairs in below for pair in pairs)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help(name: str) -> None:
    for path, command in walk(load(name), name):
        assert command.help, path
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{path} {parameter.name}"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_command_says(name: str) -> None:
    first_line = (load(name).help or "").split("\n\n")[0]
    assert " ".join(first_line.split()) == COMMANDS[name].summary


def test_generated_pages_are_current() -> None:
    command = [sys.executable, "scripts/reference.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_the_cost_model_names_every_constant() -> None:
    page = (ROOT / "docs" / "explanation" / "cost-model.md").read_text()
    assert [name for name in time_model().parameters if name not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = LINK.findall(page.read_text())
    assert [t for t in targets if not (page.parent / t).exists()] == []


@pytest.mark.parametrize(
    ("index", "folder"),
    [("decisions/index.md", "decisions"), ("index.md", "how-to"), ("index.md", "explanation")],
)
def test_every_page_of_a_folder_stands_in_its_index(index: str, folder: str) -> None:
    docs = ROOT / "docs"
    linked = {
        (docs / index).parent.joinpath(target).resolve()
        for target in LINK.findall((docs / index).read_text())
    }
    pages = {path.resolve() for path in (docs / folder).glob("*.md")} - {(docs / index).resolve()}
    assert {path.name for path in pages - linked} == set()


def snippets() -> list[object]:
    found: list[object] = []
    for page in PAGES:
        for number, match in enumerate(RUNNABLE.finditer(page.read_text()), start=1):
            marks = [pytest.mark.slow] if match["slow"] else []
            name = f"{page.relative_to(ROOT)}:{number}"
            found.append(pytest.param(match["kind"], match["body"], id=name, marks=marks))
    return found


@pytest.mark.parametrize(("kind", "body"), snippets())
def test_snippets_run(
    kind: str, body: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    program = [sys.executable, "-c", body] if kind == "python" else ["bash", "-euc", body]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        program,
        cwd=tmp_path,
        # What it keeps, as a sweep of this machine, moves the estimates of no other test.
        env={**os.environ, "PATH": path, "XDG_DATA_HOME": str(tmp_path_factory.mktemp("own"))},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,  # ends what hangs; two benches on a busy machine take ten minutes
    )
    assert done.returncode == 0, done.stderr
