"""The answer of ``tfdyno edge`` on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, format_si
from tfdyno.view.base.text import paint, wrapped
from tfdyno.words.base.amounts import short_time
from tfdyno.words.deploy.edge import (
    BOUND,
    GUESSED,
    MARK,
    class_words,
    shape_words,
    span_words,
    threads_words,
    unverified_words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.deploy.edge import EdgeDevice, EdgeReport, EdgeVerdict


def edge_text(report: EdgeReport, *, width: int, colour: bool) -> str:
    """Return what the model needs, how fast it is here, and each device with its obstacles."""
    parts = [
        *_need(report, width, colour),
        "",
        *_here(report, width),
        "",
        *_table(report.verdicts, colour),
        "",
        *_reasons(report.verdicts, width),
        wrapped(GUESSED, width=width),
        wrapped(unverified_words(report.verdicts), width=width),
    ]
    return "\n".join(parts).rstrip("\n")


def devices_text(devices: Sequence[EdgeDevice]) -> str:
    """Return the catalogue, one line each."""
    name = max(len(device.slug) for device in devices)
    return "\n".join(
        f"{device.slug:{name}}  {device.kind:15}  {format_bytes(device.memory_bytes):>8} free  "
        f"{device.name}"
        for device in devices
    )


def _need(report: EdgeReport, width: int, colour: bool) -> list[str]:
    need = report.need
    total = need.float_arithmetic + need.integer_arithmetic
    share = need.integer_arithmetic / total if total else 0.0
    lines = [
        paint(report.model, "bold", colour=colour),
        f"  file        {format_bytes(need.file_bytes)}, weights {format_bytes(need.weight_bytes)}",
        f"  memory      {format_bytes(need.live_bytes)} of values at once, at {need.peak_operator}"
        + (f"; LiteRT lays out {format_bytes(need.arena_bytes)} here" * bool(need.arena_bytes)),
        f"  arithmetic  {format_si(total, 'op')} a sample, {share:.0%} in 8 bits; "
        f"{need.operators:,} operators",
    ]
    for role, ports in (("input", report.inputs), ("output", report.outputs)):
        lines += [f"  {role:11} {port.name}: {shape_words(port)}" for port in ports]
    if need.loops_unknown:
        lines.append(wrapped("  A loop runs as often as its data says: it is counted once.",
                             width=width))  # fmt: skip
    if report.float_operators and need.integer_arithmetic:
        names = ", ".join(report.float_operators)
        lines.append(wrapped(f"  Still in floats: {names}.", width=width))
    return lines


def _here(report: EdgeReport, width: int) -> list[str]:
    if not report.timings:
        return ["Nothing was measured here."]
    lines = [wrapped(f"Measured by LiteRT on this CPU ({report.cpu}), one sample a call:",
                     width=width)]  # fmt: skip
    for one in report.timings:
        lines.append(
            f"  {threads_words(one):10} {short_time(one.median_s)}  "
            f"({span_words(one.interval_s)}; {one.rounds} rounds, {one.calls:,} calls)"
        )
    return lines


def _table(verdicts: Sequence[EdgeVerdict], colour: bool) -> list[str]:
    names = [f"{one.device} {MARK}" if one.unverified else one.device for one in verdicts]
    slugs = max(len("device"), *map(len, names))
    rows = [f"{'device':{slugs}}  fits  {'memory':>19}  {'expected':>18}  class"]
    for name, one in zip(names, verdicts, strict=True):
        memory = f"{format_bytes(one.memory_needed_bytes)} of {format_bytes(one.memory_bytes)}"
        word, style = ("yes ", "green") if one.fits else ("no  ", "red")
        fits = paint(word, style, colour=colour)
        rows.append(
            f"{name:{slugs}}  {fits}  {memory:>19}  "
            f"{span_words(one.latency_s):>18}  {class_words(one)}"
        )
    return rows


def _reasons(verdicts: Sequence[EdgeVerdict], width: int) -> list[str]:
    """Say why some do not fit; of a single device, all that is known."""
    alone = len(verdicts) == 1
    lines: list[str] = []
    for one in verdicts:
        said = [*one.obstacles, *(one.advice if alone or one.obstacles else ())]
        if alone:
            said.append(f"Bound by {BOUND[one.bound_by]}; runs by {one.runtime}.")
            if one.unsupported and not one.obstacles:
                said.append(f"{one.runtime} lacks {', '.join(one.unsupported)}.")
            if one.unverified:
                said.append(f"Unverified: {one.unverified}.")
        if said:
            lines += [wrapped(f"{one.device}: {' '.join(said)}", width=width), ""]
    return lines
