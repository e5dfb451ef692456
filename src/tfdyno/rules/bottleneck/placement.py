"""Operations and variables that are not where the step computes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.rules.bottleneck.draft import Draft, evidence, of_step, quoted, taking
from tfdyno.rules.bottleneck.gains import amdahl
from tfdyno.rules.bottleneck.seen import fed_s
from tfdyno.rules.bottleneck.tables import cause, limits
from tfdyno.words.base.language import say
from tfdyno.words.diagnose.told import fact_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.bottleneck.seen import Seen

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")


def variables_elsewhere(seen: Seen) -> Iterator[Draft]:
    """Find variables that every step has to fetch from another device."""
    facts = seen.facts
    if facts.replica_count > 1 or facts.worker_count > 1:
        return
    wrong = _elsewhere(seen)
    count = sum(wrong.values())
    if not count:
        return
    name, part_s = "placement.variables_elsewhere", seen.split.parts_s["copy"]
    text = say(", ").join(
        say("{number} on {device}", number=number, device=device)
        for device, number in sorted(facts.devices.items())
    )
    told = [evidence("variables: {text}", "devices of the variables", text=text)]
    if part_s:
        told.append(
            evidence("copies between devices: {part}", "profile", part=of_step(seen, part_s))
        )
    gain = amdahl(seen.step_s, part_s, cause(name).removes) if seen.counts(part_s) else None
    # Logical CPUs share their memory: whoever uses several of them says what goes where.
    yield Draft(cause=name, evidence=tuple(told), gain=gain, outranks=facts.device == "cpu",
                values={"count": str(count), "where": ", ".join(sorted(wrong))})  # fmt: skip


def copies(seen: Seen) -> Iterator[Draft]:
    """Find tensors that go from device to device in each step, but for the batch."""
    operations = seen.facts.operations
    part_s = seen.split.parts_s["copy"] - fed_s(seen)
    if operations is None or not seen.counts(part_s) or _elsewhere(seen):
        return
    told = [evidence("copies between devices: {part}", "profile", part=of_step(seen, part_s))]
    if moved := operations.copied_bytes - operations.fed_bytes:
        told.append(evidence("{moved} a step", "profile", moved=format_bytes(moved)))
    yield taking(seen, "placement.copies", part_s, *told)


def cpu_operations(seen: Seen) -> Iterator[Draft]:
    """Find operations that ran on the CPU though a card was there."""
    operations = seen.facts.operations
    if operations is None or not operations.host_only or seen.facts.device != "gpu":
        return
    shares = [
        float(match[1]) / 100 for one in operations.host_only if (match := _SHARE.search(one))
    ]
    part_s = min(1.0, sum(shares)) * seen.step_s
    if seen.counts(part_s):
        told = (quoted(one, "profile") for one in operations.host_only)
        yield taking(seen, "placement.cpu_ops", part_s, *told,
                     values={"first": fact_words(operations.host_only[0])})  # fmt: skip


def _elsewhere(seen: Seen) -> dict[str, int]:
    """Return devices with variables that are not those the step computes on, with how many.

    With a card it is the CPU; among logical CPUs every one but the first, on which TensorFlow
    computes, unless all variables are there.
    """
    held = {name: number for name, number in seen.facts.devices.items() if number > 0}
    if seen.facts.device == "gpu":
        wrong = {name: number for name, number in held.items() if "CPU" in name.upper()}
        # Counters and seeds of Keras may have no kernel for the card: a few are usual.
        least = limits()["variables_elsewhere_ratio"] * sum(held.values())
        return wrong if sum(wrong.values()) > least else {}
    if len(held) < 2:
        return {}
    return {name: number for name, number in held.items() if not name.endswith(":0")}


PLACEMENT_RULES = (variables_elsewhere, copies, cpu_operations)
