"""Replicas that wait for each other's gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, format_si
from tfdyno.rules.bottleneck.draft import Draft, duration, evidence, of_step, taking
from tfdyno.rules.bottleneck.steady import typical
from tfdyno.rules.bottleneck.tables import limits
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.doctor.finding import Evidence
    from tfdyno.rules.bottleneck.seen import Seen


def ranks(seen: Seen) -> int:
    """Return replicas that exchange gradients, on all workers together.

    A profile is of one host: where it shows an exchange and one card there is another somewhere.
    """
    least = 2 if seen.split.parts_s["communication"] > 0.0 else 1
    return max(least, known_ranks(seen))


def known_ranks(seen: Seen) -> int:
    """Return those that were counted."""
    return max(1, seen.facts.replica_count, seen.facts.worker_count)


def sent_bytes(seen: Seen) -> float:
    """Return bytes that each ring rank sends for an update: ``2 (n - 1) / n`` of the gradients."""
    return 2.0 * (ranks(seen) - 1) / ranks(seen) * seen.facts.parameter_bytes


def skew(seen: Seen) -> Iterator[Draft]:
    """Find one worker that is slower, while all others wait for it in each step."""
    work = seen.facts.worker_step_s
    part_s = max(work) - typical(work) if len(work) > 1 else 0.0
    if len(work) == 2:  # the median of two is their mean; what the faster one waits counts
        part_s = max(work) - min(work)
    part_s = min(part_s, seen.step_s)
    if not seen.counts(part_s):
        return
    slowest = max(range(len(work)), key=work.__getitem__)
    times = ", ".join(duration(one) for one in work)
    told = evidence("own work of the workers: {times} a step", "workers", times=times)
    values = {"worker": str(slowest), "wait": duration(part_s)}
    yield taking(seen, "communication.worker_skew", part_s, told, values=values)


def small_buckets(seen: Seen) -> Iterator[Draft]:
    """Find many small exchanges, each with its own start: one for each variable, or more."""
    facts, part_s = seen.facts, _part_s(seen)
    seen_count = facts.operations.collectives_per_step if facts.operations else 0.0
    count = max(facts.variable_count, round(seen_count))
    if not seen.counts(part_s) or count < limits()["many_exchanges"]:
        return
    mean_bytes = facts.parameter_bytes / count
    if mean_bytes > limits()["small_exchange_bytes"]:
        return
    each = say("{mean} on average", mean=format_bytes(mean_bytes))
    told = evidence(
        "{count} variables of {each}", "variables", count=facts.variable_count, each=each
    )
    if count > facts.variable_count:
        told = evidence(
            "{count:,} exchanges a step of {each}", "profile and variables", count=count, each=each
        )
    yield taking(seen, "communication.small_buckets", part_s, _told(seen, part_s), told,
                 values={"count": f"{count:,}"})  # fmt: skip


def small_batch(seen: Seen) -> Iterator[Draft]:
    """Find gradients that are as large for few samples as for many."""
    facts, part_s = seen.facts, _part_s(seen)
    if not seen.counts(part_s):
        return
    factor = int(limits()["batch_factor"])
    settings = {"batch_size": str(factor * facts.batch_size)} if facts.batch_size else {}
    told = [_told(seen, part_s)]
    if facts.batch_size:
        told.append(
            evidence(
                "{batch} samples a step on each of {replicas} replicas",
                "the script",
                batch=facts.batch_size,
                replicas=ranks(seen),
            )
        )
    values = {"factor": str(factor)}
    if known_ranks(seen) > 1:
        values["ranks"] = str(ranks(seen))
    yield taking(seen, "communication.small_batch", part_s, *told, settings=settings,
                 values=values)  # fmt: skip


def slow_link(seen: Seen) -> Iterator[Draft]:
    """Find many bytes over a link that is slower than such links are."""
    facts, part_s = seen.facts, seen.split.parts_s["communication"]
    if ranks(seen) == 1 or not seen.counts(part_s):
        return
    if sent_bytes(seen) < limits()["link_least_bytes"]:
        return
    rate = sent_bytes(seen) / part_s
    between = "workers" if facts.worker_count > 1 else "devices"
    if rate > limits()[f"slow_link_{between}_bytes_per_s"]:
        return
    named = say("workers") if between == "workers" else say("devices")
    told = evidence(
        "{size} a step go at {rate} between {between}",
        "profile and sizes of the variables",
        size=format_bytes(sent_bytes(seen)),
        rate=format_si(rate, "B/s"),
        between=named,
    )
    yield taking(
        seen,
        "communication.slow_link",
        part_s,
        _told(seen, part_s),
        told,
        values={
            "rate": format_si(rate, "B/s"),
            "between": named,
        },
    )


def _part_s(seen: Seen) -> float:
    """Return seconds of exchange: of the profile, or else by its size or the idle time."""
    if ranks(seen) == 1:
        return 0.0
    return seen.split.parts_s["communication"] or max(_sized_s(seen), _idle_s(seen))


def _sized_s(seen: Seen) -> float:
    """Return what it takes at least by its bytes and messages, at most half of the step."""
    facts, known = seen.facts, limits()
    if facts.device != "cpu":
        return 0.0
    between = "workers" if facts.worker_count > 1 else "devices"
    bytes_s = sent_bytes(seen) / known[f"expected_{between}_bytes_per_s"]
    messages_s = facts.variable_count * known["expected_message_s"]
    return min(bytes_s + messages_s, 0.5 * seen.step_s)


def _idle_s(seen: Seen) -> float:
    """Return seconds of a step for which a worker among several neither computes nor lacks a CPU.

    A step that computes keeps one CPU busy at least. Where others take the CPUs it may wait for
    one, so that no more counts than all of the CPUs are idle.
    """
    facts, host = seen.facts, seen.facts.host
    if facts.device != "cpu" or facts.worker_count < 2 or not host.cpu_ratio:
        return 0.0
    own_s = host.cpu_ratio * host.usable_cpus * seen.step_s
    machine_s = max(0.0, 1.0 - host.cpu_ratio - host.other_cpu_ratio) * seen.step_s
    return max(0.0, min(seen.split.parts_s["compute"] - own_s, machine_s))


def _told(seen: Seen, part_s: float) -> Evidence:
    if seen.split.parts_s["communication"]:
        return evidence("exchanging gradients: {part}", "profile", part=of_step(seen, part_s))
    if _idle_s(seen) > _sized_s(seen):
        return evidence(
            "the worker does nothing for {part}: it waits for the others",
            "CPU time of the process",
            part=of_step(seen, part_s),
        )
    return evidence(
        "exchanging {size} should take {part}",
        "sizes of the variables",
        size=format_bytes(sent_bytes(seen)),
        part=of_step(seen, part_s),
    )


COMMUNICATION_RULES = (skew, small_buckets, small_batch, slow_link)
