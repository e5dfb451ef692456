"""What ``cache --json`` and ``cache clear --json`` print: the documented keys."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfdyno.core.choose.cache_content import CacheCleared, CacheContent, CacheGroup


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
