"""What other processes open in a folder, as the kernel of this machine tells it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tfdyno.probe.files.folder_events import FolderEvents

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux'")


def test_a_file_that_another_process_reads_is_told_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "read").write_text("x")
    (tmp_path / "left").write_text("x")
    events = FolderEvents(tmp_path)
    assert events.is_complete
    assert events.opened() == frozenset()
    subprocess.run(["cat", str(tmp_path / "read")], check=True, capture_output=True)
    assert events.opened() == {"read"}
    assert events.opened() == {"read"}  # still known when it is asked again
    events.close()
    events.close()


def test_asking_whether_a_file_is_there_does_not_open_it(tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("x")
    events = FolderEvents(tmp_path)
    assert (tmp_path / "seen").stat().st_size == 1
    assert events.opened() == frozenset()
    events.close()


def test_a_hard_link_is_told_by_the_name_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "view").mkdir()
    (tmp_path / "kept" / "long@digest").write_text("x")
    (tmp_path / "view" / "short").hardlink_to(tmp_path / "kept" / "long@digest")
    events = FolderEvents(tmp_path / "view")
    (tmp_path / "view" / "short").read_text()
    assert events.opened() == {"short"}
    (tmp_path / "kept" / "long@digest").read_text()  # by its other name: another folder
    assert events.opened() == {"short"}
    events.close()


def test_a_folder_that_is_not_there_tells_nothing(tmp_path: Path) -> None:
    events = FolderEvents(tmp_path / "none")
    assert not events.is_complete
    assert events.opened() == frozenset()
    events.close()
