"""Steps so small that starting them takes longer than computing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.bottleneck.calls import saved_by_calls
from tfdyno.rules.bottleneck.draft import Draft, duration, evidence, of_step, percent, taking
from tfdyno.rules.bottleneck.gains import amdahl, saving
from tfdyno.rules.bottleneck.steady import typical
from tfdyno.rules.bottleneck.tables import cause, limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.doctor.finding import Evidence
    from tfdyno.core.measure.bottleneck import Gain
    from tfdyno.rules.bottleneck.seen import Seen


_WAITS_FOR_PYTHON = ("host.python_thread",)
"""Starts are short again once no other thread holds the interpreter."""
_MANY_EXCHANGES = ("communication.small_buckets",)
"""All replicas wait for each other at each of them, and start again."""


def steps_per_execution(seen: Seen) -> Iterator[Draft]:
    """Find Keras' own loop between steps: several steps can go into one call."""
    facts, part_s = seen.facts, start_s(seen) - tiny_s(seen)
    if facts.backend == "jax":  # a call for each of them stays: Keras goes around less often
        part_s = seen.split.between_s
    steps = facts.calls.steps if facts.calls else int(limits()["steps_per_execution"])
    if facts.source != "run" or facts.steps_per_execution > 1 or facts.execution == "eager":
        return
    if facts.replica_count > 1 or facts.worker_count > 1:
        return  # Keras cannot put several steps of a strategy into one call
    if 0 < facts.steps_per_epoch < 2 * steps:
        return
    name, gain = "launch.steps_per_execution", _gain_of_fewer_calls(seen)
    told: tuple[Evidence, ...] = ()
    if gain is None:
        if not seen.counts(part_s):
            return
        gain = amdahl(seen.step_s, part_s, cause(name).removes)
    else:
        told, part_s = _in_turns(seen), seen.split.calls_s + seen.split.between_s
        if gain.low <= 1.0:
            return  # as far as the steps tell it may be noise
    yield Draft(cause=name, evidence=(*_starting(seen, part_s), *told), gain=gain,
                settings={"steps_per_execution": str(steps)},
                values={"share": percent(part_s / seen.step_s), "steps": str(steps)},
                explained_by=(*_WAITS_FOR_PYTHON, "host.loss_each_step"))  # fmt: skip


def small_batch(seen: Seen) -> Iterator[Draft]:
    """Find small steps: more samples in a step share the cost of starting it."""
    facts, part_s = seen.facts, start_s(seen)
    if facts.execution == "eager" or not facts.batch_size:
        return
    if part_s < limits()["small_batch_start_ratio"] * seen.step_s or not seen.counts(part_s):
        return
    if facts.batch_size > limits()["small_batch_most"]:
        return
    factor = int(limits()["batch_factor"])
    exchange_s = seen.split.parts_s["communication"]
    is_exchange = exchange_s >= limits()["exchange_of_start_ratio"] * part_s
    explained_by = (*_WAITS_FOR_PYTHON, *(_MANY_EXCHANGES if is_exchange else ()))
    told = evidence("{batch} samples a step", "the script", batch=facts.batch_size)
    larger = str(factor * facts.batch_size)
    yield taking(seen, "launch.small_batch", part_s, *_starting(seen, part_s), told,
                 settings={"batch_size": larger}, explained_by=explained_by,
                 values={"batch": str(facts.batch_size), "larger": larger})  # fmt: skip


def no_xla(seen: Seen) -> Iterator[Draft]:
    """Find operations that XLA would make one of.

    On a CPU it was measured to slow usual models down, so that there it is proposed only for very
    many operations of microseconds each, which are started for longer than they run.
    """
    facts = seen.facts
    part_s = seen.split.parts_s["launch"] - seen.split.calls_s + tiny_s(seen)
    if facts.execution != "graph" or facts.replica_count > 1 or not seen.counts(part_s):
        return
    removes = cause("launch.no_xla").removes
    if facts.device == "cpu":
        if not tiny_s(seen):
            return
        low, best, high = (limits()[f"xla_on_cpu_{end}"] for end in ("low", "best", "high"))
        removes = (low, best, high)
    yield Draft(cause="launch.no_xla", evidence=_starting(seen, part_s),
                gain=amdahl(seen.step_s, part_s, removes),
                settings=None if facts.source in ("run", "loop") else {},
                values={"share": percent(part_s / seen.step_s)})  # fmt: skip


def _gain_of_fewer_calls(seen: Seen) -> Gain | None:
    """Return the gain of a held step in a call of several, and Keras' loop once for all of them.

    None: nobody looked.
    """
    saved, calls = saved_by_calls(seen.facts), seen.facts.calls
    if saved is None or calls is None:
        return None
    held_s, loops = seen.split.held_s, 1.0 - 1.0 / calls.steps
    low, best, high = (held_s * share + loops * seen.split.between_s for share in saved)
    return saving(seen.step_s, low, best, high)


def _in_turns(seen: Seen) -> tuple[Evidence, ...]:
    calls = seen.facts.calls
    assert calls
    together, alone = (duration(typical(each)) for each in (calls.together_s, calls.single_s))
    return (
        evidence(
            "on a held batch, {steps} steps in one call take {together} each, one by one "
            "{alone}; the gain of the whole training is estimated from that",
            "steps in turns",
            steps=calls.steps,
            together=together,
            alone=alone,
        ),
    )


def tiny_s(seen: Seen) -> float:
    """Return computing's starts of very many operations that are shorter than their start."""
    operations, known = seen.facts.operations, limits()
    if operations is None or operations.count_per_step < known["tiny_operations_least"]:
        return 0.0
    if seen.mean_operation_s > known["tiny_operation_s"]:
        return 0.0
    return known["tiny_operation_start_ratio"] * seen.split.parts_s["compute"]


def start_s(seen: Seen) -> float:
    """Return seconds of a step that go into starting it and its operations.

    Gaps of the profile, and of ``fit`` the Python of Keras between two steps. Without a profile
    of a short step: what its arithmetic cannot explain at a tenth of the peak.
    """
    facts = seen.facts
    part_s = seen.split.parts_s["launch"]
    if facts.source == "run":
        part_s += seen.split.between_s
    held_s = seen.split.held_s
    if facts.operations:
        return part_s + tiny_s(seen)
    if facts.execution == "eager" or facts.python_steps or not held_s:
        return part_s
    if not (facts.step_flops and facts.peak_flops_per_s) or held_s > limits()["short_step_s"]:
        return part_s
    ideal_s = facts.step_flops / (facts.peak_flops_per_s * limits()["short_step_peak_ratio"])
    return part_s + max(0.0, held_s - ideal_s)


def _starting(seen: Seen, part_s: float) -> tuple[Evidence, ...]:
    told = [
        evidence(
            "starting the step and its operations: {part}", "steps", part=of_step(seen, part_s)
        )
    ]
    operations = seen.facts.operations
    if operations and operations.count_per_step:
        told.append(
            evidence(
                "{count:,.0f} operations of {each} each",
                "profile",
                count=operations.count_per_step,
                each=duration(seen.mean_operation_s),
            )
        )
    return tuple(told)


LAUNCH_RULES = (steps_per_execution, small_batch, no_xla)
