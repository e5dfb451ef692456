"""What each name of Horovod becomes, from the tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tfdyno.rules.tables import read_rows

ROOT = "horovod"
PARTS = (
    "horovod.tensorflow.keras.", "horovod.tensorflow.", "horovod.keras.", "horovod.",
)  # fmt: skip
OTHERS = ("horovod.torch", "horovod.mxnet", "horovod.spark", "horovod.ray")
"""Packages that no script of Keras needs, or that start processes by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of ``horovod_names.csv``."""

    action: str
    """``drop``: what uses it goes, ``replace``, ``rank``, ``local``: by ``text``, ``optimizer``,
    ``tape``, ``callback``, ``load``, ``starter``: see ``rewrite``; ``hand``: by a person."""
    text: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A row of ``horovod_optimizer.csv``."""

    accepted: str
    """Last part of the value that may be left out; ``*``: any, empty: none."""
    why: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchArgument:
    """A row of ``horovod_batches.csv``: where a call is given the size of a batch."""

    argument: str
    position: int
    unset: str
    """What it is without the argument; empty: the argument is always there."""


def entry_of(path: str) -> tuple[str, Entry] | None:
    """Name and row of a dotted path of Horovod; None: it is no name in Horovod.

    Args:
        path: As ``bindings.resolve`` gives it: ``horovod.tensorflow.keras.size``.
    """
    part = next((one for one in PARTS if path.startswith(one)), "")
    name = path.removeprefix(part)
    if not part or not name or ")" in name:
        return None
    table = _names()
    folder = f"{name.partition('.')[0]}.*"
    return name, table.get(name) or table.get(folder) or table["*"]


@cache
def _names() -> dict[str, Entry]:
    columns = ("name", "action", "text", "why", "remedy", "source")
    return {
        row["name"]: Entry(
            action=row["action"], text=row["text"], why=row["why"], remedy=row["remedy"]
        )
        for row in read_rows("horovod_names.csv", columns)
    }


@cache
def optimizer_words() -> dict[str, Word]:
    """Return what may be given to ``hvd.DistributedOptimizer``, by keyword."""
    rows = read_rows("horovod_optimizer.csv", ("keyword", "accepted", "why", "remedy", "source"))
    return {
        row["keyword"]: Word(accepted=row["accepted"], why=row["why"], remedy=row["remedy"])
        for row in rows
    }


@cache
def batch_arguments() -> dict[str, BatchArgument]:
    """Return calls that are given a batch size, by the last part of their name."""
    rows = read_rows("horovod_batches.csv", ("call", "argument", "position", "unset", "source"))
    return {
        row["call"]: BatchArgument(
            argument=row["argument"], position=int(row["position"]), unset=row["unset"]
        )
        for row in rows
    }


@cache
def joint_names() -> frozenset[str]:
    """Return what all processes have to do together, though Horovod's scripts let one do it."""
    return frozenset(
        row["name"] for row in read_rows("horovod_joint.csv", ("name", "why", "source"))
    )
