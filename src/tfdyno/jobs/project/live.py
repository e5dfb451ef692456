"""What runs below a folder now: trainings, tunings and benches, by what they write meanwhile."""

from __future__ import annotations

import contextlib
import platform
import re
import statistics
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tfdyno.core.base.codec import from_json
from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.jobs.project.walk import Walk, id_of, readable
from tfdyno.store.results import FILE as BENCHES
from tfdyno.store.results import Results as Benches
from tfdyno.store.run_events import EVENTS_FILE, read_events
from tfdyno.store.run_folder import LOCK_FILE as TRAINING
from tfdyno.store.run_folder import RUN_FILE, RunRecord
from tfdyno.store.tuning_study import FILE as STUDY
from tfdyno.store.tuning_study import LOCK_FILE as TUNING
from tfdyno.store.tuning_study import read_trials

if TYPE_CHECKING:
    from tfdyno.core.measure.measurement import Measurement
    from tfdyno.core.train.tuning import Trial

Kind = Literal["train", "tune", "bench"]
State = Literal["running", "lost", "finished", "stopped", "failed"]
"""``lost``: it says that it runs, and its process is gone."""
SHOWN_FOR = timedelta(minutes=15)
"""So long what has ended is shown still."""
QUIET = timedelta(minutes=10)
"""What has written nothing for so long, and names no process here, counts as lost."""
_HOLDER = re.compile(r"process (\d+) on (\S+)")
_CLOCK_S = 2.0
"""Between a process's start and what its lock's file says, as clocks of files have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """One that runs, or has just ended."""

    id: str
    kind: Kind
    path: Path
    """The folder of the run or of the study; of a bench the file of results."""
    entry: str = ""
    """The bench in that file."""
    place: str
    """To be read, relative to the folder."""
    title: str
    state: State
    started_at: str
    """UTC, ISO 8601; empty: not known."""


@dataclass(slots=True)
class LiveReader:
    """Finds what runs below a folder; only reads, and takes no lock that another may want."""

    folder: Path
    _found: dict[str, Live] = field(default_factory=dict)
    _ended: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """Records that say that they ended long ago, by time and size: they are not read again."""

    def running(self) -> tuple[tuple[Live, ...], tuple[str, ...]]:
        """Return what runs or has just ended, the newest first, and what was left out."""
        walk = Walk(folder=self.folder, only=(RUN_FILE, STUDY, BENCHES))
        found: list[Live] = []
        for path in walk.files():
            with contextlib.suppress(TfdynoError, OSError):  # half written, or gone meanwhile
                if path.name == RUN_FILE:
                    found += self._training(path)
                elif path.name == STUDY:
                    found += self._tuning(path)
                elif path.name == BENCHES:
                    found += self._benches(path)
        found.sort(key=lambda one: (one.started_at, one.place), reverse=True)
        self._found = {one.id: one for one in found}
        return tuple(found), tuple(walk.left_out())

    def events(self, name: str, start: int) -> dict[str, Any]:
        """Return what one has written behind a place in its record.

        Args:
            name: The ID of one that ``running`` has returned.
            start: In bytes, for a training; the others are read whole.

        Raises:
            UsageError: There is none of this name.
        """
        one = self._found.get(name)
        if one is None:
            raise UsageError(f"there is no run {name}", remedy="load the page again")
        if one.kind == "train":
            try:
                events, place = read_events(one.path, start)
            except OSError:  # it has not begun, or an older release trains
                events, place = [], 0
            return {"events": events, "next": place}
        if one.kind == "tune":
            return {"trials": [_trial(each) for each in read_trials(one.path)]}
        return {"runs": _runs(Benches(folder=one.path.parent).measurement(one.entry))}

    def _training(self, path: Path) -> list[Live]:
        state = path.stat()
        stamp = state.st_mtime_ns, state.st_size
        if self._ended.get(path) == stamp:
            return []
        record = from_json(path.read_bytes(), RunRecord, where=path.name)
        if record.status != "running":
            if _age(record.ended_at) > SHOWN_FOR:
                self._ended[path] = stamp
                return []
            shown: State = record.status
        else:
            newest = max(_written(path), _written(path.parent / EVENTS_FILE))
            shown = "running" if is_alive(path.parent / TRAINING, newest) else "lost"
            if shown == "lost" and time.time() - newest > SHOWN_FOR.total_seconds():
                return []
        return [self._live("train", path.parent, "", record.workload.reference, shown,
                           record.started_at)]  # fmt: skip

    def _tuning(self, path: Path) -> list[Live]:
        lock = path.parent / TUNING
        if not is_alive(lock, _written(path)):
            return []
        since = datetime.fromtimestamp(_written(lock), tz=UTC).isoformat(timespec="seconds")
        return [self._live("tune", path.parent, "", path.parent.name, "running", since)]

    def _benches(self, path: Path) -> list[Live]:
        if time.time() - _written(path) > QUIET.total_seconds():
            return []
        open_ones = Benches(folder=path.parent).running()  # the newest first
        return [
            self._live("bench", path, one.id, one.task.reference, "running", one.created_at)
            for one in open_ones
            if one.session == open_ones[0].session  # older ones were broken off
        ]

    def _live(
        self, kind: Kind, path: Path, entry: str, title: str, state: State, started_at: str
    ) -> Live:
        place = readable(path.relative_to(self.folder))
        return Live(
            id=id_of(path.relative_to(self.folder), f"{kind} {entry}"),
            kind=kind,
            path=path,
            entry=entry,
            place=f"{place}:{entry}" if entry else place,
            title=title,
            state=state,
            started_at=started_at,
        )


def is_alive(lock: Path, written_s: float) -> bool:
    """Return whether the process that a lock's file names runs; nothing is locked for that.

    Args:
        lock: The file, which says who holds it.
        written_s: When its owner last wrote, in seconds since 1970: of one on another machine, or
            that cannot be told, it is what there is to go by.
    """
    import psutil

    is_fresh = time.time() - written_s < QUIET.total_seconds()
    try:
        holder = _HOLDER.match(lock.read_text(errors="replace"))
        locked_s = lock.stat().st_mtime
    except OSError:
        return False
    if holder is None or holder[2] != platform.node():
        return is_fresh
    try:  # a number of a process is given again
        return bool(psutil.Process(int(holder[1])).create_time() <= locked_s + _CLOCK_S)
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return is_fresh


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _age(moment: str) -> timedelta:
    try:
        return datetime.now(UTC) - datetime.fromisoformat(moment)
    except (ValueError, TypeError):
        return timedelta.max


def _trial(one: Trial) -> dict[str, Any]:
    return {
        "number": one.number,
        "status": one.status,
        "changes": one.changes,
        "samples_per_s": one.samples_per_s or None,
    }


def _runs(one: Measurement) -> list[dict[str, Any]]:
    return [
        {
            "order": run.order,
            "step_s": statistics.median(run.samples_s[run.steady_from :] or run.samples_s),
            "steps": sum(run.steps_per_sample),
            "first_step_s": run.first_step_s,
        }
        for run in one.runs
        if run.samples_s
    ]
