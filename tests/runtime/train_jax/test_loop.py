"""runtime/train_jax/loop: a training goes on as if it had not ended; see also jobs/launch."""

from __future__ import annotations

import math

from tests.runtime.jaxes import looked


def test_a_training_that_goes_on_learns_the_same() -> None:
    found = looked("loop")
    assert len(found["whole"]["loss"]) == 3
    assert found["on"] == found["whole"]
    assert found["from"] == "b/checkpoints/step-000000003.json"
    assert found["steps"] == [9, 9, 9]


def test_the_layout_is_told_first_and_kept_where_it_is_asked_for() -> None:
    found = looked("loop")
    assert found["events"] == ["layout", "begin"]
    assert found["kept"]


def test_a_loss_that_is_no_number_ends_it_with_a_finding() -> None:
    assert looked("loop")["lost"] == ["NaN loss", 1]


def test_weights_that_are_lost_behind_a_finite_loss_end_it_too() -> None:
    stopped, epochs, losses, model, summaries, kept = looked("loop")["hidden"]
    assert (stopped, epochs, model, len(losses)) == ("NaN weights", 1, "", 1)
    assert math.isfinite(losses[0])
    assert summaries[0] == (
        "hidden/up/kernel is not finite at step 3 of epoch 1, though the loss is a number, "
        "and the steps cannot be repeated to show where it began."
    )
    assert kept == ["step-000000000.json"]


def test_trainings_that_share_their_first_weights_begin_alike() -> None:
    """Under another seed, which alone gives another loss."""
    first, second, other = looked("loop")["alike"]
    assert first == second != other


def test_in_the_middle_of_an_epoch_it_goes_on_with_the_next_batch() -> None:
    whole, on, start = looked("loop")["late"]
    assert start == "late/checkpoints/step-000000002.json"
    assert on == whole


def test_an_epoch_of_which_all_steps_are_done_only_ends() -> None:
    """It is killed between the last step and the end of the epoch."""
    found = looked("loop")
    assert found["ended"] == [found["whole"], 9]


def test_the_outcome_says_what_was_trained_over_what() -> None:
    found = looked("outcome")
    assert (found["replicas"], found["batch"], found["parameters"]) == (2, 4, 49)
    assert found["model"] == "model.keras"
    assert found["memory"]
    reported = {one["name"]: one["reported"] for one in found["applied"]}
    assert reported["mesh"] == "data=2,model=2 on 4 devices of 1 process"
    assert reported["backend"].startswith("JAX ")


def test_the_recipe_is_set_or_refused() -> None:
    found = looked("outcome")
    assert found["settled"] == []
    assert found["policy"].startswith("precision = mixed_bfloat16 does not reach the layers of e")
