"""The steady step, with its share of the epoch, in parts that add up to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.bottleneck import SPLIT_PARTS
from tfdyno.rules.bottleneck.calls import of_calls
from tfdyno.rules.bottleneck.steady import half_width, typical
from tfdyno.rules.bottleneck.tables import limits, matching

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.measure.step_facts import InputFacts, OperationFacts, RetraceFacts, StepFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Where the time of one steady step goes."""

    step_s: float
    held_s: float
    """The time of the step on a batch that is held, at most ``step_s``; 0: not measured."""
    batch_s: float
    """The time of one batch of the pipeline by itself; 0: not measured."""
    spread_s: float
    """What may be noise in the difference of ``step_s`` and ``held_s``."""
    parts_s: dict[str, float]
    """The time by ``SPLIT_PARTS``; they add up to ``step_s``."""
    compute_s: dict[str, float]
    """``parts_s["compute"]`` by class of operation; empty without a profile."""
    between_s: float
    """The part of ``parts_s["host"]`` in Python between two calls of the step."""
    inside_s: float
    """The part of ``parts_s["host"]`` in Python and dispatch inside of the step."""
    unseen_s: float
    """The part of ``inside_s`` in which the call of a graph waits for more than starting it takes,
    and the device does nothing."""
    calls_s: float = 0.0
    """The part of ``parts_s["launch"]`` that a step takes for having a call of its own."""

    @property
    def floor_s(self) -> float:
        """Parts below this are no finding: 5 % of the step, or the noise where that is more."""
        return max(limits()["least_part_ratio"] * self.step_s, self.spread_s)


class _TimeBudget:
    """Seconds that are given out until none is left."""

    def __init__(self, left_s: float) -> None:
        self.left_s = max(0.0, left_s)

    def take(self, wanted_s: float) -> float:
        """Take as much of what is wanted as there is."""
        given = min(max(0.0, wanted_s), self.left_s) if math.isfinite(wanted_s) else 0.0
        self.left_s = max(0.0, self.left_s - given)
        return given


def split_of(facts: StepFacts) -> Split:
    """Split the typical step.

    The step on a held batch is what the device and the call of the step take. What a whole step
    takes beyond it is, in this order: callbacks, tracing, Python between the calls, and waiting
    for data. With prefetch input and step overlap, so that waiting is what is left, not the time
    of a batch. What nobody can name stays with ``host``. What an epoch costs beside its steps
    (validation, checkpoints) is spread over them.

    Args:
        facts: Of a run, a loop or a profile; everything but ``step_s`` may be missing.

    Raises:
        UsageError: No steady step was seen, or it took no time.
    """
    step_s = typical(facts.step_s)
    if step_s <= 0.0:
        raise UsageError("no steady step was seen", why="the steps took no time at all",
                         remedy="let the script run more steps")  # fmt: skip
    held_s = min(typical(facts.held_s), step_s) if facts.held_s else 0.0
    facts = _at_the_pace_of_steps(facts, step_s)
    batch_s = typical(facts.input.batch_s) if facts.input and facts.input.batch_s else 0.0
    parts = dict.fromkeys(SPLIT_PARTS, 0.0)
    if facts.split_s:
        return _given(facts, step_s, held_s, batch_s, parts)
    inner_s = held_s or min(_profiled_s(facts.operations), step_s)
    leads = _input_leads(facts.input, batch_s, inner_s)
    outside = _TimeBudget(step_s - inner_s)
    _callbacks(facts, outside, parts)
    parts["retrace"] = outside.take(traced_in_each_step_s(facts))
    between_s = outside.take(facts.python_s)
    parts["input"] = _waiting(facts, outside, batch_s, leads)
    calls_s = min(inner_s, inner_s * of_calls(facts))
    compute, inside_s, unseen_s = _inside(facts, inner_s, calls_s, parts)
    parts["host"] = between_s + inside_s
    if held_s:
        parts["host"] += outside.left_s
    else:
        _unnamed(facts, outside, parts)
    _close(parts, step_s)
    rare_s = traced_now_and_then_s(facts)
    parts["retrace"] += rare_s
    step_s += _of_epochs(facts, parts) + rare_s
    return Split(
        step_s=step_s,
        held_s=held_s,
        batch_s=batch_s,
        spread_s=math.hypot(half_width(facts.step_s), half_width(facts.held_s)),
        parts_s=parts,
        compute_s=compute if parts["compute"] else {},
        between_s=between_s,
        inside_s=inside_s,
        unseen_s=unseen_s,
        calls_s=min(calls_s, parts["launch"]),
    )


