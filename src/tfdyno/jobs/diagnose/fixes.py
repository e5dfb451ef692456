"""Prove the fixes of a diagnosis: each is measured in turns with what was kept before it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError
from tfdyno.core.measure.bottleneck import Bottleneck, Gain, StepDiagnosis
from tfdyno.core.measure.fix_proof import FixProof, ProvenDiagnosis
from tfdyno.core.measure.measurement import Protocol
from tfdyno.core.recipe.composition import check_composition
from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.jobs.bench import bench
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.diagnose.diagnose import examined
from tfdyno.jobs.diagnose.same_losses import SameLosses
from tfdyno.model.measure.comparison import FEWEST_RUNS, compare
from tfdyno.model.measure.steady_part import is_steady
from tfdyno.model.measure.summary import summary
from tfdyno.words.base.amounts import lower
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.stages import under

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfdyno.core.measure.fix_proof import Agreement
    from tfdyno.core.measure.measurement import Comparison, Measurement
    from tfdyno.jobs.diagnose.diagnose import DiagnoseRequest, Examined

LEAST_RUNS = 4
"""The fewest runs of each side: with eight together the machine's own speed can be taken out."""
MOST_RUNS = 8
SETTLED_RATIO = 1.05
"""A gain that is surely above it is proven early, one surely below it is not worth more runs."""
TARGET_RATIO = 0.04
"""No more runs once the median of both sides is known so well, half of the interval over it."""
LEAST_S = 3.0
"""The least time of steady steps in a run: fixes worth having gain 10 %, not 1 %."""
MOST_S = 20.0
"""The longest time of a run, from its first step on, where nothing else was asked for."""
NOT_EXPECTED = say_later(
    "With what was kept it is not expected to gain anything: it was not measured."
)


def proven(
    request: DiagnoseRequest, found: Examined, *, progress: Callable[[str], None] = silent
) -> Iterator[ProvenDiagnosis]:
    """Try the fixes that a recipe can express, the largest expected gain first.

    A fix is kept, and the next ones are measured on top of it, when its steps are faster by the
    verdict of ``model.measure.comparison`` and the losses of a few steps with the same seed agree.
    Then the steps are looked at again: what is not found any more is not tried. What cannot be
    measured is told and left out.

    Args:
        request: What was diagnosed.
        found: What came out of it.
        progress: Called with a line at every stage.

    Yields:
        The diagnosis with what is proven so far: first as it is, then after each fix, and where
        it was kept once more with another look at the steps. Whoever is stopped between has the
        last one.
    """
    tried = fixes(found.diagnosis, request.recipe)
    left = list(tried)
    so_far = ProvenDiagnosis(diagnosis=found.diagnosis, recipe=request.recipe, left=_causes(left))
    yield so_far
    facts = found.facts
    with tempfile.TemporaryDirectory(prefix="tfdyno-") as folder:
        losses = SameLosses(
            request.workload,
            folder=Path(folder),
            batch_size=facts.batch_size,
            steps_per_epoch=facts.steps_per_epoch,
            is_loop=facts.source == "loop",
            backend=request.backend,
        )
        while left:
            one = left.pop(0)
            head = say(
                "fix {number} of {count} ({cause})",
                number=len(tried) - len(left),
                count=len(tried),
                cause=one.cause,
            )
            proof, recipe = _tried(one, so_far.recipe, request, losses, _prefixed(head, progress))
            so_far = replace(
                so_far,
                diagnosis=_with_gain(so_far.diagnosis, one, proof),
                recipe=recipe,
                proofs=(*so_far.proofs, proof),
                left=_causes(left),
            )
            yield so_far
            if proof.kept:
                so_far, left = _looked_again(so_far, left, request, progress)
                yield so_far


def _looked_again(
    so_far: ProvenDiagnosis,
    left: Sequence[Bottleneck],
    request: DiagnoseRequest,
    progress: Callable[[str], None],
) -> tuple[ProvenDiagnosis, list[Bottleneck]]:
    """Add a look at the steps with all that was kept: where their time goes now.

    Fixes of what it does not find any more are left out: each would take minutes to measure.
    """
    tell = _prefixed(say("a look with what is kept"), progress)
    try:
        found = examined(replace(request, recipe=so_far.recipe), progress=tell)
        if found.failed:
            raise found.failed
    except TfdynoError as error:
        note = say("The steps were not looked at again: {error}", error=error)
        return replace(so_far, after=None, after_note=note), [*left]
    if found.stopped:
        raise KeyboardInterrupt
    wanted = _causes(fixes(found.diagnosis, so_far.recipe))
    is_made = [from_settings(one.settings, so_far.recipe) == so_far.recipe for one in left]
    still = [one for one, made in zip(left, is_made, strict=True) if made or one.cause in wanted]
    gone = tuple(
        FixProof(cause=one.cause, settings=one.settings, reason=say(NOT_EXPECTED))
        for one in left if one not in still
    )  # fmt: skip
    so_far = replace(
        so_far, after=found.diagnosis, after_note="", proofs=(*so_far.proofs, *gone),
        left=_causes(still),
    )  # fmt: skip
    return so_far, still


def _causes(found: Sequence[Bottleneck]) -> tuple[str, ...]:
    return tuple(one.cause for one in found)


def fixes(diagnosis: StepDiagnosis, base: Recipe) -> tuple[Bottleneck, ...]:
    """Return findings whose fix is a change of ``base``, the largest expected gain first.

    Without an expected gain a fix is not one for speed, and speed would not prove it.

    Raises:
        UsageError: A setting is not one of a recipe.
    """
    changing = [
        one for one in diagnosis.findings
        if one.expected_gain and one.settings and from_settings(one.settings, base) != base
    ]  # fmt: skip
    return tuple(sorted(changing, key=_expected, reverse=True))


