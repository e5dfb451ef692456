"""jobs/tune on Keras' JAX backend: only what exists there is tried, and a study stays there."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs.made_up_node import PLACE, TASK, Machine
from tests.jobs.tune.test_place import step_s
from tests.runtime.forks import NO_GPU

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import Card
from tfdyno.core.recipe.recipe import InputOptions, Recipe, from_settings
from tfdyno.core.recipe.recipe_file import read_recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.training import RunSettings
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.train.train import TrainRequest, train
from tfdyno.jobs.tune.request import TuneRequest
from tfdyno.jobs.tune.tune import tune
from tfdyno.jobs.tune.write import written

if TYPE_CHECKING:
    from tfdyno.core.measure.measurement import Measured
    from tfdyno.core.messages.bench import MeasureHere
    from tfdyno.core.train.search_space import Value
    from tfdyno.core.train.tuning import Tuning
    from tfdyno.jobs.child.worker import Progress

ON_JAX = replace(PLACE, jax="0.11.2")
OF_JAX = replace(TASK, backend="jax", execution="xla")
NAMED: dict[str, tuple[Value, ...]] = {"batch_size": (64,), "precision": ("",)}
NO_EXECUTION = "execution is not tuned: JAX compiles every step with XLA."
NO_INPUT = "Settings of the input are not tuned: tf.data does not read this data."
SCRIPT = """
import os
os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np
import tensorflow as tf

x = np.random.default_rng(0).normal(size=(2048, 32)).astype("float32")
y = x.sum(axis=1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda a, b: (a * 2.0, b)).batch(16)
model = keras.Sequential(
    [keras.Input((32,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)]
)
model.compile("adam", "mse")
model.fit(data, epochs=2)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in NO_GPU.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def request(**fields: Any) -> TuneRequest:
    given = {"workload": parse_reference("train.py"), "folder": Path("out"), "named": NAMED,
             "backend": "jax", "trials": 1, **fields}  # fmt: skip
    return TuneRequest(**given)


def machine(**fields: Any) -> Machine:
    return Machine(**{"step_s": step_s, "place": ON_JAX, "task": OF_JAX, **fields})


def last(asked: TuneRequest, one: Machine) -> Tuning:
    *_, end = tune(asked, engine=contextlib.nullcontext((one.node,)))
    return end


def test_every_run_the_proof_and_the_losses_are_of_jax() -> None:
    one, backends = machine(), []
    made = one.node.run

    def run(asked: MeasureHere, progress: Progress) -> Measured:
        backends.append(asked.backend)
        return made(asked, progress)

    nodes = contextlib.nullcontext((replace(one.node, run=run),))
    named: dict[str, tuple[Value, ...]] = {
        **NAMED, "input.cache": (False, True), "steps_per_execution": (1,), "input.prefetch": (0,),
        "input.parallel_calls": (0,),
    }  # fmt: skip
    *_, told = tune(request(named=named, trials=2), engine=nodes)
    assert set(backends) == {"jax"}
    assert [pair.backend for pair in one.compared] == ["jax"]
    assert told.backend == "jax"
    assert told.proof
    assert told.proof.kept
    assert told.recipe.input.cache


def test_what_does_not_exist_there_is_not_tried_and_said_once() -> None:
    told = last(request(), machine())
    assert "execution" not in told.space.choices
    assert {"steps_per_execution", "input.prefetch"} <= told.space.choices.keys()
    assert told.notes.count(NO_EXECUTION) == 1
    assert NO_INPUT not in told.notes
    arrays = machine(task=replace(OF_JAX, has_pipeline=False))
    told = last(request(folder=Path("arrays")), arrays)
    assert set(told.space.choices) == {"steps_per_execution"}
    assert told.notes.count(NO_INPUT) == 1


def test_a_script_that_compiles_no_step_is_tried_with_xla() -> None:
    told = last(request(), machine(task=replace(OF_JAX, execution="graph")))
    assert told.space.choices["execution"] == ("auto", "xla")
    assert NO_EXECUTION not in told.notes


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"threads_intra": (0, 4)}, "threads_intra = 4 means nothing on the JAX backend"),
        ({"execution": ("xla", "graph")}, "execution = graph means nothing on the JAX backend"),
    ],
)
def test_a_value_that_jax_does_not_have_is_refused_before_any_run(
    named: dict[str, tuple[Value, ...]], said: str
) -> None:
    one = machine()
    with pytest.raises(UsageError, match=said):
        last(request(named=named), one)
    assert one.ran == []
    assert not Path("out").exists()


def test_a_value_that_leaves_a_setting_as_it_is_stays_allowed() -> None:
    named: dict[str, tuple[Value, ...]] = {**NAMED, "threads_intra": (0,), "execution": ("auto",)}
    told = last(request(named=named), machine())
    assert {"threads_intra", "execution"}.isdisjoint(told.space.choices)


