"""A model is built from the shapes of its data, with all that training needs."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.own_steps import CODER, HANDED, KEPT, PAIR
from tests.runtime.training_child import case
from tests.runtime.trainings import Run, all_trained

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_parts", "built")


def test_all_variables_are_there_before_the_first_batch() -> None:
    assert seen()["same"]
    assert seen()["slots"] == 2 + 2 * 4  # count and rate, two moments of four weights
    assert seen()["metrics"] == 2 + 2 + 4  # loss, mae, auc


def test_whether_every_batch_is_full_is_said_by_the_shapes() -> None:
    assert seen()["full"] == [False, True]


def test_the_size_of_a_batch_is_known_from_shapes_or_arguments() -> None:
    assert seen()["samples"] == [32, 8]


def test_a_budget_is_not_planned_for_batches_of_nobody_knows_how_many_samples() -> None:
    assert seen()["budget"] == (
        "remat = 1KiB cannot be planned: the data do not say how many samples a batch has; batch "
        "them with drop_remainder, or use blocks."
    )
    assert any("(activations of one sample " in note for note in seen()["blind"])


LAZY, SIZED = PAIR.replace("WIDTH", ""), PAIR.replace("WIDTH", "keras.Input((4,)), ")
TWO = {"strategy": "mirrored", "devices": 2}
SEED = {"seed": 11}
OUT = {"output": "run"}
RUNS = {
    "lazy": Run(code=LAZY, recipe=SEED, settings={**OUT, "epochs": 4}),
    "half": Run(code=LAZY, recipe=SEED, settings={**OUT, "epochs": 2}),
    "rest": Run(
        code=LAZY, folder="half", recipe=SEED, settings={**OUT, "epochs": 4, "resume": True}
    ),
    "coder": Run(code=CODER, settings=OUT),
    "accumulated": Run(code=LAZY, recipe={"accumulation": 2}, settings=OUT),
    "clipped": Run(code=HANDED, recipe={"clip_norm": 0.5}, settings=OUT),
    "clipped_nowhere": Run(code=HANDED, recipe={"clip_norm": 0.5}),
    "kept": Run(code=KEPT, recipe={"clip_norm": 0.5}),
    "kept_half": Run(code=KEPT, recipe={"clip_norm": 0.5, "precision": "mixed_float16"}),
    "lazy_on_two": Run(code=LAZY, recipe=TWO, settings=OUT),
    "sized_on_two": Run(
        code=SIZED.replace("Sequential([layers.D", "Sequential([keras.Input((8,)), layers.D"),
        recipe=TWO,
        settings=OUT,
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="module")
def found(place: Path) -> dict[str, dict[str, Any]]:
    return all_trained(place, RUNS)


def test_a_model_without_a_call_is_built_and_trained_by_its_own_step(
    found: dict[str, Any],
) -> None:
    outcome = found["lazy"]["outcome"]
    assert (outcome["epochs"], outcome["steps"], outcome["updates"]) == (4, 16, 16)
    # Critic 8 x 6 + 6 and 6 + 1, maker 4 x 8 + 8.
    assert outcome["parameter_count"] == 54 + 7 + 40
    # Count and rate each; Adam's two moments of four weights; SGD of Keras 3 keeps none.
    assert "slots [2, 10, 2] built False" in found["lazy"]["printed"]


def test_it_goes_on_from_its_checkpoint_as_if_there_had_been_no_end(
    found: dict[str, Any], place: Path
) -> None:
    rest, whole = found["rest"]["outcome"], found["lazy"]["outcome"]
    assert rest["resumed_from"]
    assert rest["history"] == whole["history"]
    assert len(whole["history"]["loss"]) == 4
    marker = json.loads(max((place / "lazy/run/checkpoints").glob("step-*.json")).read_text())
    kept = {name.partition("/")[0] for name, *_ in marker["variables"]}
    assert kept == {"model", "optimizer", "metrics"}


def test_the_networks_in_it_are_written_beside_the_model_or_in_its_place(
    found: dict[str, Any], place: Path
) -> None:
    files = {one.name for one in (place / "lazy" / "run").glob("*.keras")}
    assert files == {"model.keras", "model.critic.keras", "model.maker.keras"}
    note = found["lazy"]["outcome"]["notes"][-1]
    assert note.endswith("by themselves: model.critic.keras, model.maker.keras.")
    files = {one.name for one in (place / "coder" / "run").glob("*.keras")}
    assert files == {"model.encoder.keras", "model.decoder.keras"}
    refused, _ = found["coder"]["outcome"]["notes"][-2:]
    assert refused.startswith("The model was not saved: Object Coder was created by passing")
    assert "Example" not in refused


def test_a_call_that_takes_something_else_than_the_data_builds_nothing(
    found: dict[str, Any],
) -> None:
    assert "decoded (1, 8)" in found["coder"]["printed"]  # from codes of 2, not from data of 8


def test_what_is_set_on_an_optimizer_that_its_step_does_not_use_is_refused(
    found: dict[str, Any],
) -> None:
    assert found["accumulated"]["refused"] == (
        "accumulation cannot be set for pair: its train_step keeps optimizers beside that of "
        "compile; set it on each of them in the script."
    )


def test_an_optimizer_that_is_handed_to_compile_under_another_name_is_not_the_one_of_keras(
    found: dict[str, Any],
) -> None:
    """Keras builds its own, unused one with the model, which is called by its data here."""
    for name in ("clipped", "clipped_nowhere"):
        assert found[name]["refused"].startswith("clip_norm cannot be set for handed: "), name


def test_that_of_compile_may_be_kept_under_another_name(found: dict[str, Any]) -> None:
    for name in ("kept", "kept_half"):
        taken = {one["name"]: one["reported"] for one in found[name]["outcome"]["applied"]}
        assert taken["clip_norm"] == "0.5", name


def test_on_two_replicas_it_trains_where_its_networks_know_their_inputs(
    found: dict[str, Any],
) -> None:
    outcome = found["sized_on_two"]["outcome"]
    assert (outcome["replica_count"], outcome["steps"], outcome["updates"]) == (2, 4, 4)
    assert found["lazy_on_two"]["refused"] == (
        "pair has layers that its first step would make: on several replicas a step of its own "
        "cannot; give each model in it an Input, or call it once on data before fit."
    )
