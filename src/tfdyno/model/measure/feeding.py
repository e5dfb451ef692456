"""How much an input pipeline gives with more or fewer CPUs, and what a GPU makes of that."""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.feed import Feeding, FeedLaw, FeedNeed, FeedPoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.advice import Assumed
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.measure.feed import CpuKind

MOST_CPUS = 4096.0
"""More than any machine has: what so many do not feed, no number does."""
FEWEST_CPUS = 1e-6
_HALVINGS = 60


def rate_at(law: FeedLaw, cpus: float, *, loss_ratio: float) -> Interval:
    """Return samples per second that the pipeline gives with so many CPUs.

    Between two measured points on the straight line in the logarithms of both. Below the first in
    proportion. Above the last by the power law through the first and the last,

        r(n) = r(N) (n / N) ** a,    a = log(r(N) / r(1)) / log(N / 1), within 0 and 1

    whose exponent has the range of the two rates; its low end loses ``loss_ratio`` with each
    doubling besides, down to what was measured. Never more than the stages that share one thread
    give.

    Args:
        law: What was measured.
        cpus: Like those it was measured on; a share of one is possible.
        loss_ratio: Also lost by the best figure where only one number of CPUs was measured.

    Raises:
        ValueError: There is no CPU.
    """
    if cpus <= 0.0:
        raise ValueError(f"need some CPU, got {cpus}")
    first, last = law.points[0], law.points[-1]
    if cpus <= first.cpus:
        found = first.rate_per_s.times(cpus / first.cpus)
    elif cpus >= last.cpus:
        found = _beyond(law, cpus / last.cpus, loss_ratio)
    else:
        found = _between(law, cpus)
    return capped(found, law.serial_per_s)


def exponent_of(law: FeedLaw) -> Interval | None:
    """Tell how the rate grows with the CPUs: 1 in proportion, 0 not at all; None: one point."""
    first, last = law.points[0], law.points[-1]
    if first.cpus >= last.cpus:
        return None
    span = math.log(last.cpus / first.cpus)

    def grown(above: float, below: float) -> float:
        return min(1.0, max(0.0, math.log(above / below) / span))

    return Interval(
        low=grown(last.rate_per_s.low, first.rate_per_s.high),
        best=grown(last.rate_per_s.best, first.rate_per_s.best),
        high=grown(last.rate_per_s.high, first.rate_per_s.low),
    )


def _beyond(law: FeedLaw, times: float, loss_ratio: float) -> Interval:
    rate, grows = law.points[-1].rate_per_s, exponent_of(law)
    kept = (1.0 - loss_ratio) ** math.log2(times)
    if grows is None:
        return Interval(
            low=rate.low * max(1.0, times * kept * kept),
            best=rate.best * times * kept,
            high=rate.high * times,
        )
    return Interval(
        low=rate.low * max(1.0, times**grows.low * kept),
        best=rate.best * times**grows.best,
        high=rate.high * times**grows.high,
    )


def _between(law: FeedLaw, cpus: float) -> Interval:
    below, above = next(
        pair for pair in pairwise(law.points) if pair[0].cpus <= cpus <= pair[1].cpus
    )
    share = math.log(cpus / below.cpus) / math.log(above.cpus / below.cpus)

    def mixed(one: float, other: float) -> float:
        return math.exp((1.0 - share) * math.log(one) + share * math.log(other))

    low, high = below.rate_per_s, above.rate_per_s
    return low.each(high, mixed)


def capped(rate: Interval, most: Interval | None) -> Interval:
    """Return the rate, bound by bound no more than ``most``; None: no limit is known."""
    return rate if most is None else rate.each(most, min)


