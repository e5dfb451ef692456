"""Libraries are loaded one by one: the file of each is told before the next is tried."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tfdyno.probe.base.children import FOLDER, MARK

if TYPE_CHECKING:
    from pathlib import Path


def told(*libraries: tuple[str, str], folders: tuple[Path, ...]) -> tuple[int, list[Any]]:
    request = json.dumps({"libraries": libraries, "folders": list(map(str, folders))})
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(FOLDER / "child_loader.py"), request],
        capture_output=True, text=True,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    return done.returncode, [json.loads(line.removeprefix(MARK)) for line in lines]


def test_the_file_and_the_version_of_a_library_are_told(nvidia: Path) -> None:
    _, (cudnn, none) = told(("cudnn", "libcudnn.so.9"), ("none", "libnone.so.1"), folders=(nvidia,))
    assert cudnn["path"] == str(nvidia / "libcudnn.so.9")
    assert (cudnn["error"], cudnn["version"] >= 90000) == ("", True)
    assert "libnone.so.1" in none["error"]


def test_a_library_that_kills_the_child_spares_what_was_told_before(nvidia: Path) -> None:
    code, told_before = told(
        ("cudnn", "libcudnn.so.9"), ("cublas", "libcublas.so.12"), ("none", "libnone.so.1"),
        folders=(nvidia,),
    )  # fmt: skip
    assert code != 0
    assert [one["name"] for one in told_before] == ["libcudnn.so.9"]
