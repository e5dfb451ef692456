"""What a training writes while it is looked at goes beside, and away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.benches import in_tensorflow

from tfdyno.runtime.base.written_files import PREFIX, Aside

if TYPE_CHECKING:
    from pathlib import Path

CODE = """
import os, tempfile
from pathlib import Path
import keras, numpy as np
from tfdyno.runtime.base.written_files import written_aside

folder = Path(tempfile.mkdtemp())
m = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
m.compile("sgd", "mse")
backup = keras.callbacks.BackupAndRestore(str(folder / "backup"))
board = keras.callbacks.TensorBoard(str(folder / "logs"))
table = keras.callbacks.CSVLogger(str(folder / "log.csv"))
own = keras.callbacks.LambdaCallback(
    on_epoch_end=lambda epoch, logs: m.save(folder / "mine.keras"))
(folder / "mine.keras").write_text("precious")
(folder / "log.csv").write_text("precious")
saved = keras.callbacks.ModelCheckpoint(str(folder / "deep" / "{epoch}.weights.h5"),
                                        save_weights_only=True)
result = {}
with written_aside([backup, board, table, own, saved]) as aside:
    m.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0, callbacks=[backup, table, own, saved])
    beside = [name for place in aside.folders.values() for name in os.listdir(place)]
    result["beside"] = sorted(beside)
    result["near"] = sorted({str(place.parent) == str(folder) for place in aside.folders.values()})
    result["backup"] = backup._weights_path.startswith(str(folder / "backup"))
    result["board"] = [Path(board.log_dir).name, board.log_dir == str(folder / "logs")]
result["left"] = sorted(os.listdir(folder))
result["precious"] = [(folder / name).read_text() for name in ("mine.keras", "log.csv")]
folder = Path(tempfile.mkdtemp())
import tensorflow as tf
kept = tf.train.Checkpoint(m=m)
manager = tf.train.CheckpointManager(kept, str(folder / "ck"), max_to_keep=1)
first = manager.save()
told = []
numbers = tf.data.Dataset.range(3)
list(numbers.cache(str(folder / "whole")))
with written_aside() as aside:
    aside.told = lambda name, seconds_s: told.append([name, seconds_s > 0])
    later = manager.save()
    manager.save()
    kept.save(file_prefix=str(folder / "by_name"))
    keras.saving.save_model(m, str(folder / "whole.keras"))
    m.save_weights(filepath=folder / "m.weights.h5")
    writer = tf.summary.create_file_writer(str(folder / "logs"))
    with writer.as_default():
        tf.summary.experimental.write_raw_pb(b"", 0)
    writer.close()
    half = iter(numbers.cache(str(folder / "half")))
    next(half)
    result["whole"] = [int(one) for one in numbers.map(lambda v: v + 1).cache(
        str(folder / "whole"))]
    result["moved"] = [".tfdyno-look-" in later, len(manager.checkpoints)]
result["told"] = told
result["checkpoints"] = sorted(name.partition(".")[0] for name in os.listdir(folder))
result["first"] = Path(first + ".index").exists()
mae = keras.callbacks.ModelCheckpoint("mae.keras", monitor="mae.keras_of_another")
with written_aside([mae]):
    result["other"] = mae.monitor
m.save(folder / "after.keras")
result["after"] = (folder / "after.keras").exists()
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    answer: dict[str, Any] = in_tensorflow(CODE)
    return answer


@pytest.mark.tf
def test_checkpoints_and_logs_of_a_real_training_stay_as_they_are(found: dict[str, Any]) -> None:
    assert found["precious"] == ["precious", "precious"]
    assert found["left"] == ["log.csv", "mine.keras"]


@pytest.mark.tf
def test_what_is_written_lies_beside_on_the_same_disk(found: dict[str, Any]) -> None:
    assert found["near"] == [True]
    assert {"1.weights.h5", "log.csv", "mine.keras"} <= set(found["beside"])


@pytest.mark.tf
def test_all_paths_that_a_callback_made_of_its_own_follow(found: dict[str, Any]) -> None:
    assert found["backup"] is False
    assert found["board"] == ["logs", False]


@pytest.mark.tf
def test_afterwards_models_are_saved_where_they_are_told_to(found: dict[str, Any]) -> None:
    assert found["after"]


@pytest.mark.tf
def test_a_checkpoint_manager_goes_on_in_another_folder_and_deletes_nothing(
    found: dict[str, Any],
) -> None:
    assert found["first"]
    assert found["moved"] == [True, 1]


@pytest.mark.tf
def test_nothing_that_saves_by_tensorflow_or_keras_reaches_the_folder(
    found: dict[str, Any],
) -> None:
    assert set(found["checkpoints"]) == {"ck", "whole"}


@pytest.mark.tf
def test_each_saving_is_told_once_with_its_name(found: dict[str, Any]) -> None:
    names = ["CheckpointManager.save"] * 2 + ["Checkpoint.save", "save_model", "save_weights"]
    assert found["told"] == [[name, True] for name in names]


@pytest.mark.tf
def test_a_cache_that_is_whole_is_read(found: dict[str, Any]) -> None:
    assert found["whole"] == [0, 1, 2]  # not 1, 2, 3, as it would be made now


@pytest.mark.tf
def test_a_text_that_only_begins_like_the_path_stays(found: dict[str, Any]) -> None:
    assert found["other"] == "mae.keras_of_another"


def test_a_folder_that_is_not_there_yet_is_stood_for_in_the_nearest(tmp_path: Path) -> None:
    aside = Aside()
    path = aside.path(tmp_path / "not" / "yet" / "model.keras")
    assert path.startswith(str(tmp_path / PREFIX))
    assert path.endswith("/model.keras")
    assert (
        aside.path(tmp_path / "not" / "yet" / "other.keras").rpartition("/")[0]
        == path.rpartition("/")[0]
    )
    aside.remove()
    assert list(tmp_path.iterdir()) == []
