"""Memory and time of sharded training by formula, for models that one card cannot hold.

What is shared among n cards follows the papers; the rest stays as the plan of one card has it.
Compute is divided by n, the exchange is that of ``model/time/scaling.py``'s bandwidth, not
overlapped.

* data parallel: the batch / n, and with it the activations; gradients are all-reduced.
* optimizer state (ZeRO stage 1): optimizer slots / n, gradients reduced and weights gathered: what
  an all-reduce sends.
* all states (ZeRO stage 3): weights, gradients and slots / n; weights are gathered twice: 1.5 times
  an all-reduce.
* tensor parallel (Megatron with sequence parallelism, which divides what tensor parallelism alone
  keeps whole): weights, gradients, slots and activations / n; four all-reduces a block of the
  activations' outputs, taken as the activations that a step keeps, once: its time is a rough
  figure.
* pipeline (GPipe): all states / n, activations / n; (n - 1) / (m + n - 1) of the time is a bubble,
  in m micro-batches: four for each stage, and no more than there are samples.

The first three share out samples: there are no more cards than samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.choose.sharding import ShardingKind, ShardingPlan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.estimate import Estimate

MICRO_BATCHES = 4
"""Micro batches per stage of a pipeline: GPipe's authors call the bubble negligible from there.
"""
ZERO = 'Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models"'
RING = 'Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009'
MEGATRON = (
    'Shoeybi et al., "Megatron-LM", 2019, with the sequence parallelism of Korthikanti et al., '
    '"Reducing Activation Recomputation in Large Transformer Models", 2022'
)
GPIPE = 'Huang et al., "GPipe", 2019'
_STATES = ("weights", "gradients", "optimizer")
_DIVIDED: dict[ShardingKind, tuple[str, ...]] = {
    "data parallel": ("activations", "inputs"),
    "optimizer state": ("optimizer", "activations", "inputs"),
    "all states": (*_STATES, "activations", "inputs"),
    "tensor parallel": (*_STATES, "activations"),
    "pipeline": (*_STATES, "activations"),
}
_TOLD: dict[ShardingKind, tuple[str, str]] = {
    "data parallel": ("batch/n on each, one all-reduce", RING),
    "optimizer state": ("optimizer/n, one all-reduce", ZERO),
    "all states": ("(weights + gradients + optimizer)/n, 1.5 all-reduces", ZERO),
    "tensor parallel": ("states/n, activations/n, one all-reduce of activations (rough)", MEGATRON),
    "pipeline": ("states/n, bubble (n - 1)/(m + n - 1), m = {micro}", GPIPE),
}
_BY_SAMPLE: tuple[ShardingKind, ...] = ("data parallel", "optimizer state", "all states")
KINDS: tuple[ShardingKind, ...] = tuple(_TOLD)


def bubble_ratio(stages: int, micro_batches: int) -> float:
    """Share of the time that the stages of a pipeline wait: ``(p - 1) / (m + p - 1)``.

    Raises:
        ValueError: There is no stage or no micro-batch.
    """
    if stages < 1 or micro_batches < 1:
        raise ValueError(f"need stages and micro_batches >= 1, got {stages}, {micro_batches}")
    return (stages - 1) / (micro_batches + stages - 1)


def fewest_that_fit(one: Estimate, bytes_per_s: Mapping[int, float]) -> tuple[ShardingPlan, ...]:
    """Return the fewest cards of each way that hold the model; ways that never do are left out.

    The ways are in order of cards, then of time.

    Args:
        one: Of one card.
        bytes_per_s: Number of cards -> bus bandwidth between them.
    """
    found: list[ShardingPlan] = []
    for kind in KINDS:
        plans = (
            planned(one, kind, n, bytes_per_s[n])
            for n in sorted(bytes_per_s)
            if n > 1 and _shares(one, kind, n)
        )
        fitting = next((plan for plan in plans if plan.fits), None)
        found += [fitting] if fitting else []
    return tuple(sorted(found, key=lambda plan: (plan.replicas, plan.step_s.best)))


def held_beside(one: Estimate, plan_bytes: float) -> float:
    """Return what a card holds beside such a plan: context, workspaces, allocator's slack.

    The slack is the share of the plan that it is in the estimate of one card.
    """
    parts = one.memory_parts_bytes
    fixed = parts.get("context", 0.0) + parts.get("workspace", 0.0)
    return fixed + parts.get("allocator", 0.0) / one.peak_memory_bytes.best * plan_bytes


def _shares(one: Estimate, kind: ShardingKind, n: int) -> bool:
    """Return whether every card gets a part: of the samples, where a way shares those out."""
    return kind not in _BY_SAMPLE or n <= one.batch_size


def planned(one: Estimate, kind: ShardingKind, n: int, bytes_per_s: float) -> ShardingPlan:
    """Return one way over so many cards by formula, whether or not it fits."""
    parts = one.memory_parts_bytes
    kept = one.device_memory_bytes.best - sum(parts.get(name, 0.0) for name in _DIVIDED[kind])
    divided = sum(parts.get(name, 0.0) for name in _DIVIDED[kind]) / n
    held = max(0.0, kept) + divided
    ring = 2.0 * (n - 1) / n / bytes_per_s
    gradients = parts.get("gradients", 0.0) or parts.get("weights", 0.0)
    sent = {
        "data parallel": gradients,
        "optimizer state": gradients,
        "all states": 1.5 * gradients,
        "tensor parallel": parts.get("activations", 0.0),
        "pipeline": 0.0,
    }[kind]
    micro = min(MICRO_BATCHES * n, one.batch_size)
    waits = 1.0 - bubble_ratio(n, micro) if kind == "pipeline" else 1.0
    formula, source = _TOLD[kind]
    return ShardingPlan(
        kind=kind,
        replicas=n,
        device_memory_bytes=held,
        fits=held <= one.usable_memory_bytes,
        step_s=one.step_s.times(1.0 / n / waits).plus(sent * ring),
        formula=formula.format(micro=micro),
        source=source,
    )
