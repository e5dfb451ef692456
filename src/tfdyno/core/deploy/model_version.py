"""A version of a model in the store: its files, where it came from, and which one is in use."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ArtefactKind = Literal["keras", "savedmodel", "onnx", "litert", "tensorrt"]
PRODUCTION = "production"
"""The alias that ``promote`` sets."""
KEEP = 3
"""So many of the newest versions of a model a collection leaves."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """One file of an artefact."""

    path: str
    """The path in the artefact, with slashes; empty: the artefact is this file."""
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """The files of a version, found by what is in them."""

    kind: ArtefactKind
    name: str
    """The name of the file or folder in the store: ``model.keras``, ``model``."""
    digest: str
    """sha256 over name, paths and contents: what is equal is stored once."""
    files: tuple[StoredFile, ...]

    @property
    def size_bytes(self) -> int:
        """The bytes of all files."""
        return sum(one.size_bytes for one in self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Where a version came from. What is not known is empty.

    Recipe, environment, estimate and verification stay as the JSON that they were written as, so
    that a later tfdyno reads what an earlier one kept.
    """

    workload: str = ""
    """What was trained: ``train.py:build_model``."""
    run: str = ""
    """Folder of the training run, as it was."""
    run_status: str = ""
    """``finished``, ``stopped``, ``failed`` or ``running``."""
    run_verified: bool = False
    """Whether digests tell that the model is of that run; ``False``: nothing tells it."""
    seed: int | None = None
    recipe_id: str = ""
    recipe: dict[str, object] = field(default_factory=dict)
    data: str = ""
    """What it learned from, as it was named."""
    data_sha256: str = ""
    """Fingerprint of that data: of the contents where they were read, else of the code."""
    metrics: dict[str, float] = field(default_factory=dict)
    metric_origins: dict[str, str] = field(default_factory=dict)
    """Where each metric is from: ``training`` (its last epoch), ``export`` (on the data that it was
    compared on) or ``given``. Empty in what an earlier tfdyno kept."""
    environment: dict[str, object] = field(default_factory=dict)
    estimate: dict[str, object] = field(default_factory=dict)
    verification: dict[str, object] = field(default_factory=dict)
    """What ``tfdyno export`` found when it compared the file with the model."""
    sources: dict[str, str] = field(default_factory=dict)
    """sha256 by path, of the code and the files of the run."""
    parent: str = ""
    """``NAME:V`` that this one was made from."""
    tfdyno: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRecord:
    """What the store's row of a version says; none of it changes."""

    artefact: Artefact
    lineage: Lineage
    added_at: str
    """UTC, ISO 8601."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVersion:
    """A version as the store gives it."""

    name: str
    version: int
    path: Path
    """The ``.keras`` file, the SavedModel's folder, ...; not to be written to."""
    artefact: Artefact
    lineage: Lineage
    added_at: str
    label: str = ""
    promoted: bool = False

    @property
    def id(self) -> str:
        """``NAME:V``."""
        return f"{self.name}:{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """One line of the history of an alias."""

    action: Literal["promote", "rollback"]
    version: int
    """That was in use afterwards."""
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a collection removes, or would."""

    versions: tuple[ModelVersion, ...]
    freed_bytes: int
    """That the disk gets back, leftovers of killed commands included."""


def checked_name(name: str) -> str:
    """Return the name itself, where it may stand in a URL and a path; raises ``UsageError``."""
    if _NAME.fullmatch(name):
        return name
    raise UsageError(
        f"'{name}' is no name of a model",
        why="letters, digits, '.', '_' and '-' make one, a letter or digit first",
        remedy="choose one with --name",
    )


def parse_id(text: str) -> tuple[str, int | None]:
    """Read ``NAME`` or ``NAME:V`` as a name and a number; raises ``UsageError``."""
    name, colon, number = text.partition(":")
    if not colon:
        return checked_name(name), None
    if not (number.isascii() and number.isdecimal() and 0 < len(number) < 10 and int(number)):
        raise UsageError(f"'{number}' is no version", why="versions are 1, 2, 3, …",
                         remedy=f"tfdyno models show {name}")  # fmt: skip
    return checked_name(name), int(number)


def in_use(history: Iterable[Promotion]) -> tuple[int, ...]:
    """Return promoted versions, the one in use last, those before it as roll-backs go to them.

    Each promotion is put on a pile and each roll-back takes off what lies on the version that it
    went to: more than one where a version between them had been removed.
    """
    pile: list[int] = []
    for one in history:
        if one.action == "promote":
            pile.append(one.version)
            continue
        pile = pile[:-1]
        while pile and pile[-1] != one.version:
            pile.pop()
    return tuple(pile)


def collectable(
    versions: Sequence[ModelVersion], pile: Sequence[int], keep: int
) -> tuple[ModelVersion, ...]:
    """Return versions of one model that a collection removes.

    It leaves the one in use, the one that a roll-back goes to, the newest ``keep``, and those with
    a label.
    """
    newest = sorted((one.version for one in versions), reverse=True)[:keep]
    left = {*newest, *tuple(pile)[-2:]}
    return tuple(one for one in versions if not one.label and one.version not in left)
