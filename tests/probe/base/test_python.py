from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.probe.base.host import this_host
from tfdyno.probe.base.python import by_asking, interpreter, python

if TYPE_CHECKING:
    from pathlib import Path

    from tests.probe.conftest import Build


@pytest.mark.parametrize(
    ("prefix", "files", "expected"),
    [
        ("/home/x/.venv", {"pyvenv.cfg": "uv = 0.9\nversion_info = 3.12.1\n"}, "uv"),
        ("/home/x/.venv", {"pyvenv.cfg": "version = 3.12.1\n"}, "pip"),
        ("/opt/conda", {"conda-meta/python-3.12.1-h1_0.json": "{}"}, "conda"),
        ("/p/.pixi/envs/default", {"conda-meta/python-3.12.1-h1_0.json": "{}"}, "pixi"),
        (
            "/h/.cache/pypoetry/virtualenvs/a-x-py3.12",
            {"pyvenv.cfg": "version = 3.12.1\n"},
            "poetry",
        ),
        ("/usr", {"lib/python3.12/EXTERNALLY-MANAGED": "[externally-managed]"}, "system"),
    ],
)
def test_the_manager_is_told_by_its_traces(
    build: Build, prefix: str, files: dict[str, str], expected: str
) -> None:
    tree = {f"{prefix}/{name}": text for name, text in files.items()}
    tree[f"{prefix}/lib/python3.12/site-packages/x.py"] = ""
    part = python(build(tree, python=f"{prefix}/bin/python"), MachineFacts())
    assert part.fields["python"].manager == expected
    assert part.fields["python"].version.startswith("3.12")


def test_an_environment_without_packages_folder_fails_in_words(build: Build) -> None:
    part = python(build({}, python="/no/bin/python"), MachineFacts())
    assert (part.state, part.reason) == ("failed", "no site-packages were found for /no/bin/python")


def test_another_interpreter_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)  # whose folders count as well
    command = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")]
    subprocess.run(command, check=True)
    told = interpreter(replace(this_host(), python=str(tmp_path / "env" / "bin" / "python")))
    assert told.prefix == str(tmp_path / "env")
    assert told.folders == (str(tmp_path / "env/lib/python3.11/site-packages"),)
    assert told.bits == 64


def test_what_is_no_interpreter_gives_no_answer(tmp_path: Path) -> None:
    assert by_asking("/bin/true") is None
    assert by_asking(str(tmp_path / "none")) is None
