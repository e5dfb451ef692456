"""Ways to run one workload on cards, each with the same samples in an update of the weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from tfdyno.catalog.assumptions import recipe_rules
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.auto_recipe import Option
from tfdyno.core.choose.hardware import Gpu
from tfdyno.jobs.choose.exact import add_cached
from tfdyno.jobs.choose.predict import Predictor, StepSettings, predictor_for
from tfdyno.model.choose.recipe_options import splits, suited_precision

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.program import Program

SUM_BYTES = 4.0
"""Bytes of a float32, in which the gradient of every weight is summed up over the batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a workload is run, but for the batches that an update is made of."""

    predictor: Predictor
    """The predictor with the execution."""
    gpu: Gpu
    share: int
    """Samples of an update on each replica."""
    replicas: int = 1
    changes: int = 0
    """In how many ways it departs from what the script does on its own."""
    plain: Predictor | None = None
    """Where parts are computed again: the workload traced without. Its time is taken, longer by the
    share of the step that is computed again; the two are not traced by the same path."""
    once: Predictor | None = None
    """The step with ``plain`` as if what is computed again took no time (``computing_once``)."""

    @property
    def whole_size(self) -> int:
        """The share of a replica, or the batch that is part of the model."""
        trace = self.predictor.traced.trace
        return self.share if trace.marker else trace.batch_size

    def splits(self) -> tuple[tuple[int, int], ...]:
        """Return batches and how many of them make an update, the largest first."""
        if not self.predictor.traced.trace.marker:
            return ((self.whole_size, 1),)
        return splits(self.share, self.share)

    def largest(self) -> Option:
        """Return the option with the largest batch that fits, in as few parts as can be."""
        whole = self._timed(self.whole_size)
        taken = self._option(whole, 1)
        most = whole.estimate.max_batch_size
        if taken.fits or not most:
            return taken
        parts = (self.option(size, number) for size, number in splits(self.share, most))
        return next((one for one in parts if one.fits), taken)

    def option(self, size: int, parts: int) -> Option:
        """Offer ``parts`` batches of ``size`` in an update."""
        return self._option(self._timed(size), parts)

    @property
    def sums_bytes(self) -> float:
        """What accumulation keeps: the sum of the gradients so far."""
        return SUM_BYTES * self.predictor.traced.trace.trainable_parameter_count

    def _option(self, timed: _Timed, parts: int) -> Option:
        found, workload = timed.estimate, self.predictor.traced.trace.workload
        more_bytes = self.sums_bytes if parts > 1 else 0.0
        more_bytes += self._order_bytes(found)
        held = found.device_memory_bytes.plus(more_bytes)
        return Option(
            precision=self.predictor.traced.trace.policy,
            execution="xla" if self.predictor.execution == "xla" else "graph",
            replicas=self.replicas,
            batch_size=found.batch_size,
            accumulation=parts,
            update_s=found.step_s.times(parts),
            device_memory_bytes=held,
            usable_memory_bytes=found.usable_memory_bytes,
            fits=fits(found, more_bytes),
            fits_surely=found.fits == "yes" and held.high <= found.usable_memory_bytes,
            compile_s=found.compile_s,
            changes=self.changes + (parts > 1),
            warnings=found.warnings,
            remat=workload.remat,
            recompute_ratio=timed.recompute_ratio,
            optimizer=workload.optimizer,
            fine_tune=workload.hub.fine_tune if workload.hub else None,
            memory_made_by=found.made_by["memory"],
            verified=found.fits_verified,
        )

    def _order_bytes(self, found: Estimate) -> float:
        """Return what another order of its kernels, and not computing again, saves of the plan.

        The plan of a step that computes values again is made in an order that holds less, which the
        plain one is not; so that much is not what computing again is worth.
        """
        if self.plain is None or found.made_by["memory"] == "exact" or found.execution != "xla":
            return 0.0
        plan = self.plain.program_for(self.gpu, self.replicas).buffers
        return plan.reordering_saves_bytes(found.batch_size)

    def _timed(self, size: int) -> _Timed:
        def at(predictor: Predictor) -> Estimate:
            return predictor.estimate(self.gpu, replicas=self.replicas, batch_size=size)

        found = at(self.predictor)
        if self.plain is None or self.once is None:
            return _Timed(found, 1.0)
        ratio = found.step_s.best / at(self.once).step_s.best
        return _Timed(replace(found, step_s=at(self.plain).step_s.times(ratio)), ratio)


class _Timed(NamedTuple):
    """An estimate, and its time over that of the same step if nothing were computed again."""

    estimate: Estimate
    recompute_ratio: float


def fits(found: Estimate, more_bytes: float = 0.0) -> bool:
    """Return whether a step fits, by its best figure, beside more that has to be held."""
    needed_bytes = found.device_memory_bytes.best + more_bytes
    return found.fits != "no" and needed_bytes <= found.usable_memory_bytes


def in_both_precisions(
    own: Predictor, gpu: Gpu, notes: list[str], progress: Callable[[str], None]
) -> dict[str, Predictor]:
    """Return the workload as it is, and in the precision that the card is made for, by policy.

    Args:
        own: The workload as it is.
        gpu: The card.
        notes: Gets a sentence where the other precision cannot be traced.
        progress: Called with a line at every stage.
    """
    found = {own.traced.trace.policy: add_cached(own, (gpu,))}
    rules = recipe_rules()
    suited = suited_precision(
        float(gpu.compute_capability),
        first_float16=rules.first_mixed_float16_capability,
        first_bfloat16=rules.first_mixed_bfloat16_capability,
    )
    if suited in found:
        return found
    try:
        other = predictor_for(
            own.traced.trace.workload,
            StepSettings(precision=suited, execution=own.execution),
            batch_size=own.batch_size,
            progress=progress,
        )
    except UsageError as error:
        notes.append(f"{suited} was not weighed: {error}")
        return found
    return {**found, suited: add_cached(other, (gpu,))}


def computing_once(predictor: Predictor) -> Predictor:
    """Return the same step as if what is computed again took no time."""

    def without(program: Program) -> Program:
        kernels = (kernel for kernel in program.kernels if kernel.phase != "recompute")
        return replace(program, kernels=tuple(kernels))

    traced = predictor.traced
    return replace(
        predictor,
        traced=replace(
            traced,
            program=without(traced.program),
            per_op=without(traced.per_op),
            per_primitive=traced.per_primitive and without(traced.per_primitive),
            fused_attention=traced.fused_attention and without(traced.fused_attention),
            wide_attention=traced.wide_attention and without(traced.wide_attention),
            widened=traced.widened and without(traced.widened),
            per_op_widened=traced.per_op_widened and without(traced.per_op_widened),
            per_primitive_widened=(
                traced.per_primitive_widened and without(traced.per_primitive_widened)
            ),
        ),
    )
