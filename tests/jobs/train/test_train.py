"""jobs/train: a run in its folder, ended by anything and continued as if it had not been."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.forks import NO_GPU

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.measure.measurement import CardTelemetry, Telemetry
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import RunSettings, TrainOutcome
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.train.run import thinned
from tfdyno.jobs.train.train import (
    TrainRequest,
    _written,
    check,
    default_folder,
    planned,
    resume_command,
    train,
)
from tfdyno.store.run_events import read_events
from tfdyno.store.run_folder import RunFolder, RunRecord

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.recipe.recipe import Strategy

SCRIPT = """
import sys, time
import keras, numpy as np
x = np.random.default_rng(0).normal(size=(640, 8)).astype("float32")
y = x.sum(1, keepdims=True)
m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(8), keras.layers.Dropout(0.1),
                      keras.layers.Dense(1)])
m.compile("adam", "mse", metrics=["mae"])
class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
m.fit(x, y, epochs=3, batch_size=32, callbacks=[Slow()])
print("evaluated", m.evaluate(x, y, verbose=0)[0])
print("predicted", m.predict(x[:5], verbose=0).shape)
m.save("mine.keras")
if len(sys.argv) > 2:
    raise KeyError("after all")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in NO_GPU.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def request(*words: str, recipe: Recipe | None = None, **settings: Any) -> TrainRequest:
    return TrainRequest(
        workload=parse_reference("train.py", script_arguments=words),
        recipe=recipe,
        settings=RunSettings(**settings),
        given=frozenset(settings) - {"output", "resume"},
    )


def record(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "run.json").read_text())
    return found


@pytest.mark.tf
def test_a_run_is_kept_and_has_more_epochs_when_it_goes_on(folder: Path) -> None:
    said: list[str] = []
    printed: list[str] = []
    first = train(request(output="run"), progress=said.append, output=printed.append)
    assert len(first.outcome.history["loss"]) == 3
    assert (first.outcome.steps, first.resume_command) == (60, "")
    assert "predicted (5, 1)" in printed
    assert "predicted (5, 1)" in (folder / "run/logs/worker-0.log").read_text()
    kept = record("run")
    assert (kept["status"], kept["sittings"]) == ("finished", 1)
    assert kept["outcome"]["history"] == first.outcome.history
    assert json.loads((folder / "run/history.json").read_text()) == first.outcome.history
    events, _ = read_events(folder / "run")
    assert (events[0]["event"], events[-1]["event"]) == ("begin", "epoch")
    assert events[-1]["metrics"]["loss"] == pytest.approx(first.outcome.history["loss"][-1])
    assert kept["seed"] == first.recipe.seed is not None
    assert f"seed = {kept['seed']}" in (folder / "run/recipe.toml").read_text()
    assert first.environment.device == "cpu"
    assert len(first.telemetry.at_s) > 2
    pace = kept["outcome"]["pace"]
    assert pace["epochs"] == 3
    assert sum(pace["steps_per_sample"]) == 60 - 1  # without the first, which compiles
    assert 0.0 <= pace["validation_s"] <= pace["epoch_end_s"]
    assert pace["saves"] >= 3  # an epoch ends with one

    with pytest.raises(UsageError, match="run holds a run already; go on with it by --resume"):
        train(request(output="run"))
    (folder / "train.py").write_text(SCRIPT + "\n# another comment\n")
    more = train(request(output="run", resume=True, epochs=4))
    assert more.outcome.history["loss"][:3] == first.outcome.history["loss"]
    assert len(more.outcome.history["loss"]) == 4
    assert more.outcome.notes[0] == "train.py has changed since the run was started."
    assert record("run")["sittings"] == 2


@pytest.mark.slow  # test_train_kill stops and resumes a longer script in the plain run
@pytest.mark.tf
def test_a_stop_by_sigterm_and_a_resume_learn_the_same(folder: Path) -> None:
    recipe = Recipe(seed=11)
    whole = train(request(recipe=recipe, output="whole"))
    command = [sys.executable, "-m", "tfdyno", "train", "train.py", "--output", "run", "--set",
               "seed=11", "-v", "--json", "--", "0.1"]  # fmt: skip
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stderr
    for line in run.stderr:
        if "epoch 2/3" in line:
            run.send_signal(signal.SIGTERM)
            break
    out, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    told = json.loads(out)
    assert told["stopped"] == "SIGTERM"
    assert 20 <= told["steps"] < 60
    assert told["resume_command"] == "tfdyno train train.py --output run --resume -- 0.1"
    assert record("run")["status"] == "stopped"
    rest = train(request("0.1", output="run", resume=True))
    assert rest.outcome.history == whole.outcome.history
    assert rest.outcome.resumed_from
    assert record("run")["status"] == "finished"


@pytest.mark.tf
@pytest.mark.parametrize(
    "strategy",
    # A chief beside servers evaluates, predicts and saves in test_scheduled_step as well.
    ["multiworker", pytest.param("ps", marks=pytest.mark.slow)],
)
def test_several_processes_train_evaluate_and_predict_and_one_prints(
    folder: Path, strategy: Strategy
) -> None:
    printed: list[str] = []
    recipe = Recipe(strategy=strategy, devices=2, seed=11)
    found = train(request(recipe=recipe, output="run"), output=printed.append)
    assert (found.outcome.steps, found.outcome.epochs) == (60, 3)
    assert sum(line.startswith("evaluated") for line in printed) == 1
    assert "predicted (5, 1)" in printed
    is_alike = "evaluated" in (folder / "run/logs/worker-1.log").read_text()
    assert is_alike == (strategy == "multiworker")  # beside servers the chief alone runs the code
    assert (folder / "mine.keras").exists()
    assert Path(found.outcome.model_path).exists()