def _expected(one: Bottleneck) -> float:
    return one.expected_gain.best if one.expected_gain else 0.0


def _prefixed(head: str, progress: Callable[[str], None]) -> Callable[[str], None]:
    return lambda line: progress(under(head, line))


def _tried(
    one: Bottleneck,
    base: Recipe,
    request: DiagnoseRequest,
    losses: SameLosses,
    progress: Callable[[str], None],
) -> tuple[FixProof, Recipe]:
    """Measure one fix; what fails is told as its proof."""
    changed = from_settings(one.settings, base)
    fix = FixProof(cause=one.cause, settings=one.settings, reason="")
    if changed == base:
        return replace(fix, reason=say("A fix that is kept already makes this change too.")), base
    try:
        check_composition(changed)
        sides = _measured(request, base, changed, progress)
    except TfdynoError as error:
        return replace(fix, reason=say("It could not be measured: {error}", error=error)), base
    comparison = compare(*sides)
    if comparison.verdict != "faster":
        return proof_of(fix, sides, comparison), base
    try:
        agreed = losses.of(base, changed, progress)
    except TfdynoError as error:
        why = say("It is faster, but its losses could not be compared: {error}", error=error)
        return proof_of(fix, sides, comparison, reason=why), base
    proof = proof_of(fix, sides, comparison, agreed)
    return proof, changed if proof.kept else base


def _measured(
    request: DiagnoseRequest, base: Recipe, changed: Recipe, progress: Callable[[str], None]
) -> tuple[Measurement, ...]:
    """Return both sides in turns, or what is kept of them."""
    asked = bench.BenchRequest(
        workload=request.workload,
        recipe=base,
        against=changed,
        backend=request.backend,
        against_backend=request.backend,
        protocol=Protocol(
            data=bench.default_data(request.workload),
            least_runs=LEAST_RUNS,
            most_runs=MOST_RUNS,
            target_ratio=0.0,  # ``is_settled`` says when it is enough
            least_s=min(LEAST_S, request.seconds_s or LEAST_S),
            most_s=request.seconds_s or MOST_S,
        ),
        folder=request.folder,
        label="diagnose",
    )
    if request.resume:
        if kept := bench.kept_answer(asked):
            return kept
        asked = replace(asked, resume=bool(bench.unfinished_answer(asked)))
    return bench.bench(asked, progress=progress, enough=is_settled)


def is_settled(sides: Sequence[Measurement]) -> bool:
    """Return whether it is sure on which side of ``SETTLED_RATIO`` the gain lies, or close.

    A look after each pair of runs would find differences by chance if it asked only whether the
    interval leaves 1 out; it asks for more, so that few of them are found. Too few steady runs
    settle nothing: the next ones may be steady.
    """
    found = compare(*sides)
    low, high = found.interval
    if found.verdict == "not_comparable":
        return not lacks_steady_runs(sides)
    return low > SETTLED_RATIO or high < SETTLED_RATIO or all(map(_is_narrow, sides))


def _is_narrow(side: Measurement) -> bool:
    """Return whether the median is known so well that more runs are not worth their time."""
    found = summary(side)
    low_s, high_s = found.interval_s
    return (high_s - low_s) / 2 <= TARGET_RATIO * found.median_s


def lacks_steady_runs(sides: Sequence[Measurement]) -> bool:
    """Return whether a side has fewer runs with a steady state than a comparison needs."""
    counts = [sum(is_steady(run) for run in side.runs) for side in sides]
    return min(counts) < FEWEST_RUNS


def proof_of(
    fix: FixProof,
    sides: tuple[Measurement, ...],
    found: Comparison,
    agreed: Agreement | None = None,
    *,
    reason: str = "",
    kept: bool = False,
) -> FixProof:
    """Return what was measured of a fix.

    Args:
        fix: Its cause and settings.
        sides: Without it, and with it.
        found: Their comparison.
        agreed: What the losses of both say; None: they were not compared.
        reason: Why it is kept or not; empty: what the two comparisons say.
        kept: Whether it is kept without a look at the losses.
    """
    before, after = (summary(side) for side in sides)
    return replace(
        fix,
        verdict=found.verdict,
        ratio=found.ratio,
        interval=found.interval,
        confidence_ratio=found.confidence_ratio,
        runs=min(before.run_count, after.run_count),
        before_s=before.median_s,
        after_s=after.median_s,
        agreement=agreed,
        kept=agreed.agrees if agreed else kept,
        reason=reason or _reason(found, agreed),
        measurements=tuple(side.id for side in sides),
    )


def _reason(comparison: Comparison, agreed: Agreement | None) -> str:
    if comparison.verdict == "not_comparable":
        return comparison.reason
    if comparison.verdict != "faster":
        return say("It is not faster: {reason}", reason=lower(comparison.reason))
    if agreed is None or agreed.agrees:
        return say("It is faster, and the losses agree.")
    return say("It is faster, but the losses do not agree.")


def _with_gain(diagnosis: StepDiagnosis, one: Bottleneck, proof: FixProof) -> StepDiagnosis:
    """Return the diagnosis in which the finding has what was measured of its fix."""
    if proof.verdict in (None, "not_comparable"):
        return diagnosis
    low, high = proof.interval
    told = replace(one, proven_gain=Gain(low=low, best=proof.ratio, high=high))
    return replace(
        diagnosis,
        primary=told if diagnosis.primary == one else diagnosis.primary,
        findings=tuple(told if each == one else each for each in diagnosis.findings),
    )
