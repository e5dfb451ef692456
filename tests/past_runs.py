"""Projects on disk as ``tfdyno run`` leaves them, made of the documents in ``data/project``."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_json
from tfdyno.core.project.output import FILE as MADE
from tfdyno.core.project.output import Made
from tfdyno.core.project.project import DOCUMENT, FOLDER, OUTPUTS, PART, ProjectRun, StepRun
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCUMENTS = Path(__file__).parent / "data" / "project"
STEPS = {
    "choose": ("advise", "advise"), "estimate": ("estimate", "estimate"),
    "train": ("train", "train"), "speed": ("bench", "bench"), "look": ("diagnose", "diagnose"),
    "faster": ("tune", "tune"),
    "export": ("export", "export"), "keep": ("models add", "models"), "phones": ("edge", "edge"),
    "size": ("advise --scenario serve", "size"), "load": ("bench --serve", "load"),
}  # fmt: skip
"""Name of a step -> its command, and the document that it made."""
FIRST, SECOND, THIRD = "20261124-040000-aaaa", "20261124-050000-bbbb", "20261124-060000-cccc"


def document(name: str) -> dict[str, Any]:
    """One of those that were recorded."""
    found: dict[str, Any] = json.loads((DOCUMENTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def key_of(step: str, version: int = 1) -> str:
    """64 hexadecimal digits, the first 16 of which name the output."""
    return f"{version:x}{step.encode().hex():0<63}"[:64]


def step_run(
    name: str, *, status: str = "finished", version: int = 1, error: str = "",
    rests_on: Mapping[str, str] | None = None, making: int = 1,
) -> StepRun:  # fmt: skip
    """A step as its run recorded it, or as one that it has not come to (status ``waiting``).

    ``making`` counts how often its key was made.
    """
    command = STEPS.get(name, (name, name))[0]
    if status == "waiting":
        return StepRun(step=name, command=command, status="stopped")
    key = key_of(name, version)
    stamp = f"{version}{making}{name}" if status in ("finished", "reused") else ""
    return StepRun(
        step=name,
        command=command,
        status=status,  # type: ignore[arg-type]
        key=key,
        rests_on={"tfdyno": "0.1.0", "file shapes.py": "ab" * 32, **(rests_on or {})},
        words=("tfdyno", *command.split(), "shapes.py"),
        output=f"{OUTPUTS}/{name}-{key[:16]}",
        stamp=stamp,
        error=error,
        started_at="2026-11-24T04:00:00+00:00",
        duration_s=0.0 if status == "reused" else 12.5,
    )


def put(history: ProjectHistory, step: StepRun, content: Mapping[str, Any] | None) -> None:
    """Lay an output where the step names it, in place of what another making left there."""
    folder = history.output(step)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MADE).write_bytes(to_json(Made(step=step.step, key=step.key, stamp=step.stamp)))
    (folder / "step.log").write_text("done\n", encoding="utf-8")
    if content is not None:
        (folder / DOCUMENT).write_text(json.dumps(content), encoding="utf-8")


def begin(history: ProjectHistory, step: StepRun, files: Mapping[str, bytes]) -> Path:
    """Lay beside the output what a try of the step began and did not end."""
    part = history.output(step).with_name(f"{history.output(step).name}{PART}")
    part.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (part / name).write_bytes(data)
    (part / MADE).write_bytes(to_json(Made(step=step.step, key=step.key)))
    at_s = datetime.fromisoformat(step.started_at).timestamp()
    os.utime(part / MADE, (at_s, at_s))
    return part


def project_run(
    name: str, *steps: StepRun, status: str = "finished", asked: tuple[str, ...] = ()
) -> ProjectRun:
    """A run whose id says when it began; it was asked for its steps, and those that are named."""
    at = f"2026-11-24T{name[9:11]}:00:00+00:00"
    chosen = (*(one.step for one in steps), *asked)
    return ProjectRun(id=name, project="shapes", status=status, started_at=at,  # type: ignore[arg-type]
                      ended_at=at, tfdyno="0.1.0", chosen=chosen, steps=steps)  # fmt: skip


def two_runs(folder: Path) -> ProjectHistory:
    """A whole run, and one that prepares pictures side by side: only ``speed`` was made anew."""
    history = ProjectHistory(folder=folder / FOLDER)
    first = [step_run(name) for name in STEPS]
    for step in first:
        put(history, step, document(STEPS[step.step][1]))
    history.write(project_run(FIRST, *first))
    fast = step_run("speed", version=2, rests_on={"option arguments": "--fast"})
    put(history, fast, document("bench-fast"))
    later = [fast if name == "speed" else step_run(name, status="reused") for name in STEPS]
    history.write(project_run(SECOND, *later))
    return history


def failed_run(history: ProjectHistory) -> ProjectRun:
    """A third run: its training failed, and what comes after was not reached."""
    steps = [
        step_run("choose", status="reused"),
        step_run("train", status="failed", version=3, error="exit code 3: out of memory"),
    ]
    run = project_run(THIRD, *steps, status="failed", asked=("speed", "export"))
    history.write(run)
    return run


def forced(history: ProjectHistory, step: str, printed: str, name: str = THIRD) -> ProjectRun:
    """A run that was asked for one step alone, and made it again though nothing had changed."""
    again = step_run(step, making=2)
    put(history, again, document(printed))
    run = project_run(name, again)
    history.write(run)
    return run


def remove(history: ProjectHistory, name: str) -> None:
    """Delete an output by hand."""
    shutil.rmtree(history.output(step_run(name)))


def forget(history: ProjectHistory, step: StepRun) -> None:
    """As if the history had not kept what a step printed: in the output it still is."""
    with sqlite3.connect(history.path) as database:
        database.execute("DELETE FROM document WHERE stamp = ?", (step.stamp,))
