"""What is kept between processes as terminal text, and as JSON with the documented keys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.units import HOUR_S, format_bytes
from tfdyno.view.base.text import WIDTH, table, wrapped
from tfdyno.words.base.amounts import plural, short_hours

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.cache_content import CacheCleared, CacheContent, CacheGroup

_HEADERS = ("kind", "made for", "entries", "size", "oldest", "last used")
_WORDS = {
    "traces": "traced steps",
    "estimates": "steps compiled for estimates",
    "programs": "programs of trainings",
    "autotune": "XLA's autotuning",
}
_NAMES = {"tensorflow": "TensorFlow", "jax": "JAX"}


def content_text(found: CacheContent, now_s: float, *, width: int = WIDTH) -> str:
    """Return how much there is, then each kind with its software and age.

    Args:
        found: What is kept.
        now_s: Seconds since 1970, to which ages are counted.
        width: Columns of the screen.
    """
    limits = (
        f"Traces and estimates may grow to {format_bytes(found.limit_bytes)}, compiled programs "
        f"and autotuning to {format_bytes(found.programs_limit_bytes)}; what was used longest ago "
        "goes first. tfdyno cache clear deletes it; all of it can be made again."
    )
    head = f"{found.folder} holds {format_bytes(found.size_bytes)}."
    blocks = [
        head if found.groups else f"{found.folder} holds nothing yet.",
        f"Compiled programs are not kept: {found.unused}." if found.unused else "",
    ]
    parts = [wrapped(one, width=width) for one in blocks if one]
    if found.groups:
        parts.append(_table(found.groups, now_s, width))
    return "\n\n".join([*parts, wrapped(limits, width=width)])


def cleared_text(found: CacheCleared, *, removed: bool, width: int = WIDTH) -> str:
    """Return what was deleted, or would be, in a sentence each."""
    verb = "Deleted" if removed else "Would delete"
    lines = [
        f"{verb} {plural(one.count, 'entry', 'entries')}, "
        f"{format_bytes(one.size_bytes)}: {_WORDS[one.kind]}{_for(one)}."
        for one in found.groups
    ]
    lines += [f"Not deleted: {one}." for one in found.left]
    return "\n".join(wrapped(one, width=width) for one in lines) or "There is nothing to delete."


def _table(groups: Sequence[CacheGroup], now_s: float, width: int) -> str:
    rows = [
        (
            one.kind,
            _software(one),
            f"{one.count:,}",
            format_bytes(one.size_bytes),
            short_hours((now_s - one.made_at_s) / HOUR_S),
            short_hours((now_s - one.used_at_s) / HOUR_S),
        )
        for one in groups
    ]
    return table(_HEADERS, rows, align="<<>>>>", width=width, elastic=1)


def _for(one: CacheGroup) -> str:
    return f" for {_software(one)}" if one.made_for else ""


def _software(one: CacheGroup) -> str:
    """Write ``TensorFlow 2.21.0, NVIDIA H200, driver 570.86``; the processor without a card."""
    if not one.made_for:
        return "–"
    said = one.made_for
    name = _NAMES.get(said.get("framework", ""), said.get("framework", ""))
    where = said.get("cards") or said.get("processor", "")
    driver = f"driver {said['driver']}" if said.get("driver") else ""
    return ", ".join(filter(None, [f"{name} {said.get('version', '')}".strip(), where, driver]))


def content_document(found: CacheContent) -> dict[str, Any]:
    """Return all that is kept."""
    return {
        "folder": found.folder,
        "bytes": found.size_bytes,
        "limit_bytes": found.limit_bytes,
        "programs_limit_bytes": found.programs_limit_bytes,
        "programs_unused": found.unused,
        "groups": [_group(one) for one in found.groups],
    }


def cleared_document(found: CacheCleared, *, removed: bool) -> dict[str, Any]:
    """Return what was deleted, or would be."""
    return {
        "removed": removed,
        "bytes": sum(one.size_bytes for one in found.groups),
        "groups": [_group(one) for one in found.groups],
        "left": list(found.left),
    }


def _group(one: CacheGroup) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "made_for": one.made_for,
        "count": one.count,
        "bytes": one.size_bytes,
        "oldest_made_at": _iso(one.made_at_s),
        "last_used_at": _iso(one.used_at_s),
    }


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")
