"""probe/holders/cards: a number of NVML's becomes a name only where it is that process."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tfdyno.probe.holders.cards import Named, named, own_family

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOLD = "import sys\nfile = open(sys.argv[1], 'w')\nprint('open', flush=True)\nsys.stdin.read()\n"
GONE = 4194303


@contextmanager
def holding(folder: Path, device: str, script: str = "other.py") -> Iterator[int]:
    """A real process that has such a device file open."""
    place = folder / device
    place.parent.mkdir(parents=True, exist_ok=True)
    (folder / script).write_text(HOLD)
    command = [sys.executable, str(folder / script), str(place)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout
        assert process.stdin
        process.stdout.readline()
        yield process.pid
        process.stdin.close()


def planted(root: Path, *words: str, files: tuple[str, ...] = ("/dev/nvidia0",)) -> Named:
    """What is said of process 7 of a table of processes."""
    (root / "7" / "fd").mkdir(parents=True)
    (root / "7" / "cmdline").write_text("\0".join(words) + "\0")
    for number, file in enumerate(files):
        (root / "7" / "fd" / str(number)).symlink_to(file)
    return named(7, root)


def test_a_process_with_a_card_open_is_named_with_its_script(tmp_path: Path) -> None:
    with holding(tmp_path, "dev/nvidia0") as pid:
        found = named(pid)
    assert (found.name, found.user) == (f"{os.path.basename(sys.executable)} other.py", "")  # noqa: PTH119


def test_a_process_of_the_same_number_without_a_card_is_not_taken_for_it(tmp_path: Path) -> None:
    with holding(tmp_path, "dev/null0") as pid:
        assert named(pid) == Named()


def test_a_process_that_has_ended_or_is_hidden_has_no_name() -> None:
    assert named(GONE) == Named()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("/usr/bin/python3", "-u", "/home/x/train.py", "--lr"), "python3 train.py"),
        (("python", "-m", "tfdyno", "train"), "python -m tfdyno"),
        (("python", "-c", "import x"), "python"),
        (("/opt/e/bin/python", "-m", "ipykernel_launcher"), "python (notebook kernel)"),
        (("/usr/bin/trtexec", "--onnx=x"), "trtexec"),
    ],
)
def test_programs_are_named_shortly(tmp_path: Path, words: tuple[str, ...], name: str) -> None:
    assert planted(tmp_path, *words).name == name


def test_under_wsl_a_card_is_another_file(tmp_path: Path) -> None:
    assert planted(tmp_path, "python", files=("/dev/null", "/dev/dxg")).name == "python"


def test_a_process_whose_files_are_not_shown_keeps_its_name(tmp_path: Path) -> None:
    assert planted(tmp_path, "python", files=()).name == "python"


def test_own_family_is_this_process_and_its_parents() -> None:
    family = own_family()
    assert {os.getpid(), os.getppid()} <= family
    assert GONE not in family