def _at_the_pace_of_steps(facts: StepFacts, step_s: float) -> StepFacts:
    """Stretch the profile to the step, where the same step on a held batch took longer than that.

    Then the machine was slower when it was looked at, and the shares of the profile stand, not its
    seconds: they would fill the step with computing.
    """
    held_s = typical(facts.held_s) if facts.held_s else 0.0
    operations = facts.operations
    if operations is None or held_s <= step_s:
        return facts
    pace = step_s / held_s
    shorter = replace(
        operations,
        busy_s=operations.busy_s * pace,
        copy_s=operations.copy_s * pace,
        fed_s=operations.fed_s * pace,
        layout_s=operations.layout_s * pace,
        class_s={name: seconds_s * pace for name, seconds_s in operations.class_s.items()},
        collective_exposed_s=operations.collective_exposed_s * pace,
        collective_hidden_s=operations.collective_hidden_s * pace,
        largest=tuple((name, seconds_s * pace) for name, seconds_s in operations.largest),
    )
    return replace(facts, operations=shorter)


def _given(
    facts: StepFacts, step_s: float, held_s: float, batch_s: float, parts: dict[str, float]
) -> Split:
    """Return the split that a profile tells, brought from the mean step to the typical one."""
    known = {name: max(0.0, s) for name, s in facts.split_s.items() if name in parts}
    total = sum(known.values()) or 1.0
    parts |= {name: s / total * step_s for name, s in known.items()}
    _close(parts, step_s)
    classes = dict(facts.operations.class_s) if facts.operations else {}
    classes.pop("collective", None)
    whole = sum(classes.values())
    return Split(
        step_s=step_s,
        held_s=held_s,
        batch_s=batch_s,
        spread_s=half_width(facts.step_s),
        parts_s=parts,
        compute_s={name: s / whole * parts["compute"] for name, s in classes.items() if whole},
        between_s=min(facts.python_s, parts["host"]),
        inside_s=0.0,
        unseen_s=0.0,
    )


def traced_in_each_step_s(facts: StepFacts) -> float:
    """Return tracing seconds that the typical step holds: of functions traced in most of the steps.

    What is traced now and then makes a few steps long and leaves the typical one as it is; so does
    what TensorFlow itself traces for the new iterator of each epoch.
    """
    often = [one for one in facts.retraces if _is_in_most_steps(one, facts)]
    return sum(one.seconds_s for one in often) / watched_steps(facts)


def _is_in_most_steps(one: RetraceFacts, facts: StepFacts) -> bool:
    return 2 * one.traces > watched_steps(facts)


def traced_now_and_then_s(facts: StepFacts) -> float:
    """Return seconds a step, over all, of functions traced again and again in fewer than half.

    Left out are a few traces, as of a smaller last batch, and those within a callback, whose time
    is the callback's.
    """
    least = limits()["retraces_least"]
    rare = (
        max(0.0, one.seconds_s)
        for one in facts.retraces
        if one.traces >= least and not one.callback and not _is_in_most_steps(one, facts)
    )
    return sum(rare) / watched_steps(facts)


def watched_steps(facts: StepFacts) -> int:
    """Return steps in which tracing was timed, at least 1."""
    return max(1, facts.steps_watched or facts.steps_seen)


def _profiled_s(operations: OperationFacts | None) -> float:
    return max(0.0, operations.busy_s + operations.copy_s) if operations else 0.0


def _input_leads(given: InputFacts | None, batch_s: float, inner_s: float) -> bool:
    """Return whether the pipeline alone is slower than the held step, or nothing is made ahead."""
    if given is None or not batch_s:
        return True
    return not given.prefetches or batch_s >= limits()["input_slower_ratio"] * inner_s


