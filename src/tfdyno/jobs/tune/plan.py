"""What a tuning would do on a card that is not here: every trial with its estimate, none run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.train.tuning import Trial, Tuning
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.predict import check_vendor
from tfdyno.jobs.tune._cache import room_bytes, traced_bytes
from tfdyno.jobs.tune._expect import CardEstimates
from tfdyno.jobs.tune._look import ONLY_SPEED, suited_to
from tfdyno.jobs.tune._space import SpaceFacts, left_out, space_of
from tfdyno.jobs.tune._trial import drafted
from tfdyno.jobs.tune.request import check
from tfdyno.model.measure import trial_judge as judge
from tfdyno.model.measure.trial_law import PROBABILITY, surest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.jobs.tune.request import TuneRequest

MOST_LISTED = 512
NOT_MEASURED = (
    "Nothing was measured: these are estimates, and on the card itself the trials decide. They "
    "know nothing of the input and of several steps in one execution."
)

INPUT_UNKNOWN = (
    "Settings of the input are not listed: on JAX they go with data of tf.data alone, and what "
    "reads the data is known of a run."
)


def planned(request: TuneRequest, gpu: Gpu, *, progress: Callable[[str], None] = silent) -> Tuning:
    """List the trials of a space for a card, the fastest by estimate first.

    A trial is hopeless here where the optimistic end of its estimate is below the pessimistic end
    of the best one's.

    Args:
        request: What would be tuned.
        gpu: The card.
        progress: Called with a line at every stage.

    Raises:
        UsageError: The workload cannot be traced, or the card not be estimated.
        ToolError: A child failed.
    """
    check(request)
    check_vendor((gpu,))
    on_jax = request.backend == "jax"
    estimates = CardEstimates(
        workload=request.workload, backend=request.backend, gpu=gpu,
        limit_bytes=request.recipe.memory_limit_bytes, progress=progress,
    )  # fmt: skip
    own = estimates.own(request.recipe)
    trace, first = own.traced.trace, own.estimate(gpu)
    facts = SpaceFacts(
        batch_size=own.batch_size if trace.marker else 0,
        execution=own.execution_on(gpu),
        policy=trace.policy,
        suited_policy=suited_to(gpu),
        fits=first.fits != "no",
        samples_per_epoch=trace.samples_per_epoch,
        own_input=not (request.data.startswith("synthetic") or on_jax),
        backend=request.backend,
        data_bytes=traced_bytes(trace),
        room_bytes=room_bytes(is_here=False),
        accumulation=request.recipe.accumulation,
        keep_batch=request.keep_batch,
    )
    said = (*left_out(facts), INPUT_UNKNOWN) if on_jax else ()
    space = space_of(request.named, request.recipe, facts)
    update_samples = own.batch_size * request.recipe.accumulation
    trials: list[Trial] = []
    for number, values in enumerate(space.combinations()):
        if number >= MOST_LISTED:
            break
        draft = drafted(
            number, values, space, request.recipe, own_batch_size=own.batch_size, replicas=1,
            update_samples=update_samples, expected=estimates.of,
        )  # fmt: skip
        trials.append(_fitting(draft))
    ranked = _without_hopeless(trials)
    return Tuning(
        reference=request.workload.reference,
        title=trace.title,
        backend=request.backend,
        start=request.recipe,
        space=space,
        trials=tuple(ranked),
        recipe=request.recipe,
        device="gpu",
        device_name=gpu.name,
        planned_for=gpu.name,
        update_samples=update_samples,
        runs=request.runs,
        asked_trials=request.trials,
        left=max(0, space.size - len(trials)),
        ended="planned",
        confidence_ratio=PROBABILITY,
        notes=(NOT_MEASURED, ONLY_SPEED, *said, *dict.fromkeys(estimates.notes)),
    )


def _fitting(draft: Trial) -> Trial:
    """Return the trial that would be measured, or why it would not be run."""
    if draft.status == "failed":
        return draft
    reason = judge.unfit(draft)
    return replace(draft, status="not_fit" if reason else "planned", reason=reason)


def _without_hopeless(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials by estimate; those that are surely slower than the best say so."""
    known = [one for one in trials if one.status == "planned" and one.estimate]
    rates = {
        one.number: one.estimate.samples_per_s
        for one in known if one.estimate and one.estimate.samples_per_s
    }  # fmt: skip
    floor = max((surest(rate)[0] for rate in rates.values()), default=0.0)
    told = []
    for one in trials:
        rate = rates.get(one.number)
        if rate and surest(rate)[1] < floor:
            reason = "Its optimistic end is below the pessimistic end of the best."
            one = replace(one, status="hopeless", reason=reason)  # noqa: PLW2901
        told.append(one)
    return sorted(told, key=lambda one: -rates[one.number].best if one.number in rates else 0.0)
