"""What is kept to spare work the next time: which kind, of which software, how much, how old."""

from __future__ import annotations

from dataclasses import dataclass, field

CACHE_KINDS = ("traces", "estimates", "programs", "autotune")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheGroup:
    """Entries of one kind, those of compiled programs by what they are compiled for."""

    kind: str
    """One of ``CACHE_KINDS``: traced steps, steps compiled for estimates, programs that trainings
    compiled, what XLA's autotuning found."""
    count: int
    size_bytes: int
    made_at_s: float
    """When the oldest was made, in seconds since 1970."""
    used_at_s: float
    """When the last one was used, in seconds since 1970."""
    made_for: dict[str, str] = field(default_factory=dict)
    """``framework``, ``version``, ``processor``, ``cards``, ``driver``; empty for traces and
    estimates, which hold their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheContent:
    """All of it."""

    folder: str
    groups: tuple[CacheGroup, ...]
    limit_bytes: int
    """The limit of traces and estimates together."""
    programs_limit_bytes: int
    """The limit of programs and autotune results together."""
    unused: str = ""
    """Why compiled programs are not kept; empty: they are."""

    @property
    def size_bytes(self) -> int:
        """The bytes of all entries."""
        return sum(one.size_bytes for one in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCleared:
    """What was deleted, or would be."""

    groups: tuple[CacheGroup, ...]
    left: tuple[str, ...] = ()
    """That could not be deleted, with why."""