def _callbacks(facts: StepFacts, outside: _TimeBudget, parts: dict[str, float]) -> None:
    """Split callbacks by what they do, brought down together to what there is for them."""
    named = dict.fromkeys(("validation", "checkpoint"), 0.0)
    for one in facts.callbacks:
        part = next((name for name in named if matching(name, [one.name])), "")
        if part:
            named[part] += max(0.0, one.per_step_s)
    total = max(facts.callback_s, sum(max(0.0, one.per_step_s) for one in facts.callbacks))
    given = outside.take(total)
    for name, seconds in named.items():
        parts[name] = given * min(1.0, seconds / total) if total > 0.0 else 0.0
    parts["callback"] = max(0.0, given - parts["validation"] - parts["checkpoint"])


def _of_epochs(facts: StepFacts, parts: dict[str, float]) -> float:
    """Spread over its steps what an epoch costs beside them; return what each step has of it."""
    if not facts.steps_per_epoch:
        return 0.0
    own = {"unseen": facts.epoch_ends_s, "checkpoint": facts.epoch_saves_s}
    whole_s = 0.0
    for name, seconds_s in own.items():
        parts[name] += max(0.0, seconds_s) / facts.steps_per_epoch
        whole_s += max(0.0, seconds_s) / facts.steps_per_epoch
    for one in facts.callbacks:
        share_s = max(0.0, one.per_epoch_s) / facts.steps_per_epoch
        named = (name for name in ("validation", "checkpoint") if matching(name, [one.name]))
        parts[next(named, "callback")] += share_s
        whole_s += share_s
    return whole_s


def _waiting(facts: StepFacts, outside: _TimeBudget, batch_s: float, leads: bool) -> float:
    """Return seconds of waiting for data.

    Reading a batch can wait for more than its data: for a step that was only started, such as one
    with other workers. Nobody waits much longer for data than a batch takes by itself.

    A pipeline that is fast enough and runs ahead can still slow a step on the CPU: its own work
    takes CPUs from the step, at most its CPU seconds over the CPUs there are.
    """
    if facts.waits_s > 0.0 or facts.source == "loop":  # there reading can be timed by itself
        most_s = batch_s * limits()["beside_step_ratio"] if batch_s else facts.waits_s
        waits_s = outside.take(min(facts.waits_s, most_s))
        return waits_s + outside.take(_contention_s(facts, batch_s) - waits_s)
    if not facts.held_s:  # nothing says what the step takes without its data
        return outside.take(_without_held_s(facts, outside.left_s, batch_s, leads))
    if not leads:
        return outside.take(_contention_s(facts, batch_s))
    # A pipeline beside a step is slower than alone, but nobody waits longer than for its batch.
    return outside.take(batch_s * limits()["beside_step_ratio"] if batch_s else outside.left_s)


def _without_held_s(facts: StepFacts, left_s: float, batch_s: float, leads: bool) -> float:
    """Return waiting as far as the pipeline shows it: a whole batch if none is made ahead."""
    if facts.input is None or not batch_s or not leads:
        return 0.0
    if not facts.input.prefetches:
        return batch_s
    slower = batch_s >= limits()["input_slower_ratio"] * typical(facts.step_s)
    return left_s if slower else 0.0


def _contention_s(facts: StepFacts, batch_s: float) -> float:
    if facts.device != "cpu" or facts.input is None:
        return 0.0
    busy_cpus = facts.input.cpu_ratio * facts.host.cpus
    return min(1.0, busy_cpus / max(1.0, facts.host.usable_cpus)) * batch_s


