"""The serving example does what its README says, from training to the load test."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.served import QUIET, ROOT, running

EXAMPLE = ROOT / "examples" / "serving"
BLOCKS = re.compile(r"```bash(?: (\w+))?\n(.*?)```", re.S)


def commands(part: str) -> list[str]:
    text = (EXAMPLE / "README.md").read_text()
    return [
        line for kind, body in BLOCKS.findall(text) if kind == part for line in body.splitlines()
    ]


def test_the_readme_names_the_program_that_is_there() -> None:
    words = {line.split()[0] for part in ("", "serve", "ask") for line in commands(part)}
    assert words == {"export", "python", "tfdyno", "curl"}
    assert (EXAMPLE / "digits.py").exists()


@pytest.mark.slow
@pytest.mark.tf
def test_the_story_runs_to_its_end_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(EXAMPLE / "digits.py", tmp_path)
    # the names tfdyno and python are those of this environment, whatever is installed
    python = shlex.quote(sys.executable)
    names = f'tfdyno() {{ {python} -m tfdyno "$@"; }}\npython() {{ {python} "$@"; }}'

    def run(*lines: str) -> str:
        done = subprocess.run(
            ["bash", "-ec", "\n".join((names, *lines))],
            capture_output=True, text=True, check=False, cwd=tmp_path, timeout=500,
            env={**os.environ, **QUIET, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "digits:1 is now in use." in run(*commands(""))
    for page in ("exports.html", "size.html"):
        assert (tmp_path / "work" / page).stat().st_size > 10_000
    monkeypatch.setenv("TFDYNO_STORE", str(tmp_path / "work" / "store"))
    (served,) = commands("serve")
    with (
        tempfile.TemporaryDirectory(prefix="t", dir="/tmp") as temporary,
        running(*served.split()[2:], temporary=Path(temporary)) as server,
    ):
        ask, load = (
            line.replace("http://127.0.0.1:8501/v1/models/digits", server.url)
            for line in commands("ask")
        )
        rows = json.loads(run(ask))["predictions"]
        assert [row.index(max(row)) for row in rows] == [2, 8]
        # A busy machine makes the server refuse some, to keep the 100 ms that it was asked for.
        assert "64 clients" in run(f"{load} --expect-refusals")
    assert (tmp_path / "work" / "load.html").exists()
