"""jobs/_same_losses: each recipe is trained once with one seed, for as many samples."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import InputOptions, Recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.diagnose.same_losses import EPOCHS, SEED, SameLosses

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

WORKLOAD = Workload(reference="train.py", kind="script")
BASE = Recipe()
PREFETCH = Recipe(input=InputOptions(prefetch=-1))


class Trainings:
    """What was trained, and the losses that come out by the recipe's batch size or its order."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.losses: list[list[float | None]] = [[1.0, 0.5]]
        self.stopped = ""

    def train(self, request: Value, **_ways: Any) -> Value:
        self.asked.append(request)
        losses = self.losses[min(len(self.asked), len(self.losses)) - 1]
        outcome = SimpleNamespace(history={"loss": losses}, stopped=self.stopped)
        return SimpleNamespace(outcome=outcome)


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch) -> Trainings:
    made = Trainings()
    monkeypatch.setattr("tfdyno.jobs.diagnose.same_losses.train", made.train)
    return made


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def losses(**known: Any) -> SameLosses:
    usual = {"folder": Path(), "batch_size": 32, "steps_per_epoch": 0}
    return SameLosses(WORKLOAD, **{**usual, **known})


def quiet(_line: str) -> None:
    """Tell nobody."""


def test_both_are_trained_alike_in_a_folder_that_goes(trainings: Trainings) -> None:
    found = losses().of(BASE, PREFETCH, quiet)
    assert (found.agrees, found.steps, found.values) == (True, 16, 2)
    a, b = trainings.asked
    assert [one.recipe.seed for one in (a, b)] == [SEED, SEED]
    assert (b.recipe.input.prefetch, a.recipe.input.prefetch) == (-1, 0)
    assert a.settings.epochs == EPOCHS
    assert a.settings.steps_per_epoch == b.settings.steps_per_epoch == 8
    assert a.settings.only_losses
    assert not a.settings.save_model
    assert a.settings.output != b.settings.output
    assert not Path(a.settings.output).parent.exists()
    assert a.settings.first_weights == b.settings.first_weights == "first.npz"


def test_the_unchanged_run_is_trained_once_for_all_fixes(trainings: Trainings) -> None:
    same = losses()
    same.of(BASE, PREFETCH, quiet)
    same.of(BASE, Recipe(input=InputOptions(parallel_calls=-1)), quiet)
    assert len(trainings.asked) == 3


def test_losses_that_differ_are_held_against_a_second_unchanged_run(trainings: Trainings) -> None:
    trainings.losses = [[1.0, 0.5], [1.0, 0.49], [1.0, 0.495]]
    # |0.5 - 0.49| / 0.5 = 2 %; the unchanged run differs from itself by 1 %, so that 2 % pass.
    found = losses().of(BASE, PREFETCH, quiet)
    assert len(trainings.asked) == 3
    assert found.unchanged_ratio == pytest.approx(0.01)
    assert found.difference_ratio == pytest.approx(0.02)
    trainings.asked.clear()
    trainings.losses = [[1.0, 0.5], [1.0, 0.4], [1.0, 0.5]]
    assert not losses().of(BASE, PREFETCH, quiet).agrees


def test_the_seed_of_a_recipe_stays(trainings: Trainings) -> None:
    losses().of(Recipe(seed=3), Recipe(seed=3, input=InputOptions(prefetch=2)), quiet)
    assert {one.recipe.seed for one in trainings.asked} == {3}


