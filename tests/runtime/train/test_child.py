"""The child process of a training: settings in force, one recipe with the same numbers as fit."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.forks import forked
from tests.runtime.trainings import MODEL, Run, all_trained

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.train.training import TrainOutcome

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
FIT = MODEL + (
    "h = model().fit(x, y, epochs=2, batch_size=16)\n"
    "print('losses', h.history['loss'])\n"
    "print('policy', keras.config.dtype_policy().name)\n"
    "print('on the CPU', hasattr(keras.layers.Normalization.adapt, '__wrapped__'))\n"
)
POLICY = FIT.replace(
    "import sys", "import keras\nkeras.config.set_dtype_policy('float32')\nimport sys"
)
RUNS = {
    "seeded": Run(code=FIT, recipe={"seed": 7}),
    "bfloat16": Run(code=POLICY, recipe={"seed": 7, "precision": "mixed_bfloat16"}),
    "threads": Run(code=FIT, recipe={"seed": 7, "threads_intra": 2}),
    "no_memory_limit": Run(code=FIT, recipe={"memory_limit_bytes": 1 << 30}),
}
PLAIN = "import keras\nkeras.utils.set_random_seed(7)\n" + FIT


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return all_trained(tmp_path_factory.mktemp("train"), RUNS)


def outcome(found: dict[str, Any], name: str) -> TrainOutcome:
    return from_builtins(found[name]["outcome"], TrainOutcome)


def test_a_seed_gives_the_numbers_of_plain_keras(found: dict[str, Any], tmp_path: Path) -> None:
    printed = forked(PLAIN, folder=tmp_path)
    line = next(one for one in printed.splitlines() if one.startswith("losses"))
    assert line in found["seeded"]["printed"].splitlines()
    assert outcome(found, "seeded").history["loss"] == json.loads(line.removeprefix("losses "))


def test_the_outcome_says_what_ran(found: dict[str, Any]) -> None:
    one = outcome(found, "seeded")
    assert (one.epochs, one.steps, one.updates, one.replica_count) == (2, 8, 8, 1)
    assert (one.seed, one.global_batch_size, one.parameter_count) == (7, 16, 9)
    assert str(one.software["keras"]).startswith("3.")
    assert one.software["device"] == "cpu"


def test_the_recipes_precision_holds_over_the_scripts(found: dict[str, Any]) -> None:
    assert "policy mixed_bfloat16" in found["bfloat16"]["printed"]
    note = "The code sets the policy float32; --precision mixed_bfloat16 holds."
    assert note in outcome(found, "bfloat16").notes
    losses = outcome(found, "bfloat16").history["loss"]
    assert losses == pytest.approx(outcome(found, "seeded").history["loss"], rel=0.02)
    assert losses != outcome(found, "seeded").history["loss"]


def test_what_was_set_is_reported_by_tensorflow(found: dict[str, Any]) -> None:
    applied = {one.name: (one.asked, one.reported) for one in outcome(found, "threads").applied}
    assert applied["threads_intra"] == ("2", "2")


def test_statistics_of_the_data_are_computed_on_the_cpu(found: dict[str, Any]) -> None:
    assert "on the CPU True" in found["seeded"]["printed"]


def test_what_this_machine_cannot_do_is_refused(found: dict[str, Any]) -> None:
    assert found["no_memory_limit"]["refused"].startswith("memory_limit_bytes needs a GPU")
