"""All results below a folder: documents that commands wrote, kept benches, steps of projects."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import from_json
from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.measure.measurement_document import bench_document
from tfdyno.core.project.project import FOLDER, StepRun
from tfdyno.core.project.report import StepTold
from tfdyno.jobs.project.report import gained_between, tell
from tfdyno.jobs.project.runs import runs_of
from tfdyno.jobs.project.walk import Walk, id_of, readable
from tfdyno.model.measure.summary import summary
from tfdyno.store.project_history import ProjectHistory
from tfdyno.store.results import FILE as BENCHES
from tfdyno.store.results import Results as Benches
from tfdyno.store.tuning_study import FILE as STUDY
from tfdyno.words.project.key_figures import key_figures, kind_of
from tfdyno.words.project.step_headline import step_headline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.project.report import Gained, StepKind

MOST_RESULTS = 500
_KEYS: tuple[tuple[StepKind, str, frozenset[str]], ...] = (
    ("size", "advise --scenario serve", frozenset(("picks", "ranking", "goal"))),
    ("advise", "advise", frozenset(("picks", "ranking", "pareto"))),
    ("estimate", "estimate", frozenset(("estimates", "trace"))),
    ("diagnose", "diagnose", frozenset(("primary", "findings"))),
    ("tune", "tune", frozenset(("best", "is_proven", "recipe"))),
    ("train", "train", frozenset(("history", "checkpoints", "recipe"))),
    ("export", "export", frozenset(("formats", "gates"))),
    ("edge", "edge", frozenset(("devices", "need"))),
    ("models", "models", frozenset(("lineage", "digest", "version"))),
)
"""Kind, command, and keys by which a document without a mark of its own is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One answer that is on the disk; its document is read again where it is needed."""

    id: str
    path: Path
    """The file, the store of benches, or the folder of a project."""
    entry: str = ""
    """Of a store the id of the bench; of a project ``RUN:STEP``."""
    place: str
    """To be read, relative to the folder: ``bench.json``, ``tfdyno-project:RUN:STEP``."""
    made_at: str
    """UTC, ISO 8601."""
    told: StepTold

    @property
    def is_step(self) -> bool:
        """Whether it is a step of a project."""
        return self.path.name == FOLDER


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """What is below a folder."""

    results: tuple[Result, ...]
    """The newest first."""
    left_out: int = 0
    """Results beyond the most that are shown."""
    troubles: tuple[str, ...] = ()
    """What could not be read or was left out, in sentences."""


@dataclass(slots=True)
class Reader:
    """Reads the results below a folder; files that did not change are not read again."""

    folder: Path
    _known: dict[Path, tuple[tuple[int, int], StepTold | None]] = field(default_factory=dict)

    def shelf(self) -> Shelf:
        """Return all results that there are now.

        What another program writes at the same time is left out until it is whole.
        """
        found: list[Result] = []
        walk = Walk(folder=self.folder)
        troubles: list[str] = []
        paths = tuple(path for path in walk.files() if path.name != STUDY)
        for path in paths:
            try:
                found += self._of(path)
            except (TfdynoError, OSError) as error:
                troubles.append(f"{self._place(path)}: {error}")
        self._known = {path: self._known[path] for path in paths if path in self._known}
        found.sort(key=lambda one: (one.made_at, one.place), reverse=True)
        return Shelf(
            results=tuple(found[:MOST_RESULTS]),
            left_out=max(0, len(found) - MOST_RESULTS),
            troubles=(*troubles, *walk.left_out()),
        )

    def difference(self, before: str, after: str) -> tuple[Gained, ...]:
        """Compare each figure that two results share; raises ``UsageError`` where one is gone."""
        known = {one.id: one for one in self.shelf().results}
        gone = [one for one in (before, after) if one not in known]
        if gone:
            raise UsageError(f"there is no result {gone[0]}", remedy="load the page again")
        return tuple(gained_between(*(self._whole(known[one]) for one in (before, after))))

    def _of(self, path: Path) -> list[Result]:
        if path.name == FOLDER:
            return [self._result(path, step, made_at, told) for step, made_at, told in _steps(path)]
        if path.name == BENCHES:
            return [
                self._result(path, one.id, one.created_at, told)
                for one in Benches(folder=path.parent).measurements()
                if one.runs and (told := _told(one.id, bench_document(one, summary(one))))
            ]
        told = self._document(path)
        moment = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
        return [self._result(path, "", moment.isoformat(timespec="seconds"), told)] if told else []

    def _result(self, path: Path, entry: str, made_at: str, told: StepTold) -> Result:
        return Result(
            id=id_of(path.relative_to(self.folder), entry),
            path=path,
            entry=entry,
            place=f"{self._place(path)}:{entry}" if entry else self._place(path),
            made_at=made_at,
            told=_bare(told),
        )

    def _place(self, path: Path) -> str:
        return readable(path.relative_to(self.folder))

    def _document(self, path: Path) -> StepTold | None:
        state = path.stat()
        stamp = state.st_mtime_ns, state.st_size
        if path not in self._known or self._known[path][0] != stamp:
            told = _read(path)
            self._known[path] = stamp, _bare(told) if told else None
        return self._known[path][1]

    def _whole(self, one: Result) -> StepTold:
        """Return a result with its document; raises ``UsageError`` where it has gone."""
        told: StepTold | None
        if one.is_step:
            told = next((told for step, _, told in _steps(one.path) if step == one.entry), None)
        elif one.path.name == BENCHES:
            kept = Benches(folder=one.path.parent).measurement(one.entry)
            told = _told(one.entry, bench_document(kept, summary(kept)))
        else:
            told = _read(one.path)
        if told is None:
            raise UsageError(f"there is no result {one.place} now", remedy="load the page again")
        return told


def known_kind(document: dict[str, Any]) -> tuple[StepKind, str]:
    """Return the kind of a document and the command that printed it; ``other`` where none did."""
    kind = kind_of("", document)
    if kind != "other":
        return kind, "bench --serve" if kind == "load" else "bench"
    for kind, command, keys in _KEYS:
        if keys <= document.keys():
            return kind, command
    return "other", ""


def _read(path: Path) -> StepTold | None:
    """Return what a file says; None: it is no result, or not whole."""
    try:
        raw = from_json(path.read_bytes(), object, where=path.name)
    except (TfdynoError, OSError, ValueError, RecursionError):
        return None
    return _told(path.name, raw) if isinstance(raw, dict) else None


def _told(place: str, document: dict[str, Any]) -> StepTold | None:
    kind, command = known_kind(document)
    if kind == "other":
        return None
    return StepTold(
        run=StepRun(step=place, command=command, status="finished"),
        kind=kind,
        state="whole",
        answer=step_headline(command, document),
        figures=key_figures(kind, document),
        document=document,
    )


def _steps(folder: Path) -> Iterator[tuple[str, str, StepTold]]:
    """Yield the steps of all runs of the projects in a folder that have an answer, newest first."""
    history = ProjectHistory(folder=folder)
    runs = runs_of(history)
    for run in runs:
        for told in tell(history, run, runs).steps:
            if told.document:
                step = replace(told.run, step=f"{run.project}: {told.run.step}")
                yield f"{run.id}:{told.run.step}", run.started_at, replace(told, run=step)


def _bare(told: StepTold) -> StepTold:
    return replace(told, document={})
