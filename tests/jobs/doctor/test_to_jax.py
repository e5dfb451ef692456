"""jobs/doctor/to_jax: what becomes of a script, with what is left of it and of its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.doctor.to_jax import migrate_to_jax

if TYPE_CHECKING:
    from pathlib import Path

LOSS = "import tensorflow as tf\ndef near(a, b):\n    return tf.reduce_mean(tf.square(a - b))\n"
TRAIN = "import keras\nfrom losses import near\nm = keras.Sequential()\nm.compile(loss=near)\n"


def test_a_loss_of_another_file_is_to_be_migrated_as_well(tmp_path: Path) -> None:
    (tmp_path / "losses.py").write_text(LOSS)
    (tmp_path / "train.py").write_text(TRAIN)
    found = migrate_to_jax(tmp_path / "train.py")
    assert found.is_done
    assert found.beside == (str(tmp_path / "losses.py"),)
    assert found.after == 'import os\n\nos.environ["KERAS_BACKEND"] = "jax"\n\n' + TRAIN


def test_what_keras_3_lacks_is_told(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import keras\nkeras.Sequential().fit_generator(x)\n")
    found = migrate_to_jax(tmp_path / "train.py")
    assert [one.cause for one in found.findings] == ["code.generator_methods"]
    assert not found.is_done


def test_ends_of_lines_and_a_script_in_another_folder_stay(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(b"import keras\r\nm = keras.Sequential()\r\n")
    found = migrate_to_jax(tmp_path / "train.py")
    assert found.after.count("\r\n") == found.after.count("\n") == 6
    assert found.path == str(tmp_path / "train.py")


def test_a_script_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import keras\nx = " + "(" * 5000 + ")" * 5000 + "\n")
    with pytest.raises(UsageError, match="cannot be read"):
        migrate_to_jax(tmp_path / "train.py")