def test_settings_of_the_input_that_are_named_need_tf_data() -> None:
    arrays = machine(task=replace(OF_JAX, has_pipeline=False))
    named: dict[str, tuple[Value, ...]] = {**NAMED, "input.prefetch": (0, 2)}
    with pytest.raises(UsageError) as caught:
        last(request(named=named), arrays)
    assert str(caught.value) == (
        "input.prefetch cannot be tuned for this data: tf.data does not read it; "
        "give fit a tf.data.Dataset, or leave it out."
    )
    kept: dict[str, tuple[Value, ...]] = {**NAMED, "input.prefetch": (0,)}
    assert last(request(named=kept), arrays).best is not None


@pytest.mark.parametrize(
    ("began", "goes_on", "said"),
    [
        ("jax", "tensorflow", "out holds a study on JAX, not on TensorFlow; go on with it by "
         "--backend jax, or give another --output."),
        ("tensorflow", "jax", "out holds a study on TensorFlow, not on JAX; go on with it by "
         "--backend tensorflow, or give another --output."),
    ],
)  # fmt: skip
def test_a_study_does_not_go_on_with_another_backend(began: str, goes_on: str, said: str) -> None:
    places = {"jax": (ON_JAX, OF_JAX), "tensorflow": (PLACE, TASK)}
    place, task = places[began]
    last(request(backend=began), machine(place=place, task=task))
    place, task = places[goes_on]
    one = machine(place=place, task=task)
    with pytest.raises(UsageError) as caught:
        last(request(backend=goes_on, trials=2, resume=True), one)
    assert str(caught.value) == said
    assert one.ran == []


def test_gpus_that_jax_leaves_unused_or_does_not_share_are_told() -> None:
    unused = "JAX computes on the CPU, though this machine has a GPU: pip install 'jax[cuda12]'."
    told = last(request(), machine(task=replace(OF_JAX, notes=(unused, "Another note."))))
    assert unused in told.notes
    assert "Another note." not in told.notes
    cards = (Card(name="A card"), Card(name="A card"))
    pair = machine(place=replace(ON_JAX, device="gpu", cards=cards))
    told = last(request(folder=Path("pair")), pair)
    assert any(one.startswith("Trials ran on one of 2 GPUs. ") for one in told.notes)


def test_a_task_has_no_losses_to_compare_there() -> None:
    """``train`` refuses it on JAX, so that no study can be proven by what is learned."""
    asked = request(workload=parse_reference("task:dlrm"), data="synthetic",
                    recipe=from_settings({"batch_size": "16"}))  # fmt: skip
    told = last(asked, machine())
    assert told.uncompared == "task:dlrm trains on TensorFlow alone"


@pytest.mark.tf
def test_a_real_study_begins_on_jax_and_stays_there() -> None:
    asked = request(seconds_s=1.0, runs=2, named={**NAMED, "batch_size": (16, 256)}, trials=2)
    study = tune(asked)
    begun = next(study)
    then = next(study)
    assert isinstance(study, Generator)
    study.close()  # as Ctrl-C does: what ended is kept
    assert begun.device == "cpu"
    assert begun.trials[0].batch_size == 16
    assert "input.prefetch" in begun.space.choices  # tf.data reads it, whatever the backend
    assert "execution" not in begun.space.choices
    assert len(then.trials) >= 2
    with pytest.raises(UsageError, match="out holds a study on JAX, not on TensorFlow"):
        next(tune(replace(asked, backend="tensorflow", resume=True)))
    again = next(tune(replace(asked, resume=True, trials=1)))
    assert [one.rates_per_s for one in again.trials] == [one.rates_per_s for one in then.trials]


@pytest.mark.slow
@pytest.mark.tf
def test_the_winner_is_proven_and_train_takes_its_recipe() -> None:
    """A cache spares from the second epoch on what each sample costs the input."""
    slow = "(a + 0.0 * tf.reduce_max(tf.matmul(*[tf.tile(a[None], [256, 8])] * 2)), b)"
    Path("train.py").write_text(SCRIPT.replace("(a * 2.0, b)", slow).replace("2048", "512"))
    named: dict[str, tuple[Value, ...]] = {
        **NAMED, "steps_per_execution": (1,), "input.prefetch": (0,), "input.parallel_calls": (0,),
        "input.cache": (False, True), "batch_size": (0,),
    }  # fmt: skip
    asked = request(seconds_s=4.0, runs=2, named=named, trials=2, keep_batch=True)
    *_, told = tune(asked)
    assert told.proof
    assert told.proof.kept
    assert told.proof.interval[0] > 1.0
    assert told.proof.agreement
    assert told.proof.agreement.agrees
    written(asked.folder, told)
    recipe = read_recipe(asked.folder)
    assert recipe == told.recipe == Recipe(input=InputOptions(cache=True))
    trained = train(
        TrainRequest(workload=asked.workload, recipe=recipe, jax=JaxPlan(),
                     settings=RunSettings(output="run", epochs=1)),
    )  # fmt: skip
    assert trained.recipe.input.cache
    assert trained.outcome.steps == 32  # 512 samples, 16 each