def _inside(
    facts: StepFacts, inner_s: float, calls_s: float, parts: dict[str, float]
) -> tuple[dict[str, float], float, float]:
    """Split the step on a held batch.

    What was seen to go with fewer calls was no computing: a profile makes short operations longer.

    Returns:
        Compute by class; Python inside of the step; the part of that which nothing explains.
    """
    operations = facts.operations
    if operations is None:
        parts["compute"], parts["launch"] = inner_s - calls_s, calls_s
        return {}, 0.0, 0.0
    left = _TimeBudget(inner_s - calls_s)
    busy_s = left.take(operations.busy_s or sum(operations.class_s.values()))
    of_class = _by_class(operations, busy_s)
    python_s = _python_operations_s(operations, of_class)
    parts["copy"] = _moved(of_class, operations.copy_s) or left.take(operations.copy_s)
    parts["communication"] = _exchanged(operations, of_class)
    parts["compute"] = sum(of_class.values())
    if facts.execution == "eager" or facts.python_steps or python_s > 0.0:
        parts["launch"] = calls_s
        return of_class, left.left_s + python_s, 0.0
    parts["launch"] = calls_s + left.take(_most_launch_s(operations) - calls_s)
    if busy_s <= limits()["idle_device_ratio"] * inner_s:
        return of_class, left.left_s, left.left_s
    if left.left_s > 0.0:  # work that the profile did not see
        of_class["other"] = of_class.get("other", 0.0) + left.left_s
        parts["compute"] += left.left_s
    return of_class, 0.0, 0.0


def _by_class(operations: OperationFacts, busy_s: float) -> dict[str, float]:
    classes = {name: max(0.0, s) for name, s in operations.class_s.items()}
    total = sum(classes.values())
    if total <= 0.0:
        return {"other": busy_s}
    return {name: s / total * busy_s for name, s in classes.items()}


def _moved(of_class: dict[str, float], copy_s: float) -> float:
    """Take copies between devices, which are operations too, out of their class."""
    moved_s = min(max(0.0, copy_s), of_class.get("data_movement", 0.0))
    if moved_s:
        of_class["data_movement"] -= moved_s
    return moved_s


def _exchanged(operations: OperationFacts, of_class: dict[str, float]) -> float:
    """Take the exchange between replicas out of the classes; what computing hides stays there."""
    collective_s = of_class.pop("collective", 0.0)
    known_s = operations.collective_exposed_s + operations.collective_hidden_s
    if known_s <= 0.0:
        return collective_s
    exposed_s = min(1.0, operations.collective_exposed_s / known_s) * collective_s
    if collective_s > exposed_s:
        of_class["other"] = of_class.get("other", 0.0) + collective_s - exposed_s
    return exposed_s


def _most_launch_s(operations: OperationFacts) -> float:
    """Bound the start of a step: a call and something for each operation, and never more."""
    known = limits()
    return known["start_of_call_s"] + operations.count_per_step * known["start_of_operation_s"]


def _python_operations_s(operations: OperationFacts, of_class: dict[str, float]) -> float:
    """Take operations that only call Python out of the classes; return their seconds."""
    names = matching("python", [name for name, _ in operations.largest])
    wanted = sum(max(0.0, s) for name, s in operations.largest if name in names)
    taken = min(wanted, of_class.get("other", 0.0))
    if taken:
        of_class["other"] -= taken
    return taken


def _unnamed(facts: StepFacts, outside: _TimeBudget, parts: dict[str, float]) -> None:
    """Share out what is left where no held batch was measured: gaps between operations first."""
    if facts.operations is None:
        parts["unseen" if facts.source == "record" else "compute"] += outside.take(outside.left_s)
        return
    gap_s = facts.operations.count_per_step * limits()["start_of_operation_s"]
    parts["launch"] += outside.take(gap_s)
    parts["host"] += outside.left_s


def _close(parts: dict[str, float], step_s: float) -> None:
    """Make the sum right to the last bit that floats allow: the largest part takes the rounding."""
    largest = max(parts, key=parts.__getitem__)
    rest = math.fsum(s for name, s in parts.items() if name != largest)
    parts[largest] = max(0.0, step_s - rest)


def share(parts_s: Mapping[str, float], *names: str) -> float:
    """Return the share of some classes of operation in all of them; 0 where there are none."""
    total = sum(parts_s.values())
    return sum(parts_s.get(name, 0.0) for name in names) / total if total > 0.0 else 0.0
