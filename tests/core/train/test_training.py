"""The nouns of a training go to another process and come back as they were."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tfdyno.core.base.codec import from_builtins, to_builtins
from tfdyno.core.base.errors import UsageError
from tfdyno.core.doctor.finding import Evidence, Finding, FixStep
from tfdyno.core.train.training import Applied, Pace, RunSettings, TrainOutcome, how_often

LOST = Finding(
    cause="num.nan",
    verdict="proven",
    severity="error",
    summary="The inputs hold values that are not finite.",
    why="A number that is not finite makes all that follows so.",
    evidence=(Evidence(text="x: 1 NaN of 128 values", source="the batch"),),
    fix=(FixStep(text="Repair the data."),),
)


def test_a_run_that_asks_for_nothing_writes_nothing_and_keeps_three_checkpoints() -> None:
    plain = RunSettings()
    assert (plain.output, plain.resume, plain.tensorboard, plain.norms_steps) == (
        "",
        False,
        False,
        0,
    )
    assert plain.keep == 3
    assert plain.checkpoint_s == 300.0


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (500, (500, 0.0)), ("1_000", (1000, 0.0)),
        ("30s", (0, 30.0)), (" 1.5 min ", (0, 90.0)), ("2h", (0, 7200.0)),
    ],
)  # fmt: skip
def test_how_often_is_a_number_of_steps_or_a_time(
    asked: object, expected: tuple[int, float]
) -> None:
    assert how_often(asked, "checkpoint_every") == expected


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("often", "checkpoint_every often cannot be read; write a number of steps, as 500, or a"),
        ("10 days", "10 days cannot be read"),
        (0, "checkpoint_every 0 is not possible"),
        ("0min", "checkpoint_every 0 is not possible"),
        (1.5, "checkpoint_every 1.5 is not possible"),
        ("1.2.3s", "'1.2.3' is not a number"),
    ],
)
def test_what_is_no_frequency_is_refused(asked: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        how_often(asked, "checkpoint_every")


@given(
    steps=some.integers(0, 10**9),
    losses=some.lists(some.floats(allow_nan=False, allow_infinity=False), max_size=5),
    stopped=some.sampled_from(["", "SIGTERM", "NaN loss", "NaN weights"]),
)
def test_an_outcome_survives_json(steps: int, losses: list[float], stopped: str) -> None:
    outcome = TrainOutcome(
        history={"loss": losses},
        epochs=len(losses),
        steps=steps,
        updates=steps // 2,
        stopped=stopped,
        applied=(Applied(name="execution", asked="xla", reported="xla"),),
        findings=(LOST,),
        pace=Pace(samples_s=(0.1, 0.2), steps_per_sample=(5, 4), firsts=(1,), epochs=1),
    )
    text = json.dumps(to_builtins(outcome))
    assert from_builtins(json.loads(text), TrainOutcome) == outcome
