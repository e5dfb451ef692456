"""Whose memory ran out: the model's, another process's, or the machine's."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.core.doctor.finding import Evidence, Verdict
from tfdyno.core.doctor.oom import FAR_BELOW_RATIO, OomReport
from tfdyno.rules.match import Match
from tfdyno.rules.oom.draft import printed_bytes

if TYPE_CHECKING:
    from tfdyno.core.choose.software import Knowledge
    from tfdyno.core.doctor.machine_facts import GpuFacts, MachineFacts
    from tfdyno.rules.log.explained import LogFacts

MODEL = "mem.oom_model"
HELD = "mem.held_by_other_process"
HOST = "mem.host_oom"
CUDNN = "mem.cudnn_init"
FRAGMENTED = "mem.fragmented"
WORTH_NAMING_RATIO = 0.1
"""A process with less of the card's memory than this is not what fills it."""
_OWN_LIMIT = re.compile(r"memory_limit|per_process_gpu_memory_fraction|LogicalDeviceConfiguration")


def refine_memory(
    matches: tuple[Match, ...], log: LogFacts, facts: MachineFacts, knowledge: Knowledge
) -> tuple[Match, ...]:
    """Tell the causes of exhausted memory apart.

    The limit of TensorFlow's allocator against the memory of the card shows whether the card was
    free; a cuDNN of the wrong version explains why it did not start; an allocator of the host
    speaks for the host alone.
    """
    del knowledge
    card = facts.first_gpu
    matches = _without_wrong_library(matches)
    matches = _without_bare_name(matches)
    matches = _judge_limit(matches, _limit_bytes(log), card.memory_bytes)
    return _name_processes(matches, card)


def refine_with_report(
    matches: tuple[Match, ...], report: OomReport | None, facts: MachineFacts
) -> tuple[Match, ...]:
    """Add what a report of exhausted memory tells, with its exact bytes."""
    if report is None:
        return matches
    card = facts.first_gpu
    if report.kind != "host":
        matches = _judge_limit(matches, report.limit_bytes, card.memory_bytes)
        matches = _judge_refusal(matches, report)
    values = {}
    if report.requested_bytes:
        values["wanted"] = format_bytes(report.requested_bytes)
    if report.shape:
        values["shape"] = ",".join(str(size) for size in report.shape)
    wanted = HOST if report.kind == "host" else MODEL
    told = tuple(one.told(values) if one.cause == wanted else one for one in matches)
    return (*told, *(_fragments(one, report) for one in told if one.cause == wanted
                     and report.is_fragmented))  # fmt: skip


def _fragments(found: Match, report: OomReport) -> Match:
    """Tell that enough was free in all, beside the memory that ran out."""
    free, wanted = format_bytes(report.room_bytes), format_bytes(report.requested_bytes)
    values = {"free": free, "memory": report.kind or "gpu"}
    text = f"{wanted} were asked for and {free} were free"
    if 0 < report.largest_free_bytes < report.requested_bytes:
        values["piece"] = format_bytes(report.largest_free_bytes)
        text += f", the largest piece {values['piece']}"
    return Match(
        cause=FRAGMENTED,
        verdict=found.verdict,
        evidence=(Evidence(text=text, source="allocator"),),
        basis="log",
        values=values,
        line=found.line,
    )


def _without_wrong_library(matches: tuple[Match, ...]) -> tuple[Match, ...]:
    """Let a version line above the failure of cuDNN win."""
    names = {one.cause for one in matches if one.verdict != "possible"}
    if not names & {"lib.cudnn_version_mismatch", "lib.cudnn_missing"}:
        return matches
    return tuple(one for one in matches if one.cause != CUDNN)


def _without_bare_name(matches: tuple[Match, ...]) -> tuple[Match, ...]:
    """Drop the error's bare name where the host's allocator named itself."""
    if not any(one.cause == HOST and one.verdict == "proven" for one in matches):
        return matches
    return tuple(one for one in matches if not (one.cause == MODEL and one.verdict == "possible"))


def _limit_bytes(log: LogFacts) -> int:
    """Return the limit of the first dump of the allocator, 0 where there is none."""
    lines = [
        line
        for hits in log.hits
        if hits.cause in {MODEL, HELD} and hits.rule.needle == "limit:"
        for line in hits.lines
    ]
    first = min(lines, key=lambda line: line.number, default=None)
    return printed_bytes(first.values.get("limit", ""))[0] if first else 0


def _judge_limit(matches: tuple[Match, ...], limit: int, card: int) -> tuple[Match, ...]:
    if not limit or not card:
        return matches
    by_limit = [one for one in matches if one.cause == HELD and "limit" in one.values]
    if limit >= FAR_BELOW_RATIO * card:
        return tuple(one for one in matches if one not in by_limit)
    evidence = Evidence(
        text=f"limit {format_bytes(limit)} of {format_bytes(card)}",
        source="allocator and card",
    )
    return _add_held(matches, {"limit": format_bytes(limit)}, evidence, "likely")


def _judge_refusal(matches: tuple[Match, ...], report: OomReport) -> tuple[Match, ...]:
    if not report.is_refused_by_device or report.kind != "gpu":
        return matches
    room = format_bytes(report.limit_bytes - report.pool_bytes)
    evidence = Evidence(
        text=f"{room} more were allowed and the card had no more", source="allocator"
    )
    return _add_held(matches, {}, evidence, "possible")


def _add_held(
    matches: tuple[Match, ...], values: dict[str, str], evidence: Evidence, verdict: Verdict
) -> tuple[Match, ...]:
    if any(_OWN_LIMIT.search(e.text) for one in matches for e in one.evidence):
        return matches
    known = next((one for one in matches if one.cause == HELD), None)
    if known is None:
        line = min((one.line for one in matches if one.cause == MODEL), default=0)
        known = Match(cause=HELD, verdict=verdict, evidence=(evidence,), basis="log", line=line)
        return (*matches, known.told(values))
    better = dataclasses.replace(known, evidence=(*known.evidence, evidence))
    return tuple(better.told(values) if one is known else one for one in matches)


def _name_processes(matches: tuple[Match, ...], card: GpuFacts) -> tuple[Match, ...]:
    """Take as proof where NVML lists who holds the card."""
    big = [
        one
        for one in card.processes
        if one.memory_bytes >= WORTH_NAMING_RATIO * (card.memory_bytes or 1)
    ]
    if not big or not any(one.cause == HELD for one in matches):
        return matches
    named = ", ".join(f"{p.name} ({p.pid}, {format_bytes(p.memory_bytes)})" for p in big)
    evidence = Evidence(text=named, source="NVML")
    return tuple(
        dataclasses.replace(
            one.told({"processes": named}),
            verdict="proven",
            evidence=(*one.evidence, evidence),
        )
        if one.cause == HELD
        else one
        for one in matches
    )