def cpus_for(
    law: FeedLaw, needed_per_s: Interval, *, loss_ratio: float
) -> tuple[float | None, float | None, float | None]:
    """Return CPUs that give so many samples per second: fewest, best and most.

    The fewest give the least that may be needed at their highest rate, the most the opposite.

    Returns:
        None in a place where no number of CPUs does.
    """

    def enough(needed: float, of: Callable[[Interval], float]) -> float | None:
        def gives(cpus: float) -> float:
            return of(rate_at(law, cpus, loss_ratio=loss_ratio))

        low, high = FEWEST_CPUS, MOST_CPUS
        if gives(high) < needed:
            return None
        for _ in range(_HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if gives(middle) >= needed else (middle, high)
        return high

    return (
        enough(needed_per_s.low, lambda rate: rate.high),
        enough(needed_per_s.best, lambda rate: rate.best),
        enough(needed_per_s.high, lambda rate: rate.low),
    )


def need_of(law: FeedLaw, estimate: Estimate, *, gpu_name: str, loss_ratio: float) -> FeedNeed:
    """Return what an estimate's card needs of the pipeline, and what it gets where it ran."""
    needed = needed_by(estimate)
    here = law.points[-1].rate_per_s
    return FeedNeed(
        gpu=estimate.gpu,
        gpu_name=gpu_name,
        batch_size=estimate.global_batch_size,
        step_s=estimate.step_s,
        needed_per_s=needed,
        fed_ratio=here.best / needed.best,
        cpus=cpus_for(law, needed, loss_ratio=loss_ratio),
    )


def needed_by(estimate: Estimate) -> Interval:
    """Return samples/s of a step that never waits: the batch over its time."""
    return estimate.step_s.under(estimate.global_batch_size)


def feeding(
    law: FeedLaw, estimate: Estimate, *, vcpus: int, cpu_kind: CpuKind, assumed: Assumed
) -> Feeding:
    """Return what the CPUs of an offer give the step of an estimate.

    A vCPU is a hardware thread. So is a CPU of the measured machine unless it has whole cores: of
    those a vCPU is worth ``vcpu_core_ratio``. How fast the offer's processor is nobody says: the
    range is from ``offer_cpu_ratio`` of the measured one to the inverse of that.

    Args:
        law: Of the measured pipeline.
        estimate: Of the step on the offer's GPUs, without waiting for data.
        vcpus: Of the offer, at least 1.
        cpu_kind: What a CPU of the measured machine is.
        assumed: The assumptions.

    Raises:
        ValueError: The offer has no vCPU.
    """
    if vcpus < 1:
        raise ValueError(f"need at least one vCPU, got {vcpus}")
    worth = assumed.vcpu_core_ratio if cpu_kind == "core" else 1.0
    found = rate_at(law, vcpus * worth, loss_ratio=assumed.feed_loss_ratio)
    speed = assumed.offer_cpu_ratio
    rate = Interval(low=found.low * speed, best=found.best, high=found.high / speed)
    needed, most = needed_by(estimate), law.serial_per_s
    return Feeding(
        vcpus=vcpus,
        rate_per_s=rate,
        needed_per_s=needed,
        fed_ratio=rate.best / needed.best,
        thread_stages=law.serial_stages if most and found.best >= most.best else (),
    )


def fed(estimate: Estimate, given: Feeding, *, waiting_w: Interval) -> Estimate:
    """Return the estimate of a step whose data may come more slowly than it runs.

        step = max(step, batch / rate)

    bound by bound: the lowest time with the highest rate. ``terms_s["input"]`` is the time that is
    waited beyond the step's own.

    Args:
        estimate: Of the step that never waits.
        given: What makes its data ready.
        waiting_w: Power of all its cards while they wait.
    """
    size, own, rate = estimate.global_batch_size, estimate.step_s, given.rate_per_s
    step = own.each(rate.under(size), max)
    # A pass of validation reads as fast as the training does, and computes less.
    forward_ratio = max(
        estimate.forward_ratio * own.best / step.best, min(1.0, size / rate.best / step.best)
    )
    if step == own:
        return replace(estimate, forward_ratio=forward_ratio)
    energy = _with_waiting(estimate.energy_j_per_step, own, step, waiting_w)
    return replace(
        estimate,
        step_s=step,
        forward_ratio=forward_ratio,
        samples_per_s=step.under(size),
        terms_s={**estimate.terms_s, "input": step.best - own.best},
        bound_by="input" if step.best > own.best else estimate.bound_by,
        mfu_ratio=estimate.mfu_ratio * own.best / step.best,
        energy_j_per_step=energy,
        energy_kwh_per_epoch=_in_proportion(
            estimate.energy_kwh_per_epoch, estimate.energy_j_per_step, energy
        ),
    )


def _with_waiting(energy: Interval, own: Interval, step: Interval, waiting_w: Interval) -> Interval:
    """Return the joules of the longer step; the ends stay around the best figure."""
    low = energy.low + waiting_w.low * (step.low - own.low)
    best = energy.best + waiting_w.best * (step.best - own.best)
    high = energy.high + waiting_w.high * (step.high - own.high)
    return Interval(low=min(low, best), best=best, high=max(best, high))


def _in_proportion(epoch: Interval | None, before: Interval, after: Interval) -> Interval | None:
    if epoch is None or before.low <= 0.0:
        return epoch
    return epoch.each(after, operator.mul).each(before, operator.truediv)


def rising(points: list[FeedPoint]) -> tuple[FeedPoint, ...]:
    """Return the points, fewest CPUs first, where none gives less than one with fewer CPUs.

    More CPUs do no harm but by the noise of the measurement.
    """
    found: list[FeedPoint] = []
    for point in sorted(points, key=lambda one: one.cpus):
        if found:
            raised = found[-1].rate_per_s.each(point.rate_per_s, max)
            point = replace(point, rate_per_s=raised)  # noqa: PLW2901  (the same point)
        found.append(point)
    return tuple(found)
