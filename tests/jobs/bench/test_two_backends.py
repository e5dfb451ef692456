"""TensorFlow and JAX measured in turns: the same weights, the same losses, or no comparison."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs import bench_child

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import FirstResults, Protocol
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.bench.bench import BenchRequest, bench, check
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.model.measure.same_results import same_results

if TYPE_CHECKING:
    from tfdyno.core.measure.measurement import Measurement

ROOT = Path(__file__).parents[3]
DATA = """
import keras, numpy as np
rng = np.random.default_rng(1)
"""
MLP = (
    DATA
    + """
x, y = rng.normal(size=(96, 6)).astype("float32"), rng.normal(size=(96, 1)).astype("float32")
model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(x, y, batch_size=20, validation_split=0.1)
"""
)
CNN = DATA + """
x, y = rng.normal(size=(64, 8, 8, 3)).astype("float32"), rng.integers(0, 4, 64)
layers = keras.layers
model = keras.Sequential([
    keras.Input((8, 8, 3)), layers.Conv2D(8, 3, padding="same", activation="relu"),
    layers.BatchNormalization(), layers.GlobalAveragePooling2D(), DROPOUT layers.Dense(4),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.SGD(0.1, momentum=0.9), loss)
model.fit(x, y, batch_size=16)
"""  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "src"))))
    (tmp_path / "train.py").write_text("import keras\nmodel.fit(x)\n")
    (tmp_path / "plan.json").write_text("{}")
    return tmp_path


@pytest.fixture
def made_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, and the stand-in child makes its runs up."""
    monkeypatch.setattr("tfdyno.jobs.bench.run.RUN", bench_child.MADE_UP)
    return folder


def request(**changes: Any) -> BenchRequest:
    base = BenchRequest(
        workload=parse_reference("train.py"),
        protocol=Protocol(least_runs=3, most_runs=3),
        against=Recipe(),
        against_backend="jax",
        folder=Path("results"),
    )
    return replace(base, **changes)


def ran(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]


def test_both_sides_begin_with_one_file_and_one_seed(made_up: Path) -> None:
    a, b = bench(request())
    told = ran(made_up)
    assert [one["backend"] for one in told] == [*["tensorflow", "jax", "jax", "tensorflow"],
                                                "tensorflow", "jax"]  # fmt: skip
    assert {one["keras"] for one in told if one["backend"] == "jax"} == {"jax"}
    assert {one["keras"] for one in told if one["backend"] == "tensorflow"} == {"tensorflow"}
    assert len({one["first_weights"] for one in told}) == 1
    assert Path(told[0]["first_weights"]).parent == (made_up / "results")
    assert (a.recipe.seed, b.recipe.seed) == (0, 0)
    assert (a.session, list((made_up / "results").glob("*.npz"))) == (b.session, [])


def test_a_bench_of_one_backend_shares_no_weights(made_up: Path) -> None:
    a, b = bench(request(against=Recipe(batch_size=9), against_backend="tensorflow"))
    assert {one["first_weights"] for one in ran(made_up)} == {""}
    assert (a.recipe.seed, b.recipe.seed) == (None, None)


def test_weights_stay_for_resume_and_go_with_a_bench_that_keeps_nothing(made_up: Path) -> None:
    (made_up / "plan.json").write_text(json.dumps({"2": {"fail": "no"}}))
    with pytest.raises(UsageError, match="no"):
        bench(request())
    first = Path(ran(made_up)[0]["first_weights"])
    assert first.exists()
    (made_up / "plan.json").write_text("{}")
    bench(request(resume=True))
    assert {one["first_weights"] for one in ran(made_up)} == {str(first)}
    assert not first.exists()


def test_a_first_run_that_fails_leaves_no_weights(made_up: Path) -> None:
    (made_up / "plan.json").write_text(json.dumps({"0": {"fail": "no"}}))
    with pytest.raises(UsageError, match="no"):
        bench(request())
    assert list((made_up / "results").glob("*.npz")) == []


@pytest.mark.parametrize(
    ("code", "changes", "said"),
    [
        ("import tensorflow as tf\nwith tf.GradientTape():\n    pass\n", {},
         "line 2, tf.GradientTape: A tape records operations of TensorFlow"),
        ("", {"against": Recipe(threads_intra=2)}, "threads_intra = 2 means nothing on the JAX"),
        ("", {"backend": "jax", "recipe": Recipe(execution="graph")},
         "execution = graph means nothing on the JAX backend"),
        ("", {"protocol": Protocol(data="synthetic-device")}, "is for TensorFlow"),
    ],
)  # fmt: skip
def test_what_jax_cannot_run_is_refused_before_any_work(
    folder: Path, code: str, changes: dict[str, Any], said: str
) -> None:
    (folder / "train.py").write_text(code)
    with pytest.raises(UsageError) as caught:
        check(request(**changes))
    assert said in str(caught.value)


def test_a_step_by_itself_is_no_step_of_jax(folder: Path) -> None:
    (folder / "train.py").write_text("def step(x):\n    return x\n")
    workload = parse_reference("train.py:step", input_spec=("float32[None,4]",))
    with pytest.raises(UsageError, match="is a step of TensorFlow, which JAX cannot run"):
        check(request(workload=workload))


def short(folder: Path, code: str) -> tuple[Measurement, Measurement]:
    """Both sides of a real bench: two runs each, of a second."""
    (folder / "train.py").write_text(code)
    protocol = Protocol(least_runs=2, most_runs=2, least_samples=5, least_s=0.0, most_s=1.0)
    a, b = bench(request(protocol=protocol))
    return a, b


@pytest.mark.slow
@pytest.mark.tf
@pytest.mark.parametrize("code", [MLP, CNN.replace("DROPOUT", "")], ids=["mlp", "cnn"])
def test_a_real_model_learns_the_same_on_both(folder: Path, code: str) -> None:
    a, b = short(folder, code)
    assert [side.task.backend for side in (a, b)] == ["tensorflow", "jax"]
    assert a.environment.jax == ""
    assert b.environment.jax
    assert a.task.parameter_count == b.task.parameter_count
    same = same_results(a, b)
    assert same
    assert (same.kind, same.difference_ratio < 1e-4) == ("steps", True)
    for run in (*a.runs, *b.runs):
        assert run.first.steps == (1, 2, 3, 4, 5)
        assert len(run.samples_s) >= 5
        assert run.telemetry.at_s
        assert min(run.first_step_s, run.peak_memory_bytes, run.import_s, run.build_s) > 0


@pytest.mark.slow
@pytest.mark.tf
def test_a_real_model_with_dropout_is_compared_at_rest(folder: Path) -> None:
    a, b = short(folder, CNN.replace("DROPOUT", "layers.Dropout(0.5),"))
    same = same_results(a, b)
    assert same
    assert (same.kind, same.difference_ratio < 1e-4) == ("at_rest", True)
    assert a.runs[0].first.values != b.runs[0].first.values
    assert replace(a.runs[0].first, evaluated=None) != FirstResults()
