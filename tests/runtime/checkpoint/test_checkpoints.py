"""A training that ends at any moment goes on as if it had not; failures reach it as sentences."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.benches import in_tensorflow

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.runtime.checkpoint.checkpoints import Beside, Checkpoints
from tfdyno.runtime.checkpoint.plain_json import sealed

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """
import os, resource, shutil
from pathlib import Path
import keras, numpy as np, tensorflow as tf
from tfdyno.core.base.errors import TfdynoError
from tfdyno.runtime.checkpoint.files import Position, list_checkpoints, read_marker
from tfdyno.runtime.checkpoint.state import state_of
from tfdyno.runtime.checkpoint.checkpoints import Checkpoints

def said(call):
    try:
        call()
    except TfdynoError as error:
        return f"{type(error).__name__}: {error}"

def steps(folder):
    return [found.step for found in list_checkpoints(folder)[0]]
"""
TRAIN = (
    HEAD
    + """
def model():
    layers = [keras.layers.Dense(8, "relu"), keras.layers.Dropout(0.5),
              keras.layers.BatchNormalization(), keras.layers.Dense(1)]
    built = keras.Sequential([keras.Input((4,)), *layers])
    built.compile(keras.optimizers.Adam(0.01, use_ema=True, gradient_accumulation_steps=2), "mse",
                  metrics=["mae"])
    return built

def step(one):
    x = np.random.rand(8, 4).astype("float32")
    noise = keras.random.normal((8, 1))  # of Keras' global generator
    return one.train_on_batch(x, x.sum(1, keepdims=True) + noise, return_dict=True)

keras.mixed_precision.set_global_policy("mixed_float16")
"""
)
WHOLE = (
    TRAIN
    + """
keras.utils.set_random_seed(3)
one, losses = model(), []
with Checkpoints(Path(FOLDER), keep=2, every_steps=3) as checkpoints:
    for number in range(1, 12):
        losses.append(step(one))
        if checkpoints.due(number, float(number)):
            position = Position(epoch=1, step_in_epoch=number, seed=3, data={"file": "a"})
            extra = {"best": np.float32(0.5), "weights": [np.arange(3.0)]}
            checkpoints.save(number, state_of(one), position, extra, history={"loss": [1.0]})
result = {"losses": losses, "steps": steps(Path(FOLDER)),
          "weights": [np.asarray(v).tolist() for v in one.weights]}
"""
)
REST = (
    TRAIN
    + """
keras.utils.set_random_seed(99)
one, losses = model(), []
step(one)  # builds all; what it learnt is overwritten
checkpoints = Checkpoints(Path(FOLDER), every_steps=3)
found = checkpoints.latest()
extra = checkpoints.restore(state_of(one), found)
due = [number for number in range(10, 14) if checkpoints.due(number, 0.0)]
for number in range(found.step + 1, 12):
    losses.append(step(one))
checkpoints.close()
result = {"losses": losses, "step": found.step, "position": [found.position.epoch,
          found.position.step_in_epoch, found.position.seed, found.position.data],
          "history": found.history, "best": extra["best"], "array": extra["weights"][0].tolist(),
          "due": due, "weights": [np.asarray(v).tolist() for v in one.weights]}
"""
)
FAILURES = (
    HEAD
    + """
folder = Path(FOLDER)
checkpoints = Checkpoints(folder, keep=2, every_steps=1)
weight = tf.Variable(tf.zeros((1 << 21,)), name="weight")
state, position, told = [("weight", weight)], Position(), {}

def save(step, **how):
    weight.assign(tf.fill(weight.shape, float(step)))
    checkpoints.save(step, state, position, {"step": step}, **how)
    weight.assign(tf.fill(weight.shape, -1.0))  # while it is being written

def read(step):
    checkpoints.restore(state, read_marker(folder / f"step-{step:09}.json"))
    return sorted(set(weight.numpy().tolist()))

for number in (1, 2, 3):
    save(number)
