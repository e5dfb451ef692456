from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.anchors import anchor

from tfdyno.core.base.errors import UsageError
from tfdyno.store.recalibration import Anchors

ADD = """
import sys
from pathlib import Path
from tests.anchors import anchor
from tfdyno.store.recalibration import Anchors
for size in range(int(sys.argv[2]), int(sys.argv[3])):
    Anchors(folder=Path(sys.argv[1])).add(anchor(batch_size=size))
"""


def test_a_folder_without_a_file_has_no_anchors(tmp_path: Path) -> None:
    assert Anchors(folder=tmp_path / "none").read() == ()


def test_what_was_added_is_read_and_a_newer_one_replaces_it(tmp_path: Path) -> None:
    anchors = Anchors(folder=tmp_path / "deep" / "data")
    anchors.add(anchor(1.1))
    anchors.add(anchor(1.3, card="l4"))
    anchors.add(anchor(1.2))
    assert anchors.read() == (anchor(1.3, card="l4"), anchor(1.2))


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    both = [
        subprocess.Popen([sys.executable, "-c", ADD, str(tmp_path), *span], cwd=root)
        for span in (("1", "25"), ("25", "49"))
    ]
    assert [one.wait() for one in both] == [0, 0]
    assert {one.batch_size for one in Anchors(folder=tmp_path).read()} == set(range(1, 49))


@pytest.mark.parametrize("text", ["{", '{"anchors": 3}', '{"other": 1}', "\x00"])
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, text: str) -> None:
    anchors = Anchors(folder=tmp_path)
    anchors.path.write_text(text)
    with pytest.raises(UsageError, match=r"recalibration\.json.*; remove the file"):
        anchors.read()


def test_a_file_of_another_version_is_refused(tmp_path: Path) -> None:
    anchors = Anchors(folder=tmp_path)
    anchors.path.write_text('{"format": 2, "anchors": []}')
    with pytest.raises(UsageError, match="another tfdyno"):
        anchors.read()


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        Anchors(folder=tmp_path / "data").add(anchor())
