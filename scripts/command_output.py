"""Outputs of commands inside pages: run anew, so that a page shows what the tool really prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path("docs")
SHOWN = re.compile(r"<!-- shows: (?P<command>.+?) -->\n```text\n(?P<output>.*?)```\n", re.S)
"""A command in a comment, and below it the block that its output fills."""
COLUMNS = "88"
LIMIT_S = 120


def pages() -> dict[Path, str]:
    """Every page that shows an output, with the outputs of now."""
    texts = {path: path.read_text() for path in sorted(DOCS.rglob("*.md"))}
    return {path: refreshed(text) for path, text in texts.items() if "<!-- shows:" in text}


def refreshed(text: str) -> str:
    """The page with each block under ``<!-- shows: COMMAND -->`` filled again."""
    return SHOWN.sub(lambda found: _block(found["command"]), text)


def _block(command: str) -> str:
    return f"<!-- shows: {command} -->\n```text\n$ {command}\n{_output(command)}\n```\n"


def _output(command: str) -> str:
    """What the command prints at the root of the project.

    Raises:
        RuntimeError: It was wrong use or failed; a finding (exit code 1) is no failure.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    told = {"PATH": path, "COLUMNS": COLUMNS, "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env={**os.environ, **told},
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.rstrip().split("\n"))
