"""The scripts that children run: by any interpreter, without this package, telling at once."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

from tfdyno.probe.base import child_driver, child_loader, child_nvml
from tfdyno.probe.base.children import FOLDER, MARK

SCRIPTS = (child_nvml, child_driver, child_loader)
STANDARD = {"ctypes", "json", "os", "sys", "typing"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.__name__)
def test_a_script_is_python_3_6_and_needs_the_standard_library_only(script: object) -> None:
    name = str(script.__name__).rpartition(".")[2]  # type: ignore[attr-defined]
    tree = ast.parse((FOLDER / f"{name}.py").read_text(), feature_version=(3, 6))
    imported = {
        one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names
    } | {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= STANDARD
    newer = (ast.NamedExpr, ast.Match)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]


@pytest.mark.parametrize(
    ("script", "request_"),
    [
        ("child_nvml.py", {"names": ["libnone.so.7"]}),
        ("child_driver.py", {"names": ["libnone.so.7"]}),
        ("child_loader.py", {"libraries": [["none", "libnone.so.7"]], "folders": ["/none"]}),
    ],
)
def test_a_missing_library_is_told_and_no_failure(script: str, request_: object) -> None:
    command = [sys.executable, "-I", "-S", str(FOLDER / script), json.dumps(request_)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert "libnone.so.7" in json.loads(line.removeprefix(MARK))["error"]


def test_the_marks_of_the_scripts_are_what_the_parent_reads() -> None:
    assert {script.MARK for script in SCRIPTS} == {MARK}


def test_reasons_that_hold_a_clock_down_are_those_of_nvml_h() -> None:
    """``nvmlClocksThrottleReason*`` of the public header."""
    assert child_nvml.THROTTLE.keys() == {0x4, 0x8, 0x20, 0x40, 0x80}
