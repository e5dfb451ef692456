"""Keep models by version, and say which one is in use."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.offers import data_dir
from tfdyno.core.base.clock import now
from tfdyno.core.base.errors import OSErrorsAs, ToolError, UsageError
from tfdyno.core.deploy.model_version import checked_name, parse_id
from tfdyno.jobs.deploy._model_lineage import RECORD, lineage_of
from tfdyno.jobs.deploy.model_source import model_source
from tfdyno.store.model_files import copy_contents
from tfdyno.store.model_store import ModelStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.deploy.model_version import Lineage, ModelVersion

FOLDER = "models"
VARIABLE = "TFDYNO_STORE"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRequest:
    """What is to be kept, and what is known of it."""

    path: Path
    name: str = ""
    """Empty: the path's last part that says something."""
    run: Path | None = None
    data: Path | None = None
    estimate: Path | None = None
    code: tuple[Path, ...] = ()
    metrics: dict[str, float] = field(default_factory=dict)
    parent: str = ""
    label: str = ""


def model_store(folder: Path | None = None) -> ModelStore:
    """Return the store in a folder; else in ``$TFDYNO_STORE``, else among the user's own data."""
    named = os.environ.get(VARIABLE)
    return ModelStore(folder or (Path(named).expanduser() if named else data_dir() / FOLDER))


def add(
    store: ModelStore, asked: AddRequest, *, heard: Callable[[str], None] = lambda _text: None
) -> tuple[ModelVersion, bool]:
    """Keep a model with where it came from; the version, and whether it is new.

    Raises:
        UsageError: The path is no model, something named cannot be read, or the same files are
            a version already and something else was said of them.
        ToolError: There is no room.
    """
    found = model_source(asked.path)
    name = checked_name(asked.name) if asked.name else found.name
    if asked.parent:
        store.version(*exact(store, asked.parent))
    lineage = lineage_of(
        found.path,
        run=asked.run or found.run,
        data=asked.data,
        estimate=asked.estimate,
        code=asked.code,
        metrics=asked.metrics,
        parent=asked.parent,
        heard=heard,
    )
    heard(f"copying {found.path}")
    version, is_new = store.add(
        name,
        found.path,
        kind=found.kind,
        lineage=lineage,
        added_at=now(),
        label=asked.label,
        without=RECORD,
    )
    if not is_new:
        _check_same(version, lineage, asked)
    return version, is_new


def exact(store: ModelStore, text: str) -> tuple[str, int]:
    """Read ``NAME:V`` as name and number; without one the promoted version, else the newest."""
    name, version = parse_id(text)
    if version is None:
        version = store.promoted(name) or store.versions(name)[-1].version
    return name, version


def needs_number(text: str) -> tuple[str, int]:
    """Read ``NAME:V`` as name and number; raises ``UsageError`` where there is no number."""
    name, version = parse_id(text)
    if version is None:
        raise UsageError(f"'{text}' names no version", remedy=f"write {text}:V, as {text}:1")
    return name, version


def promote(store: ModelStore, text: str) -> tuple[ModelVersion, bool]:
    """Let ``NAME:V`` be the version in use; it, and whether it was not yet.

    Raises:
        TfdynoError: There is no such version, or its files are damaged.
    """
    name, number = needs_number(text)
    store.find(name, number)
    is_new = store.promote(name, number, at=now())
    return store.version(name, number), is_new


def roll_back(store: ModelStore, text: str) -> tuple[ModelVersion, int]:
    """Go back to the version that was in use before; it, and the one that was in use.

    Raises:
        TfdynoError: There is none before, or its files are damaged.
    """
    name, version = parse_id(text)
    if version is not None:
        raise UsageError(f"a roll-back goes to the version before, not to {version}",
                         remedy=f"tfdyno models promote {text}")  # fmt: skip
    before = store.before(name)
    if before is not None:
        store.find(name, before)
    number, left = store.roll_back(name, at=now())
    return store.version(name, number), left


def copy_out(store: ModelStore, text: str, output: Path) -> ModelVersion:
    """Write the files of a version to a path that is not there yet.

    Raises:
        TfdynoError: There is no such version, it is damaged, or the path cannot be written.
    """
    found = store.find(*exact(store, text))
    if output.exists():
        raise UsageError(f"{output} is there already", remedy="name a new path")
    if not output.parent.is_dir():
        raise UsageError(f"there is no folder {output.parent}")
    with (
        OSErrorsAs(ToolError, f"cannot write {output}"),
        tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as part,
    ):
        copy = Path(part) / output.name
        copy_contents(found.path, copy)
        copy.rename(output)
    return found


def _check_same(version: ModelVersion, lineage: Lineage, asked: AddRequest) -> None:
    """Refuse another lineage or label for files that are a version already."""
    for word in ("metrics", "parent", "data_sha256"):
        new, old = getattr(lineage, word), getattr(version.lineage, word)
        if new and new != old:
            raise UsageError(
                f"these files are {version.id} already, with other {word.removesuffix('_sha256')}",
                why="what a version came from is not written anew",
                remedy=f"see tfdyno models show {version.id}",
            )
    if asked.label and asked.label != version.label:
        raise UsageError(f"these files are {version.id} already, without that label",
                         remedy=f"tfdyno models label {version.id} {asked.label}")  # fmt: skip
