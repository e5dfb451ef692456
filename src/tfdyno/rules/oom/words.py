"""Say in words what held the memory when it ran out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.core.doctor.oom import FAR_BELOW_RATIO, OomReport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.language import Language

LARGEST = 3
"""Chunk sizes and buffers that are named."""
_TEXTS: dict[Language, dict[str, str]] = {
    "en": {
        "asked": "{operation} asked for {requested}{tensor}; {in_use} of {limit} were in use.",
        "asked_plain": "{operation} asked for {requested}{tensor}.",
        "program": "The compiled program needs {program}; the device has {limit}.",
        "program_plain": "The compiled program needs {program} at once: {parts}.",
        "fragments": "{room} were free, but the largest free piece has {piece}.",
        "fragments_plain": "{room} were free, but not in one piece.",
        "refused": "{room} more were allowed, but the card had no more: something else holds it.",
        "limit": "The limit is {limit} of the {total} of the card: the rest was taken already.",
        "chunks": "{count} × {size} hold {total} ({share} of what was in use).",
        "buffer": "{size}  {name}",
        "peak": "The largest use before was {peak}.",
        "someone": "An operation",
    },
    "zh": {
        "asked": "{operation} 申请 {requested}{tensor}；当时已用 {in_use}，上限 {limit}。",
        "asked_plain": "{operation} 申请 {requested}{tensor}。",
        "program": "编译后的程序需要 {program}；设备只有 {limit}。",
        "program_plain": "编译后的程序同时需要 {program}：{parts}。",
        "fragments": "还有 {room} 空闲，但最大的空闲块只有 {piece}。",
        "fragments_plain": "还有 {room} 空闲，但不是连续的一块。",
        "refused": "上限还允许 {room}，但显卡已没有空闲：被其他程序占用。",
        "limit": "上限为 {limit}，而显卡共有 {total}：其余已被占用。",
        "chunks": "{count} × {size} 共占 {total}（占已用的 {share}）。",
        "buffer": "{size}  {name}",
        "peak": "此前的最大用量为 {peak}。",
        "someone": "某个算子",
    },
}
_PARTS: dict[Language, tuple[tuple[str, str], ...]] = {
    "en": (
        ("parameter_bytes", "inputs and weights"),
        ("temporary_bytes", "temporary"),
        ("output_bytes", "outputs"),
    ),
    "zh": (
        ("parameter_bytes", "输入与权重"),
        ("temporary_bytes", "临时"),
        ("output_bytes", "输出"),
    ),
}


def what_held(
    report: OomReport, *, card_bytes: int = 0, language: Language = "en"
) -> tuple[str, ...]:
    """Return sentences on what held the memory, the most telling first.

    Args:
        report: What the log says.
        card_bytes: Memory of the card; 0 where unknown.
        language: Of the sentences.
    """
    texts = _TEXTS[language]
    said = [
        *_asked(report, texts),
        *_program(report, texts, language),
        *_limit(report, texts, card_bytes),
        *_fragments(report, texts),
        *_chunks(report, texts),
        *_buffers(report, texts),
    ]
    if report.peak_bytes > report.in_use_bytes > 0:
        said.append(texts["peak"].format(peak=format_bytes(report.peak_bytes)))
    return tuple(said)


def _asked(report: OomReport, texts: dict[str, str]) -> Iterator[str]:
    if not report.requested_bytes:
        return
    has_state = report.in_use_bytes and report.limit_bytes
    tensor = f" ({report.dtype} {list(report.shape)})" if report.shape else ""
    yield texts["asked" if has_state else "asked_plain"].format(
        operation=report.operation or texts["someone"],
        requested=format_bytes(report.requested_bytes),
        tensor=tensor.replace("( ", "("),
        in_use=format_bytes(report.in_use_bytes),
        limit=format_bytes(report.limit_bytes),
    )


def _program(report: OomReport, texts: dict[str, str], language: Language) -> Iterator[str]:
    if not report.program_bytes:
        return
    parts = ", ".join(
        f"{name} {format_bytes(getattr(report, field))}"
        for field, name in _PARTS[language]
        if getattr(report, field)
    )
    program = format_bytes(report.program_bytes)
    if report.limit_bytes:
        yield texts["program"].format(program=program, limit=format_bytes(report.limit_bytes))
    elif parts:
        yield texts["program_plain"].format(program=program, parts=parts)


def _limit(report: OomReport, texts: dict[str, str], card_bytes: int) -> Iterator[str]:
    if 0 < report.limit_bytes < FAR_BELOW_RATIO * card_bytes:
        limit, total = format_bytes(report.limit_bytes), format_bytes(card_bytes)
        yield texts["limit"].format(limit=limit, total=total)


def _fragments(report: OomReport, texts: dict[str, str]) -> Iterator[str]:
    if report.is_refused_by_device:
        yield texts["refused"].format(room=format_bytes(report.limit_bytes - report.pool_bytes))
    if not report.is_fragmented:
        return
    room = format_bytes(report.room_bytes)
    piece = report.largest_free_bytes
    if 0 < piece < report.requested_bytes:
        yield texts["fragments"].format(room=room, piece=format_bytes(piece))
    else:
        yield texts["fragments_plain"].format(room=room)


def _chunks(report: OomReport, texts: dict[str, str]) -> Iterator[str]:
    whole = sum(one.total_bytes for one in report.chunks)
    for one in report.chunks[:LARGEST] if whole else ():
        yield texts["chunks"].format(
            count=one.count,
            size=format_bytes(one.size_bytes),
            total=format_bytes(one.total_bytes),
            share=f"{one.total_bytes / whole:.0%}",
        )


def _buffers(report: OomReport, texts: dict[str, str]) -> Iterator[str]:
    for one in report.buffers[:LARGEST]:
        name = " ".join(part for part in (one.shape, one.name) if part)
        if name:
            yield texts["buffer"].format(size=format_bytes(one.size_bytes), name=name[:160])
