"""Set the fastest recipe of a tuning against the one it started from: in turns, same losses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.measure.fix_proof import FixProof
from tfdyno.core.measure.measurement import Protocol
from tfdyno.core.messages.tune import Pair
from tfdyno.jobs.bench import bench
from tfdyno.jobs.diagnose.fixes import (
    LEAST_RUNS,
    MOST_RUNS,
    is_settled,
    lacks_steady_runs,
    proof_of,
)
from tfdyno.jobs.tune._losses import NO_DATA
from tfdyno.jobs.tune._runs import RunFailed, benched
from tfdyno.jobs.tune.request import NodeLost
from tfdyno.model.measure.comparison import compare
from tfdyno.model.measure.trial_judge import ranked
from tfdyno.words.base.language import ENGLISH, answering, say
from tfdyno.words.base.stages import under

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.measure.fix_proof import Agreement
    from tfdyno.core.measure.measurement import Environment, Measurement
    from tfdyno.core.train.tuning import Trial, Tuning
    from tfdyno.jobs.tune._look import StartInspection
    from tfdyno.jobs.tune.request import Node, TuneRequest

CAUSE = "tuning"
MOST_PROOFS = 3
"""The most trials that may be the answer and are set against the start until one holds."""
_CHANGED = (
    "It is faster. An update of the weights takes other samples than before: what is learned was "
    "not compared, and the learning rate may have to change with it"
)


def settled(
    request: TuneRequest,
    so_far: Tuning,
    look: StartInspection,
    node: Node,
    place: Callable[[], Environment],
    progress: Callable[[str], None],
) -> Tuning:
    """Return the answer: trials are set against the start until one holds.

    Args:
        request: With the recipe that it started from.
        so_far: All trials.
        look: The start; one that does not fit leaves nothing to compare with.
        node: The machine that makes all runs.
        place: Where that is.
        progress: Called with a line at every stage.

    Raises:
        TfdynoError: The place failed, and no recipe: all is kept for another session.
    """
    if so_far.best is None or so_far.trial(so_far.best).recipe == so_far.start:
        return so_far
    if not look.start.is_judged:
        return replace(so_far, recipe=so_far.trial(so_far.best).recipe)
    order = ranked(so_far.trials, so_far.start)[:MOST_PROOFS]
    found: list[FixProof] = []
    for one in order:
        proof = proven(request, one, look, node, place, progress)
        if proof.kept:
            notes = (*so_far.notes, *_not_proven(order, found))
            why = so_far.uncompared
            if NO_DATA in proof.reason:  # as it came out only now
                why = _no_data(request)
            return replace(so_far, best=one.number, proof=proof, recipe=one.recipe, notes=notes,
                           uncompared=why)  # fmt: skip
        found.append(proof)
    notes = (*so_far.notes, *_not_proven(order[1:], found[1:]))
    return replace(so_far, proof=found[0], notes=notes) if found else so_far


def _not_proven(trials: Sequence[Trial], proofs: Sequence[FixProof]) -> tuple[str, ...]:
    pairs = zip(trials, proofs, strict=False)
    return tuple(f"Trial {one.number} is not the answer. {proof.reason}" for one, proof in pairs)


def proven(
    request: TuneRequest,
    best: Trial,
    look: StartInspection,
    node: Node,
    place: Callable[[], Environment],
    progress: Callable[[str], None],
) -> FixProof:
    """Measure both in turns; where the batch is the same, compare what a few steps learn.

    Args:
        request: With the recipe that it started from.
        best: The trial.
        look: The start.
        node: The machine that makes all runs.
        place: Where that is.
        progress: Called with a line at every stage.

    Raises:
        TfdynoError: The place failed.
    """

    def tell(line: str) -> None:
        progress(under(say("proof"), line))

    def told(agreed: Agreement | None = None, *, reason: str = "", kept: bool = False) -> FixProof:
        with answering(ENGLISH):  # as the file of the answer has it
            return proof_of(fix, sides, found, agreed, reason=reason, kept=kept)

    fix = FixProof(cause=CAUSE, settings=best.changes, reason="")
    try:
        sides = _measured(request, best, node, place, tell)
    except RunFailed as failed:
        return replace(fix, reason=f"It could not be measured against the start: {failed}")
    with answering(ENGLISH):
        found = compare(*sides)
    if found.verdict != "faster":
        return told()
    if best.changes_batch:
        return told(reason=f"{_CHANGED}.", kept=True)
    if look.uncompared:
        return told(reason=_of_speed(look.uncompared), kept=True)
    pair = Pair(
        workload=request.workload, before=request.recipe, after=best.recipe,
        batch_size=look.batch_size, is_loop=look.is_loop, backend=request.backend,
        steps_per_epoch=look.samples_per_epoch // look.batch_size if look.batch_size else 0,
    )  # fmt: skip
    try:
        agreed = node.compare(pair, tell)
    except NodeLost:
        raise
    except TfdynoError as error:
        if NO_DATA in str(error):  # a function whose batches were made up for the runs
            return told(reason=_of_speed(_no_data(request)), kept=True)
        return told(reason=f"It is faster, but its losses could not be compared: {error}")
    finally:
        node.ended()
    return told(agreed)


def _no_data(request: TuneRequest) -> str:
    return f"{request.workload.reference} {NO_DATA}"


def _of_speed(why: str) -> str:
    return f"It is faster. Losses were not compared: {why}."


def _measured(
    request: TuneRequest,
    best: Trial,
    node: Node,
    place: Callable[[], Environment],
    progress: Callable[[str], None],
) -> tuple[Measurement, ...]:
    """Return both in turns, or what is kept of them if it decides anything."""
    asked = bench.BenchRequest(
        workload=request.workload,
        recipe=request.recipe,
        against=best.recipe,
        backend=request.backend,
        against_backend=request.backend,
        protocol=Protocol(
            data=request.data,
            least_runs=LEAST_RUNS,
            most_runs=MOST_RUNS,
            target_ratio=0.0,  # ``is_settled`` says when it is enough
            least_s=request.protocol.least_s,
            most_s=request.protocol.most_s,
        ),
        folder=request.folder,
        label="tune",
    )
    return benched(
        asked, node, place, progress=progress, enough=is_settled,
        serves=lambda kept: not lacks_steady_runs(kept),
    )  # fmt: skip
