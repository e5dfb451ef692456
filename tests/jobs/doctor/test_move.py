"""jobs/doctor/move: a script with what it imports, a folder, and what cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.doctor.move import check_move, with_own
from tfdyno.probe.files.source_files import find

if TYPE_CHECKING:
    from pathlib import Path

LAYER = "import tensorflow as tf, keras\nclass Own(keras.Layer):\n    def call(self, x):\n"
LAYER += "        return tf.nn.relu(x)\n"


def test_a_script_is_judged_with_all_that_it_imports_from_beside_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import keras\nfrom net import build\nbuild()\n")
    (tmp_path / "net.py").write_text("import keras\nfrom parts.layers import Own\n")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "layers.py").write_text(LAYER)
    (tmp_path / "other.py").write_text(LAYER)
    files = with_own(find(tmp_path / "train.py"))
    assert files.paths == ("train.py", "net.py", "parts/layers.py")
    move = check_move(tmp_path / "train.py").diagnosis.move
    assert move
    assert [one.source for one in move.obstacles] == ["parts/layers.py:4"]


def test_a_folder_is_judged_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import keras\n")
    (tmp_path / "b.py").write_text(LAYER)
    found = check_move(tmp_path)
    assert found.diagnosis.move
    assert found.diagnosis.move.answer == "after_migrate"
    assert found.exit_code == 1
    assert [one.cause for one in found.diagnosis.findings] == ["move.operation"]


def test_a_file_that_cannot_be_read_leaves_the_answer_open(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import keras\n")
    (tmp_path / "b.py").write_text("import keras\nclass\n")
    found = check_move(tmp_path)
    assert found.diagnosis.move
    assert found.diagnosis.move.answer == "unknown"
    assert any(note.startswith("b.py was not read") for note in found.diagnosis.notes)


def test_a_folder_without_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("keras\n")
    with pytest.raises(UsageError, match="holds no Python"):
        check_move(tmp_path)