@pytest.mark.parametrize(("visible", "card"), [(None, "0"), ("2,3", "2"), ("-1", "-1")])
def test_on_jax_one_device_trains_as_a_bench_measures_there(
    trainings: Trainings, monkeypatch: pytest.MonkeyPatch, visible: str | None, card: str
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    losses(backend="jax").of(BASE, PREFETCH, quiet)
    assert [one.jax for one in trainings.asked] == [JaxPlan(host_devices=1)] * 2
    assert [one.recipe.visible_devices for one in trainings.asked] == [card] * 2
    trainings.asked.clear()
    losses().of(BASE, PREFETCH, quiet)
    assert {(one.jax, one.recipe.visible_devices) for one in trainings.asked} == {(None, "")}


@pytest.mark.parametrize(
    ("base", "changed", "steps"),
    [
        (BASE, PREFETCH, (8, 8)),
        (BASE, Recipe(steps_per_execution=3), (9, 9)),  # whole executions
        (BASE, Recipe(steps_per_execution=32), (32, 32)),
        (BASE, Recipe(batch_size=64), (8, 4)),  # 8 * 32 = 4 * 64
        (Recipe(batch_size=48), Recipe(batch_size=32), (4, 6)),  # 4 * 48 = 6 * 32 = 192
        (BASE, Recipe(batch_size=256), (32, 4)),
    ],
)
def test_both_see_as_many_samples(base: Recipe, changed: Recipe, steps: tuple[int, int]) -> None:
    assert losses().steps(base, changed) == steps


def test_a_short_epoch_is_not_made_longer() -> None:
    assert losses(steps_per_epoch=5).steps(BASE, PREFETCH) == (5, 5)


def test_a_loss_that_is_no_number_never_agrees(trainings: Trainings) -> None:
    trainings.losses = [[None, None]]
    trainings.stopped = "NaN loss"
    assert not losses().of(BASE, PREFETCH, quiet).agrees


def test_a_loss_of_weights_that_are_no_numbers_never_agrees(trainings: Trainings) -> None:
    trainings.losses = [[0.6931, 0.6931]]
    trainings.stopped = "NaN weights"
    assert not losses().of(BASE, PREFETCH, quiet).agrees


def test_an_end_from_outside_is_passed_on(trainings: Trainings) -> None:
    trainings.stopped = "SIGTERM"
    with pytest.raises(KeyboardInterrupt):
        losses().of(BASE, PREFETCH, quiet)


LOOP = """
import keras, numpy as np, tensorflow as tf
x, y = np.random.rand(320, 8).astype("f"), np.random.rand(320, 4).astype("f")
m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(4)])
rate = keras.optimizers.SGD(0.1)
@tf.function
def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((m(a) - b) ** 2)
    rate.apply_gradients(zip(tape.gradient(loss, m.trainable_variables), m.trainable_variables))
    return loss
for a, b in tf.data.Dataset.from_tensor_slices((x, y)).shuffle(320).batch(32).repeat(COUNT):
    step(a, b)
open("reached", "w").write("the end")
"""


@pytest.mark.tf
def test_the_losses_of_a_loop_are_those_of_its_own_steps_under_each_recipe(
    tmp_path: Path,
) -> None:
    (tmp_path / "loop.py").write_text(LOOP.replace("COUNT", ""))
    workload = parse_reference("loop.py", mode="train")
    same = SameLosses(workload, folder=tmp_path, batch_size=32, steps_per_epoch=10, is_loop=True)
    said: list[str] = []
    found = same.of(Recipe(), Recipe(execution="xla"), said.append)
    assert found.agrees
    assert (found.steps, found.values) == (16, 2)  # two means of eight steps
    assert found.difference_ratio < 1e-4
    assert said[0] == "comparing losses: importing TensorFlow"
    assert not (tmp_path / "reached").exists()
    other = same.of(Recipe(), Recipe(seed=3), said.append)  # as what learns something else
    assert not other.agrees


@pytest.mark.tf
def test_a_loop_that_ends_before_is_compared_by_the_steps_that_it_has(
    tmp_path: Path,
) -> None:
    (tmp_path / "loop.py").write_text(LOOP.replace("COUNT", "1"))
    workload = parse_reference("loop.py", mode="train")
    same = SameLosses(workload, folder=tmp_path, batch_size=32, steps_per_epoch=10, is_loop=True)
    found = same.of(Recipe(), Recipe(threads_intra=1), quiet)
    assert (found.agrees, found.steps, found.values) == (True, 10, 2)  # of eight and of two


def test_a_loop_makes_its_own_batches() -> None:
    assert losses(is_loop=True, steps_per_epoch=5).steps(BASE, PREFETCH) == (8, 8)
