"""The scripts that children run: by any interpreter, without this package, telling at once."""

from __future__ import annotations

import ast
import dataclasses
import json
import subprocess
import sys

import pytest

from tfdyno.core.messages.nvidia import KINDS
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


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.__name__)
def test_what_a_script_tells_are_fields_of_what_its_parent_reads(script: object) -> None:
    tree = ast.parse((FOLDER / f"{str(script.__name__).rpartition('.')[2]}.py").read_text())  # type: ignore[attr-defined]
    parts = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    told = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and name_of(one) == "tell"]
    assert told
    for call in told:
        given: dict[str, ast.expr] = {}
        for keyword in call.keywords:
            if keyword.arg:
                given[keyword.arg] = keyword.value
            else:  # **_card(…)
                assert isinstance(keyword.value, ast.Call)
                given |= dict.fromkeys(written(parts[name_of(keyword.value)]), keyword.value)
        kind = given.pop("kind")
        assert isinstance(kind, ast.Constant)
        fields = {one.name: one for one in dataclasses.fields(KINDS[str(kind.value)])}
        needed = {name for name, one in fields.items() if one.default is dataclasses.MISSING}
        assert needed <= given.keys() <= fields.keys(), ast.unparse(call)


def name_of(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def written(function: ast.FunctionDef) -> set[str]:
    """Names of all that a function puts into the dictionary that it returns."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Dict):
            found |= {str(key.value) for key in node.keys if isinstance(key, ast.Constant)}
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            found.add(str(node.slice.value))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "facts.update":
            found |= {str(one.arg) for one in node.keywords}
    return found


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
