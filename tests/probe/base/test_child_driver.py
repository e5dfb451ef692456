"""What the driver tells a child: its version, its cards, or the name of its error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tfdyno.probe.base.children import FOLDER, MARK

if TYPE_CHECKING:
    from pathlib import Path


def told(nvidia: Path, **variables: str) -> list[dict[str, Any]]:
    request = json.dumps({"names": ["libnone.so", "libcuda.so.1"]})
    environment = {**os.environ, "LD_LIBRARY_PATH": str(nvidia), **variables}
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(FOLDER / "child_driver.py"), request],
        capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    return [json.loads(line.removeprefix(MARK)) for line in done.stdout.splitlines()]


def test_library_version_and_cards_are_told_in_this_order(nvidia: Path) -> None:
    library, cuda, init, card = told(nvidia)
    assert library["path"] == str(nvidia / "libcuda.so.550.54.14")
    assert (cuda["version"], init["error"]) == (12040, "")
    assert (card["card"], card["capability"]) == ("Orin", "8.7")


def test_a_driver_that_does_not_start_names_its_error_and_no_card(nvidia: Path) -> None:
    *_, init = told(nvidia, FAKE_CUDA="unknown")
    assert init == {"kind": "init", "error": "CUDA_ERROR_UNKNOWN"}
