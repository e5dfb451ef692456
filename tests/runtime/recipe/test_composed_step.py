"""Two devices under every setting learn what one device learns from the whole batch."""

from __future__ import annotations

import functools

import pytest
from tests.runtime.training_child import case

pytestmark = pytest.mark.tf
seen = functools.partial(case, "training_mirrored")
EQUAL = [
    "odd_batches",
    "all_at_once", "no_samples", "regularized", "embedded", "two_outputs", "own_step",
    "two_updates",
]  # fmt: skip
"""What the cells of test_composition, whose batches are even, do not have."""
SLOW = [
    "graph_momentum", "uneven", "xla_adam", "several_steps", "accumulated", "accumulated_xla",
    "clipped", "average", "no_samples_several_steps", "embedded_accumulated",
]  # fmt: skip


def check_equal(name: str, *words: str) -> None:
    found = seen(name, *words)
    assert found["moved"] > 1e-3, "nothing was learned: the numbers would agree whatever is wrong"
    assert found["weights"] < 2e-5  # 1.3e-5 on a CPU without AVX-512, below 1e-5 with it
    assert found["replicas"] == 0.0
    assert found["updates"][0] == found["updates"][1]
    assert found["names"][0] == found["names"][1]
    assert max(found["history"].values()) < 2e-5
    assert found["skipped"] == 0


@pytest.mark.parametrize("name", EQUAL)
def test_two_devices_are_one_with_the_whole_batch(name: str) -> None:
    check_equal(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_two_devices_are_one_with_the_whole_batch_also_here(name: str) -> None:
    check_equal(name, "slow")


@pytest.mark.slow
def test_half_precision_is_one_with_the_whole_batch_as_far_as_it_reaches() -> None:
    found = seen("half_precision", "slow")
    assert found["moved"] > 0.1
    assert found["weights"] < 1e-3
    assert found["replicas"] == 0.0
    assert found["updates"] == [2, 2]


def test_what_was_asked_is_what_ran() -> None:
    applied = seen("all_at_once")["applied"]
    assert applied["execution"] == "xla"
    assert applied["strategy"] == "MirroredStrategy, 2 replicas"
    assert (applied["ema"], applied["clip_norm"]) == ("0.8", "0.05")
    assert (applied["accumulation"], applied["steps_per_execution"]) == ("2", "4")


def test_an_accumulated_update_counts_as_one() -> None:
    assert (seen("all_at_once")["steps"], seen("all_at_once")["updates"][0]) == (16, 8)


def test_several_updates_in_a_step_are_refused_where_they_cannot_be_put_off() -> None:
    sentence = seen("two_updates")["xla"]
    assert "updates weights more than once in a step" in sentence
    assert "execution = graph and accumulation = 1" in sentence
    assert "set it on each of them" in seen("two_updates")["accumulated"]


def test_every_sample_counts_the_same_however_they_are_dealt_out() -> None:
    found = seen("weighting")
    assert found["examples"] >= 40
    assert found["empty"] > 0
    assert found["most"] > 8


def test_an_overflow_on_one_device_skips_the_update_on_both() -> None:
    found = seen("overflow")
    second, third, fourth = found["steps_apart"]
    assert third == 0.0
    assert second > 0.0
    assert fourth > 0.0
    assert found["finite"]
    assert found["replicas"] == 0.0
    assert (found["skipped"], found["counts"]) == (1, [4, 3])
    assert found["scale"] == 2.0**14  # halved once


def test_keras_alone_goes_by_the_first_device_and_spoils_its_weights() -> None:
    assert seen("overflow")["keras"] == "2 weights not finite"


@pytest.mark.slow
def test_moving_averages_are_those_of_the_whole_batch_on_both_devices() -> None:
    found = seen("moving_averages", "slow")
    assert found["size"] > 0.1
    assert found["means"] < 1e-5
    assert found["replicas"] == 0.0


def test_devices_drop_different_inputs_at_each_step() -> None:
    found = seen("masks")
    assert found["different"] == 6  # of two devices in three steps
    assert found["share"] == pytest.approx(0.5, abs=0.15)
    (first, steps), other = found["seed"]
    assert (steps, other) == (3, [first, 3])


@pytest.mark.slow
def test_a_stop_in_the_middle_of_an_epoch_changes_no_bit() -> None:
    found = seen("resumed", "slow")
    assert found["at"] == 7
    assert found["apart"] == 0.0
    assert found["history"] == 0.0
    assert found["updates"] == [10, 10]


@pytest.mark.slow
def test_a_stop_in_the_middle_of_an_update_changes_no_bit() -> None:
    found = seen("resumed_within_update", "slow")
    assert found["at"] == 7
    assert found["apart"] == 0.0
    assert found["history"] == 0.0
    assert found["replicas"] == 0.0


def test_float8_under_a_strategy_of_the_code_is_refused_as_under_one_of_the_recipe() -> None:
    said = seen("float8")["said"]
    what = "precision = float8 and tf.distribute.MirroredStrategy do not go together: Keras' float8"
    assert said.startswith(what)
    assert said.endswith("; use precision = mixed_bfloat16, or one device.")
