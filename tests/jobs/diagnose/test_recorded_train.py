"""What a training wrote becomes facts of its steps, worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs.records import CARD, PACE, TELEMETRY, on_card, record
from tests.view.trainings import ENVIRONMENT

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import Telemetry
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.diagnose._recorded_train import AT_THE_END, NOT_APART, train_facts

if TYPE_CHECKING:
    from tfdyno.core.measure.step_facts import StepFacts
    from tfdyno.store.run_folder import RunRecord


def seen(one: RunRecord | None = None, recipe: Recipe | None = None) -> StepFacts:
    return train_facts(one or record(), recipe or Recipe(), "run")


def paced(**changed: Any) -> RunRecord:
    from tfdyno.core.base.codec import to_builtins

    one = record()
    return replace(one, outcome={**one.outcome, "pace": to_builtins(replace(PACE, **changed))})


def test_steps_are_those_that_do_not_begin_an_epoch() -> None:
    found = seen()
    assert set(found.step_s) == {0.1}
    assert found.source == "record"
    assert (found.batch_size, found.replica_count) == (32, 1)
    assert found.steps_per_epoch == 40  # 120 / 3
    assert found.steps_seen == 120


def test_what_the_end_of_an_epoch_cut_short_does_not_count() -> None:
    short = paced(samples_s=(*PACE.samples_s, 9.0), steps_per_sample=(*PACE.steps_per_sample, 1))
    assert max(seen(short).step_s) == 0.1


def test_an_epoch_costs_what_was_timed_beside_its_steps() -> None:
    # of 9 s in 3 epochs 6 are validation and 1.5 callbacks
    found = seen()
    costs = {one.name: one.per_epoch_s for one in found.callbacks}
    assert costs == pytest.approx({"validation": 2.0, AT_THE_END: 0.5})
    assert (found.epoch_ends_s, found.epoch_saves_s) == pytest.approx((0.5, 0.1))
    assert NOT_APART not in found.notes


def test_callbacks_are_not_named_where_there_are_none() -> None:
    found = seen(paced(callback_s=0.0005))  # Keras asked a list of none
    assert [one.name for one in found.callbacks] == ["validation"]
    assert found.epoch_ends_s == pytest.approx(1.0)


def test_a_record_that_did_not_tell_callbacks_apart_says_so() -> None:
    found = seen(paced(callback_s=None))
    assert [one.name for one in found.callbacks] == ["validation"]
    assert found.epoch_ends_s == pytest.approx(1.0)
    assert NOT_APART in found.notes


def test_first_samples_of_epochs_are_marked_in_the_course() -> None:
    timeline = seen().timeline
    assert timeline
    assert timeline.steps_each == PACE.steps_per_sample
    assert [(one.step, one.steps, one.whole_s) for one in timeline.stalls] == [
        (45, 5, 0.3), (85, 5, 0.2),
    ]  # fmt: skip
    assert all(one.is_first_of_epoch for one in timeline.stalls)


def test_a_first_sample_like_the_others_is_not_marked() -> None:
    timeline = seen(paced(samples_s=(0.1,) * 24)).timeline
    assert timeline
    assert timeline.stalls == ()


def test_the_card_counts_while_steps_ran_alone() -> None:
    place = replace(ENVIRONMENT, device="gpu", cards=(CARD,))
    (card,) = seen(record(environment=place, telemetry=on_card(0.4))).cards
    # of 30 points the last 22 s count, and the one at their beginning
    assert card.busy_ratio == pytest.approx(0.4 * 22 / 23)
    assert (card.name, card.power_w, card.power_limit_w) == ("NVIDIA L4", 50.0, 72.0)
    assert (card.clock_hz, card.clock_limit_hz, card.lowered_ratio) == (1.8e9, 2.0e9, 0.0)


def test_memory_that_grows_after_the_first_epoch_is_told_by_the_step() -> None:
    at_s = tuple(float(at) for at in range(1, 121))
    grows = tuple(1 << 30 for _ in range(20)) + tuple((1 << 30) + at * 10_000_000
                                                     for at in range(100))  # fmt: skip
    told = replace(TELEMETRY, at_s=at_s, memory_bytes=grows, cpu_ratio=(), other_cpu_ratio=())
    one = record(telemetry=told)
    (found,) = seen(replace(one, outcome={**one.outcome, "seconds_s": 110.0})).growth
    # 10 MB a second, 10 steps a second; the mean of all steps is 0.1 s
    assert found.bytes_per_step == pytest.approx(1_000_000)
    assert found.low_bytes_per_step > 0
    flat = replace(told, memory_bytes=(1 << 30,) * 120)
    assert seen(replace(one, telemetry=flat)).growth == ()


def test_a_training_of_one_epoch_may_still_fill_a_cache() -> None:
    at_s = tuple(float(at) for at in range(1, 121))
    told = replace(TELEMETRY, at_s=at_s, memory_bytes=tuple(at * 10_000_000 for at in range(120)),
                   cpu_ratio=(), other_cpu_ratio=())  # fmt: skip
    one = paced(firsts=(), epochs=1)
    outcome = {**one.outcome, "seconds_s": 110.0}
    assert seen(replace(one, telemetry=told, outcome=outcome)).growth == ()


def test_a_run_of_an_older_version_tells_its_mean_step() -> None:
    one = record()
    outcome = {name: value for name, value in one.outcome.items() if name != "pace"}
    found = seen(replace(one, outcome=outcome))
    assert found.step_s == pytest.approx((32 / 204.8,))  # batch over samples a second
    assert found.timeline is None
    assert "Only the mean step was recorded." in found.notes


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"status": "failed", "error": "the disk is full.", "outcome": {}},
         "it failed: the disk is full; look at"),
        ({"status": "running", "outcome": {}}, "it still runs, or was killed"),
        ({"status": "stopped", "outcome": {}}, "it was stopped before"),
    ],
)  # fmt: skip
def test_a_run_that_left_nothing_says_why_and_what_to_do(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match="the run in run has left nothing about its steps") as told:
        seen(record(**changed))
    assert why in str(told.value)
    assert "tfdyno diagnose train.py" in str(told.value)


def test_a_run_of_one_step_is_too_short() -> None:
    one = record()
    outcome = {**one.outcome, "pace": {}, "samples_per_s": 0.0}
    with pytest.raises(UsageError, match="too short to tell its steps"):
        seen(replace(one, outcome=outcome, telemetry=Telemetry()))