checkpoints.wait()
told["values"] = [read(step) for step in (2, 3)]
told["steps"] = steps(folder)
told["second"] = said(lambda: Checkpoints(folder))
told["plain"] = said(lambda: checkpoints.save(4, state, position, {"model": object()}))

# The disk is full.
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
save(4)
while checkpoints._writer.busy:
    pass
told["full"] = said(lambda: checkpoints.due(4, 1.0))
told["full_steps"], told["files"] = steps(folder), sorted(os.listdir(folder))
told["full_now"] = said(lambda: save(5, wait=True))
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
save(6, wait=True)
told["goes_on"] = [steps(folder), read(6)]

# The last good one before a NaN.
checkpoints.pin(checkpoints.latest())
for number in (7, 8, 9):
    save(number)
checkpoints.wait()
told["pinned"] = steps(folder)

# A worker that only takes part, beside the one that writes.
worker = Checkpoints(folder, writes=False)
worker.save(10, state, position)
told["worker"] = [worker.latest().step, (worker.close(), steps(folder))[1]]

# Damage.
raw = bytearray((folder / "step-000000009.npz").read_bytes())
raw[1000] ^= 1
(folder / "step-000000009.npz").write_bytes(raw)
gone = checkpoints.latest()
told["latest"] = [gone.step, checkpoints.notes]