@pytest.mark.tf
def test_a_script_that_fails_after_its_training_leaves_it(folder: Path) -> None:
    with pytest.raises(UsageError, match="KeyError: 'after all'; what was trained is kept") as told:
        train(request("0", "fail", output="run"))
    assert record("run")["status"] == "failed"
    assert "after all" in record("run")["error"]
    (note,) = told.value.__notes__
    assert note == (
        "Its checkpoint step-000000060 is kept; go on with: tfdyno train train.py --output run "
        "--resume -- 0 fail"
    )


def test_a_folder_with_another_run_is_told_with_the_difference(folder: Path) -> None:
    there = RunFolder(folder / "run")
    there.prepare()
    there.write_recipe(Recipe(precision="mixed_bfloat16", seed=3))
    workload = parse_reference("train.py", script_arguments=("0.5",))
    there.write(RunRecord(workload=workload, folder=str(folder), seed=3))
    asked = request("0.5", output="run", resume=True)
    assert planned(asked)[0] == Recipe(precision="mixed_bfloat16", seed=3)
    same = replace(asked, recipe=Recipe(precision="mixed_bfloat16"))
    assert planned(same)[0].seed == 3
    other = replace(asked, recipe=Recipe(execution="xla", seed=4))
    with pytest.raises(UsageError) as told:
        planned(other)
    assert str(told.value) == (
        "run holds another run: its precision is mixed_bfloat16, not the script's own; its "
        "execution is what Keras chooses, not xla; its seed is 3, not 4; leave that out to go on "
        "with it, or start anew in another folder."
    )
    (folder / "other.py").write_text("")
    wrong = replace(asked, workload=parse_reference("other.py"))
    text = r"its reference is train\.py, not other\.py; its script arguments is 0\.5, not empty"
    with pytest.raises(UsageError, match=text):
        planned(wrong)


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        (lambda: request(resume=True), "--resume needs the folder of a run"),
        (lambda: request(resume=True, output="none"), "there is no run in it"),
        (lambda: request(output="train.py"), "cannot write to train.py: it is a file"),
        (lambda: request(recipe=Recipe(strategy="ps", accumulation=2)), "accumulation = 2"),
        (lambda: replace(request(), data="train.py:data"), "--data train.py:data is not"),
        (lambda: replace(request(), spot="aws"), "--spot aws finds no metadata service"),
        (lambda: replace(request(), workload=parse_reference(
            "train.py:step", input_spec=("float32[batch]",))), "a single step has no loop"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_any_work(
    folder: Path, asked: Callable[[], TrainRequest], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1")
    before = sorted(folder.rglob("*"))
    with pytest.raises(TfdynoError, match=re.escape(text)):
        train(asked())
    assert sorted(folder.rglob("*")) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_is_told(folder: Path) -> None:
    (folder / "locked").mkdir(mode=0o500)
    with pytest.raises(UsageError, match=r"cannot write to .*locked"):
        train(request(output="locked/run"))


def test_a_new_folder_is_named_after_the_workload_and_the_time() -> None:
    today = time.strftime("%Y%m%d", time.gmtime())
    found = default_folder(request())
    assert re.fullmatch(rf"tfdyno-runs/train-{today}-\d{{6}}", str(found))
    task = replace(request(), workload=parse_reference("task:lstm"))
    assert str(default_folder(task)).startswith("tfdyno-runs/lstm-")
    found.mkdir(parents=True)
    second = default_folder(request())
    assert second != found


def test_the_command_that_goes_on_repeats_what_the_folder_does_not_know(folder: Path) -> None:
    workload = parse_reference("train.py", script_arguments=("--size", "a b"), python="python3",
                               input_shapes=((8, 3), ()))  # fmt: skip
    asked = TrainRequest(workload=workload, data="d.py:f", spot="gcp")
    assert resume_command(asked, folder / "my run") == (
        "tfdyno train train.py --output 'my run' --resume --data d.py:f "
        "--input-shape 8,3 --input-shape '()' --python python3 --spot gcp -- --size 'a b'"
    )
    check(request())


def test_a_full_disk_at_the_end_does_not_hide_what_was_learned(
    folder: Path,
) -> None:
    there = RunFolder(folder / "run")
    there.prepare()
    outcome = TrainOutcome(history={"loss": [1.0]}, epochs=1, steps=1, updates=1)
    record = RunRecord(workload=parse_reference("train.py"))
    assert _written(there, record, outcome) == ()
    shutil.rmtree(there.path)
    (note,) = _written(there, record, outcome)
    assert "run.json could not be written: cannot write " in note


def test_telemetry_is_thinned_evenly() -> None:
    many = Telemetry(
        interval_s=1.0,
        at_s=tuple(map(float, range(10))),
        memory_bytes=tuple(range(10)),
        cards=(CardTelemetry(index=0, power_w=tuple(map(float, range(10)))),),
    )
    few = thinned(many, most=4)
    assert few.at_s == (0.0, 3.0, 6.0, 9.0)
    assert few.memory_bytes == (0, 3, 6, 9)
    assert few.cards[0].power_w == (0.0, 3.0, 6.0, 9.0)
    assert (few.interval_s, few.cpu_ratio) == (3.0, ())
    assert thinned(many) is many
