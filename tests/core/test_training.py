"""The nouns of a training go to another process and come back as they were."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as some

from tfdyno.core.codec import from_builtins, to_builtins
from tfdyno.core.finding import Evidence, Finding, FixStep
from tfdyno.core.training import Applied, RunSettings, TrainOutcome

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


@given(
    steps=some.integers(0, 10**9),
    losses=some.lists(some.floats(allow_nan=False, allow_infinity=False), max_size=5),
    stopped=some.sampled_from(["", "SIGTERM", "NaN loss"]),
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
    )
    text = json.dumps(to_builtins(outcome))
    assert from_builtins(json.loads(text), TrainOutcome) == outcome
