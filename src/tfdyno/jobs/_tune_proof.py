"""Set the fastest recipe of a tuning against the one it started from: in turns, same losses."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.errors import TfdynoError
from tfdyno.core.fix_proof import FixProof
from tfdyno.core.measurement import Protocol
from tfdyno.jobs import bench
from tfdyno.jobs._same_losses import SameLosses
from tfdyno.jobs.diagnose_fixes import LEAST_RUNS, MOST_RUNS, TARGET_RATIO, is_settled
from tfdyno.model.comparison import compare
from tfdyno.model.summary import summary

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.fix_proof import Agreement
    from tfdyno.core.measurement import Comparison, Measurement
    from tfdyno.core.tuning import Trial, Tuning
    from tfdyno.jobs._tune_question import Node, Question

CAUSE = "tuning"
MOST_PROOFS = 3
"""Of the fastest trials, that are set against the start until one holds."""
_CHANGED = (
    "It is faster. An update of the weights takes other samples than before: what is learned was "
    "not compared, and the learning rate may have to change with it"
)


def settled(
    question: Question,
    so_far: Tuning,
    start: Trial,
    node: Node,
    *,
    batch_size: int,
    samples_per_epoch: int,
    progress: Callable[[str], None],
) -> Tuning:
    """The answer: the fastest trial is set against the start, then the next ones until one holds.

    Args:
        question: With the recipe that it started from.
        so_far: All trials.
        start: As it was measured; one that does not fit leaves nothing to compare with.
        node: The machine that makes all runs.
        batch_size: Of the start, per replica; 0: not known.
        samples_per_epoch: 0: not known.
        progress: Called with a line at every stage.
    """
    if so_far.best is None or so_far.trial(so_far.best).recipe == so_far.start:
        return so_far
    if not start.is_judged:
        return replace(so_far, recipe=so_far.trial(so_far.best).recipe)
    faster = [one for one in so_far.trials
              if one.is_judged and one.samples_per_s > start.samples_per_s]  # fmt: skip
    ranked = sorted(faster, key=lambda one: -one.samples_per_s)
    found: list[FixProof] = []
    for one in ranked[:MOST_PROOFS]:
        proof = proven(question, one, node, batch_size=batch_size,
                       samples_per_epoch=samples_per_epoch, progress=progress)  # fmt: skip
        if proof.kept:
            notes = (*so_far.notes, *_not_proven(ranked, found))
            return replace(so_far, best=one.number, proof=proof, recipe=one.recipe, notes=notes)
        found.append(proof)
    notes = (*so_far.notes, *_not_proven(ranked[1:], found[1:]))
    return replace(so_far, proof=found[0], notes=notes) if found else so_far


def _not_proven(trials: Sequence[Trial], proofs: Sequence[FixProof]) -> tuple[str, ...]:
    pairs = zip(trials, proofs, strict=False)
    return tuple(f"Trial {one.number} is not the answer. {proof.reason}" for one, proof in pairs)


def proven(
    question: Question,
    best: Trial,
    node: Node,
    *,
    batch_size: int,
    samples_per_epoch: int,
    progress: Callable[[str], None],
) -> FixProof:
    """Measure both in turns; where the batch is the same, compare what a few steps learn.

    Args:
        question: With the recipe that it started from.
        best: The fastest trial.
        node: The machine that makes all runs.
        batch_size: Of the start, per replica; 0: not known.
        samples_per_epoch: 0: not known.
        progress: Called with a line at every stage.
    """

    def say(line: str) -> None:
        progress(f"proof: {line}")

    try:
        sides = _measured(question, best, node, say)
    except TfdynoError as error:
        return FixProof(cause=CAUSE, settings=best.changes,
                        reason=f"It could not be measured against the start: {error}")  # fmt: skip
    found = compare(*sides)
    if found.verdict != "faster":
        why = f"{found.reason[:1].lower()}{found.reason[1:]}"
        reason = found.reason if found.verdict == "not_comparable" else f"It is not faster: {why}"
        return _proof(best, sides, found, None, reason, kept=False)
    if best.changes_batch:
        return _proof(best, sides, found, None, f"{_CHANGED}.", kept=True)
    try:
        with tempfile.TemporaryDirectory(prefix="tfdyno-") as folder:
            losses = SameLosses(
                question.workload, folder=Path(folder), batch_size=batch_size,
                steps_per_epoch=samples_per_epoch // batch_size if batch_size else 0,
            )  # fmt: skip
            agreed = losses.of(question.recipe, best.recipe, say)
    except TfdynoError as error:
        reason = f"It is faster, but its losses could not be compared: {error}"
        return _proof(best, sides, found, None, reason, kept=False)
    reason = "It is faster, and the losses agree."
    if not agreed.agrees:
        reason = "It is faster, but the losses do not agree."
    return _proof(best, sides, found, agreed, reason, kept=agreed.agrees)


def _measured(
    question: Question, best: Trial, node: Node, progress: Callable[[str], None]
) -> tuple[Measurement, ...]:
    asked = bench.Question(
        workload=question.workload,
        recipe=question.recipe,
        against=best.recipe,
        protocol=Protocol(
            data=question.data,
            least_runs=LEAST_RUNS,
            most_runs=MOST_RUNS,
            target_ratio=TARGET_RATIO,
            least_s=question.protocol.least_s,
            most_s=question.protocol.most_s,
        ),
        folder=question.folder,
        label="tune",
    )
    if kept := bench.kept_answer(asked):
        return kept
    asked = replace(asked, resume=bench.can_resume(asked))
    try:
        return bench.bench(asked, progress=progress, enough=is_settled, run=node.run)
    finally:
        node.ended()


def _proof(
    best: Trial,
    sides: tuple[Measurement, ...],
    found: Comparison,
    agreed: Agreement | None,
    reason: str,
    *,
    kept: bool,
) -> FixProof:
    before, after = (summary(side) for side in sides)
    return FixProof(
        cause=CAUSE,
        settings=best.changes,
        verdict=found.verdict,
        ratio=found.ratio,
        interval=found.interval,
        confidence_ratio=found.confidence_ratio,
        runs=min(before.run_count, after.run_count),
        before_s=before.median_s,
        after_s=after.median_s,
        agreement=agreed,
        kept=kept,
        reason=reason,
        measurements=tuple(side.id for side in sides),
    )
