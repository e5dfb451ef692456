"""Show and clear what is kept between processes: traces, estimates, compiled programs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tfdyno.core.choose.cache_content import CACHE_KINDS, CacheCleared, CacheContent, CacheGroup
from tfdyno.jobs.compiled.store import program_store, why_unused
from tfdyno.store.cache import default_cache

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tfdyno.store.cache import Cache
    from tfdyno.store.compiled.programs import ProgramStore

TRACES = "trace"
"""Folder of the cache's traces; all others hold what estimates compiled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    kind: str
    size_bytes: int
    made_at_s: float
    used_at_s: float
    what: str
    delete: Callable[[], object]
    made_for: dict[str, str] = field(default_factory=dict)


def content() -> CacheContent:
    """Return all that is kept.

    Raises:
        UsageError: A setting of the cache cannot be read.
    """
    cache, store = default_cache(), program_store(os.environ)
    return CacheContent(
        folder=str(cache.root),
        groups=_groups(_items(cache, store)),
        limit_bytes=cache.limit_bytes,
        programs_limit_bytes=store.limit_bytes,
        unused=why_unused(store, os.environ),
    )


def clear(
    kinds: Sequence[str] = (), *, unused_for_s: float = 0.0, dry: bool = False
) -> CacheCleared:
    """Delete what is kept; all of it can be made again.

    Args:
        kinds: Of ``CACHE_KINDS``; none: all.
        unused_for_s: Only what was not used for so long.
        dry: Only say what would go.
    """
    cache, store = default_cache(), program_store(os.environ)
    before_s = time.time() - unused_for_s
    going = [
        one
        for one in _items(cache, store)
        if (not kinds or one.kind in kinds) and (not unused_for_s or one.used_at_s < before_s)
    ]
    if dry:
        return CacheCleared(groups=_groups(going))
    gone, left = list[_Item](), list[str]()
    for one in going:
        try:
            one.delete()
            gone.append(one)
        except OSError as error:
            left.append(f"{one.what}: {error.strerror or error}")
    store.remove_empty()
    return CacheCleared(groups=_groups(gone), left=tuple(left))


def _items(cache: Cache, store: ProgramStore) -> Iterator[_Item]:
    for folder in cache.entries():
        yield from _of_cache(cache, folder)
    for one in store.entries():
        yield _Item(
            kind=one.kind, size_bytes=one.size_bytes, made_at_s=one.made_at_s,
            used_at_s=one.used_at_s, what=str(one.path), made_for=store.about(one.key),
            delete=partial(one.path.unlink, missing_ok=True),
        )  # fmt: skip


def _of_cache(cache: Cache, folder: Path) -> Iterator[_Item]:
    """Take an entry of traces or estimates; its folder bears the time of its last use."""
    try:
        made = [file.stat() for file in folder.iterdir()]
        used_at_s = folder.stat().st_mtime
    except OSError:  # another process removes it
        return
    yield _Item(
        kind="traces" if folder.parent.name == TRACES else "estimates",
        size_bytes=sum(one.st_size for one in made),
        made_at_s=min((one.st_mtime for one in made), default=used_at_s),
        used_at_s=used_at_s,
        what=str(folder),
        delete=partial(cache.remove, folder),
    )


def _groups(items: Iterable[_Item]) -> tuple[CacheGroup, ...]:
    """Take one of each kind and software; the kinds in their order, the largest software first."""
    found: dict[tuple[str, tuple[tuple[str, str], ...]], list[_Item]] = {}
    for one in items:
        found.setdefault((one.kind, tuple(sorted(one.made_for.items()))), []).append(one)
    groups = [
        CacheGroup(
            kind=kind, count=len(some), size_bytes=sum(one.size_bytes for one in some),
            made_at_s=min(one.made_at_s for one in some),
            used_at_s=max(one.used_at_s for one in some), made_for=dict(made_for),
        )
        for (kind, made_for), some in found.items()
    ]  # fmt: skip
    return tuple(sorted(groups, key=lambda one: (CACHE_KINDS.index(one.kind), -one.size_bytes)))
