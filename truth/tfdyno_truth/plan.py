"""Which steps both routes are compared on, and the seconds that each route took."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.catalog.families import family as family_named
from tfdyno.core.base.codec import read_toml
from tfdyno.core.base.errors import UsageError
from tfdyno_truth import tables
from tfdyno_truth.records import Key
from tfdyno_truth.rows import TRUTH

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

PLAN = TRUTH / "routes.toml"
SECONDS = TRUTH / "routes.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A step to be compiled."""

    key: Key
    families: tuple[str, ...]
    """The first is the one whose program serves all cards in the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What one compile took; the columns of ``truth/routes.csv``."""

    function: str
    mode: str
    policy: str
    family: str
    compiled_batch_size: int
    trace_s: float
    """The trace job from its start to the quick answer, imports and all; both routes need it."""
    count_s: float
    """The quick route from the traced step to kernels and buffers, without imports."""
    compile_s: float
    """The compiled route from the same file to the same result, without imports."""
    compiler: str
    day: str

    @property
    def key(self) -> Key:
        """Key of the kernel record."""
        return (self.function, self.mode, self.policy)


def plan(path: Path = PLAN) -> tuple[Planned, ...]:
    """The steps of ``truth/routes.toml`` in its order.

    Raises:
        UsageError: A step is not written as mode and policy, or a family is unknown.
    """
    raw = read_toml(path)
    families: defaultdict[Key, dict[str, None]] = defaultdict(dict)
    for part in ("models", "shared"):
        for function, about in raw.get(part, {}).items():
            for step in about["steps"]:
                key = _key(function, step, path)
                for slug in about.get("families", raw["families"]):
                    families[key][family_named(slug).slug] = None
    return tuple(Planned(key=key, families=tuple(found)) for key, found in families.items())


def _key(function: str, step: str, path: Path) -> Key:
    mode, _, policy = step.partition(" ")
    if mode not in ("train", "infer") or not policy:
        raise UsageError(
            f"{path}: '{step}' of {function} is no step", remedy="write it as 'train float32'"
        )
    return (function, mode, policy)


def read_timed(path: Path = SECONDS) -> tuple[Timed, ...]:
    """All that is stored, in the order of the file; nothing without a file."""
    return tables.read(path, Timed)


def store_timed(found: Iterable[Timed], path: Path = SECONDS) -> None:
    """Put lines into the file, in the place of older ones of the same step, atomically."""
    kept = {(one.key, one.family): one for one in (*read_timed(path), *found)}
    tables.write(path, [kept[name] for name in sorted(kept)], Timed)
