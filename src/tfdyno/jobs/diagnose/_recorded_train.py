"""What a training recorded, as facts of its steps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.step_facts import CallbackFacts, StepFacts, TimelineFacts
from tfdyno.core.recipe.retreat import as_run, told_of
from tfdyno.core.train.training import Pace
from tfdyno.jobs.diagnose._recorded import card_facts, growth_facts, host_facts, long_firsts
from tfdyno.model.measure.statistics import mean, median
from tfdyno.model.measure.steady import steady_from
from tfdyno.words.base.language import say, say_later

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.measurement import Environment, Telemetry
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.store.run_folder import RunRecord

LEFT_OUT = say_later(
    "It was not recorded what a step waits for, what it computes and what is traced again."
)
AT_THE_END = "callbacks at the end of an epoch"
_LEAST_CALLBACK_S = 1e-3
"""The least time in each epoch; less is what Keras takes to ask a list of callbacks that do
nothing."""
NOT_APART = say_later("How much of the time between epochs was the callbacks' was not recorded.")


def train_facts(record: RunRecord, recipe: Recipe, place: str) -> StepFacts:
    """Return the steps of its last session, what its epochs cost beside them, and the machine.

    Args:
        record: Of the run.
        recipe: That it was trained with.
        place: The folder, as typed.

    Raises:
        UsageError: The run has left nothing that tells of its steps.
    """
    outcome: dict[str, Any] = record.outcome
    environment, told = record.environment, record.telemetry
    if not outcome or environment is None or told is None:
        raise _untold(record, place)
    pace = from_builtins(outcome.get("pace") or {}, Pace, where=place)
    step_s = _steady_s(pace) or _from_rate(outcome)
    if not step_s:
        raise UsageError(f"the run in {place} was too short to tell its steps",
                         remedy=_remedy(record))  # fmt: skip
    whole_s = mean(step_s)
    points = _while_training(told, float(outcome.get("seconds_s") or 0.0))
    replicas = int(outcome.get("replica_count") or 1)
    return StepFacts(
        title=Path(record.workload.reference.partition(":")[0]).name,
        device=environment.device,
        source="record",
        batch_size=int(outcome.get("global_batch_size") or 0) // replicas,
        replica_count=replicas,
        precision=recipe.precision or "float32",
        execution="xla" if as_run(recipe, record.retreats).execution == "xla" else "graph",
        parameter_bytes=4 * int(outcome.get("parameter_count") or 0),
        steps_per_epoch=_steps_per_epoch(outcome),
        epochs=record.settings.epochs,
        steps_seen=sum(pace.steps_per_sample) or int(outcome.get("steps") or 0),
        step_s=step_s,
        callbacks=tuple(_callbacks(pace)),
        epoch_ends_s=_each(pace, pace.epoch_end_s - pace.validation_s - _in_callbacks_s(pace)),
        epoch_saves_s=_each(pace, pace.save_s),
        growth=growth_facts([(told, _later(told, points, pace))], whole_s),
        host=host_facts([(told, points)], environment),
        timeline=_timeline(pace),
        cards=card_facts([(told, points)], environment),
        retreats=record.retreats,
        notes=tuple(_notes(record, pace, environment)),
    )


def _notes(record: RunRecord, pace: Pace, environment: Environment) -> list[str]:
    sitting = say(", sitting {number}", number=record.sittings) if record.sittings > 1 else ""
    day = record.started_at[:10]
    notes = [
        say("This is what tfdyno train recorded on {date}{sitting}.", date=day, sitting=sitting)
    ]
    notes += filter(None, [told_of(record.retreats)])
    if pace.samples_s:
        notes.append(say("Times of steps are means over half a second or more, so that single long "
                         "steps do not show."))  # fmt: skip
    else:
        notes.append(say("Only the mean step was recorded."))
    if environment.device == "cpu":
        notes.append(say("There was no card to watch."))
    if pace.epochs and pace.callback_s is None:
        notes.append(say(NOT_APART))
    return [*notes, say(LEFT_OUT)]


def _untold(record: RunRecord, place: str) -> UsageError:
    why = {
        "failed": f"it failed: {record.error}",
        "stopped": "it was stopped before it could write them",
    }.get(record.status, "it still runs, or was killed")
    what = f"the run in {place} has left nothing about its steps"
    return UsageError(what, why=why.rstrip("."), remedy=_remedy(record))


def _remedy(record: RunRecord) -> str:
    return f"look at the steps themselves: tfdyno diagnose {record.workload.reference}"


def _steady_s(pace: Pace) -> tuple[float, ...]:
    """Return samples of the steady state; all where none was found.

    Those that begin an epoch are left out, and those of few steps: what an epoch's end cut short.
    """
    counts = pace.steps_per_sample
    least = median(counts) / 4 if counts else 0.0
    usual = [s for place, (s, n) in enumerate(zip(pace.samples_s, counts, strict=True))
             if place not in pace.firsts and n >= least and s > 0]  # fmt: skip
    usual = usual or [s for s in pace.samples_s if s > 0]
    start = steady_from(usual)
    return tuple(usual[start:] if start < len(usual) else usual)


def _from_rate(outcome: dict[str, Any]) -> tuple[float, ...]:
    rate = float(outcome.get("samples_per_s") or 0.0)
    return (int(outcome.get("global_batch_size") or 0) / rate,) if rate > 0 else ()


def _steps_per_epoch(outcome: dict[str, Any]) -> int:
    epochs = int(outcome.get("epochs") or 0)
    return round(int(outcome.get("steps") or 0) / epochs) if epochs else 0


def _callbacks(pace: Pace) -> list[CallbackFacts]:
    """Return what was timed beside the steps and is known to be validation or callbacks."""
    parts = {"validation": pace.validation_s, AT_THE_END: _in_callbacks_s(pace)}
    return [CallbackFacts(name=name, per_epoch_s=_each(pace, seconds_s))
            for name, seconds_s in parts.items() if pace.epochs and seconds_s > 0]  # fmt: skip


def _in_callbacks_s(pace: Pace) -> float:
    """Sum over all epochs the time in the user's own; 0: there are none, or not told apart."""
    spent_s = pace.callback_s or 0.0
    return spent_s if spent_s >= _LEAST_CALLBACK_S * pace.epochs else 0.0


def _each(pace: Pace, seconds_s: float) -> float:
    """Give one for each epoch that ended."""
    return max(0.0, seconds_s) / pace.epochs if pace.epochs else 0.0


def _while_training(told: Telemetry, seconds_s: float) -> Sequence[int]:
    """Return points of the last so many seconds: before were imports, building and the data."""
    if not told.at_s:
        return ()
    began_s = told.at_s[-1] - seconds_s
    return [place for place, at_s in enumerate(told.at_s) if at_s >= began_s]


def _later(told: Telemetry, points: Sequence[int], pace: Pace) -> Sequence[int]:
    """Return points after the first epoch; none where there was no second."""
    if not (points and pace.firsts):
        return ()
    pairs = zip(pace.samples_s[: pace.firsts[0]], pace.steps_per_sample, strict=False)
    first_s = math.fsum(s * n for s, n in pairs) + pace.epoch_end_s / pace.epochs
    return [place for place in points if told.at_s[place] >= told.at_s[points[0]] + first_s]


def _timeline(pace: Pace) -> TimelineFacts | None:
    if not pace.samples_s:
        return None
    return TimelineFacts(
        whole_s=pace.samples_s,
        steps_each=pace.steps_per_sample,
        stalls=long_firsts(pace.samples_s, pace.steps_per_sample, pace.firsts),
    )