# The folder is taken away.
shutil.rmtree(folder)
save(11)
told["vanished"] = said(checkpoints.close)
told["closed_again"] = said(checkpoints.close)
told["absent"] = said(lambda: checkpoints.pin(gone))
(folder.parent / "file").write_text("")
told["no_folder"] = said(lambda: Checkpoints(folder.parent / "file"))
result = told
"""
)


@pytest.mark.tf
def test_a_new_process_goes_on_as_the_first_would_have(tmp_path: Path) -> None:
    base = f"FOLDER = {str(tmp_path)!r}\n"
    whole = in_tensorflow(base + WHOLE)
    assert whole["steps"] == [9, 6]
    rest = in_tensorflow(base + REST)
    assert rest["step"] == 9
    assert rest["losses"] == whole["losses"][9:]
    assert rest["weights"] == whole["weights"]
    assert rest["position"] == [1, 9, 3, {"file": "a"}]
    assert rest["history"] == {"loss": [1.0]}
    assert (rest["best"], rest["array"]) == (0.5, [0.0, 1.0, 2.0])
    assert rest["due"] == [12, 13]  # not 10: the step of the checkpoint is known


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("failures") / "checkpoints"
    found = in_tensorflow(f"FOLDER = {str(folder)!r}\n{FAILURES}")
    assert isinstance(found, dict)
    return found


@pytest.mark.tf
def test_what_is_written_is_the_state_of_its_step(failures: dict[str, Any]) -> None:
    assert failures["values"] == [[2.0], [3.0]]
    assert failures["steps"] == [3, 2]


@pytest.mark.tf
def test_a_full_disk_reaches_the_training_and_takes_nothing(failures: dict[str, Any]) -> None:
    assert "ToolError: cannot write the checkpoint of step 4 to " in failures["full"]
    assert "File too large, 8,388,608 bytes needed" in failures["full"]
    assert failures["full_steps"] == [3, 2]
    names = ["step-000000002", "step-000000003"]
    files = [f"{name}.{ending}" for name in names for ending in ("json", "npz")]
    assert failures["files"] == [".lock", *files]
    assert "of step 5" in failures["full_now"]
    assert failures["goes_on"] == [[6, 3], [6.0]]


@pytest.mark.tf
def test_other_wrongs_are_sentences(failures: dict[str, Any]) -> None:
    assert "UsageError" in failures["second"]
    assert "is in use by another run: process " in failures["second"]
    assert (
        failures["plain"] == "UsageError: a checkpoint cannot hold this: extra.model is a object."
    )
    assert "of step 11" in failures["vanished"]
    assert "No such file or directory" in failures["vanished"]
    assert failures["closed_again"] is None
    assert "ToolError: cannot pin" in failures["absent"]
    assert "ToolError: cannot keep checkpoints in" in failures["no_folder"]


@pytest.mark.tf
def test_pinned_ones_stay_and_damaged_ones_are_passed_over(failures: dict[str, Any]) -> None:
    assert failures["pinned"] == [9, 8, 6]
    assert failures["worker"] == [9, [9, 8, 6]]
    step, notes = failures["latest"]
    assert step == 8
    assert [note.partition(":")[0] for note in notes] == ["step-000000009 is damaged and left out"]


@pytest.mark.parametrize(
    "wrong", [{"keep": 0}, {"every_steps": -1}, {"every_s": -1.0}, {"every_s": float("nan")}]
)
def test_numbers_without_sense_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Checkpoints(tmp_path, **wrong)


def test_a_start_that_fails_gives_the_folder_back(tmp_path: Path) -> None:
    marker = tmp_path / "step-000000001.json"
    marker.write_bytes(sealed({"format": 99}))
    with pytest.raises(UsageError, match="has the format 99"):
        Checkpoints(tmp_path)
    marker.unlink()
    Checkpoints(tmp_path).close()


def test_by_steps_each_multiple_is_due_however_many_run_at_once(tmp_path: Path) -> None:
    with Checkpoints(tmp_path, every_steps=10) as checkpoints:
        assert [n for n in range(0, 40, 4) if checkpoints.due(n, 0.0)][:1] == [12]
    with Checkpoints(tmp_path) as checkpoints:
        assert not any(checkpoints.due(n, 1e9 * n) for n in range(100))


def test_by_time_none_is_due_while_one_is_written(tmp_path: Path) -> None:
    go = threading.Event()
    with Checkpoints(tmp_path, every_s=60.0) as checkpoints:
        assert not checkpoints.due(1, 1000.0)  # the clock starts at the first step
        assert not checkpoints.due(2, 1059.0)
        assert checkpoints.due(3, 1060.0)
        checkpoints._writer.start(lambda: go.wait(20))
        assert not checkpoints.due(4, 1070.0)
        go.set()
        checkpoints.wait()
        assert checkpoints.due(5, 1071.0)


def test_an_error_of_the_training_is_the_one_to_be_seen(tmp_path: Path) -> None:
    def fail() -> None:
        raise ToolError("the disk is full")

    checkpoints = Checkpoints(tmp_path)
    checkpoints._writer.start(fail)
    with pytest.raises(ZeroDivisionError), checkpoints:
        raise ZeroDivisionError
    assert checkpoints.notes == ["the disk is full."]
    with pytest.raises(ToolError, match="the disk is full"), Checkpoints(tmp_path) as checkpoints:
        checkpoints._writer.start(fail)
    Checkpoints(tmp_path).close()  # the folder is free again


def fail(error: Exception) -> None:
    raise error


def test_one_piece_at_a_time() -> None:
    order: list[int] = []
    beside, go = Beside("work"), threading.Event()
    beside.start(lambda: order.append(1 if go.wait(10) else 0))
    assert beside.busy
    threading.Timer(0.05, go.set).start()
    beside.start(lambda: order.append(2))  # waits
    assert order[0] == 1
    beside.wait()
    assert order == [1, 2]
    assert not beside.busy


def test_a_failure_is_raised_once_by_the_next_call() -> None:
    beside = Beside("writing")
    beside.start(lambda: fail(ToolError("the disk is full")))
    with pytest.raises(ToolError, match="the disk is full"):
        beside.start(lambda: pytest.fail("begun after a failure"))
    beside.wait()
    beside.check()


def test_what_nobody_expected_becomes_a_sentence() -> None:
    beside = Beside("writing")
    beside.start(lambda: fail(ZeroDivisionError("by zero")))
    with pytest.raises(ToolError, match="writing failed: ZeroDivisionError: by zero"):
        beside.wait()


def test_what_was_begun_is_finished_when_the_process_ends() -> None:
    code = (
        "import time; from tfdyno.runtime.checkpoint.checkpoints import Beside\n"
        "Beside('x').start(lambda: (time.sleep(0.2), print('done')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "done\n"
