"""Projects on disk as ``tfdyno run`` leaves them, made of the documents in ``data/project``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.project import DOCUMENT, FOLDER, OUTPUTS, ProjectRun, StepRun
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCUMENTS = Path(__file__).parent / "data" / "project"
STEPS = {
    "choose": ("advise", "advise"), "estimate": ("estimate", "estimate"),
    "train": ("train", "train"), "speed": ("bench", "bench"), "look": ("diagnose", "diagnose"),
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
    rests_on: Mapping[str, str] | None = None,
) -> StepRun:  # fmt: skip
    """A step as its run recorded it; one that was not reached has status ``waiting``."""
    command = STEPS.get(name, (name, name))[0]
    if status == "waiting":
        return StepRun(step=name, command=command, status="stopped")
    key = key_of(name, version)
    return StepRun(
        step=name,
        command=command,
        status=status,  # type: ignore[arg-type]
        key=key,
        rests_on={"tfdyno": "0.1.0", "file shapes.py": "ab" * 32, **(rests_on or {})},
        words=("tfdyno", *command.split(), "shapes.py"),
        output=f"{OUTPUTS}/{name}-{key[:16]}",
        error=error,
        started_at="2026-11-24T04:00:00+00:00",
        duration_s=0.0 if status == "reused" else 12.5,
    )


def put(history: ProjectHistory, step: StepRun, content: Mapping[str, Any] | None) -> None:
    """Lay an output where the step names it."""
    folder = history.output(step)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "step.log").write_text("done\n", encoding="utf-8")
    if content is not None:
        (folder / DOCUMENT).write_text(json.dumps(content), encoding="utf-8")


def project_run(name: str, *steps: StepRun, status: str = "finished") -> ProjectRun:
    """A run whose id says when it began."""
    at = f"2026-11-24T{name[9:11]}:00:00+00:00"
    return ProjectRun(id=name, project="shapes", status=status, started_at=at,  # type: ignore[arg-type]
                      ended_at=at, tfdyno="0.1.0", steps=steps)  # fmt: skip


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
    steps = [step_run("choose", status="reused"),
             step_run("train", status="failed", version=3, error="exit code 3: out of memory"),
             *(step_run(name, status="waiting") for name in ("speed", "export"))]  # fmt: skip
    run = project_run(THIRD, *steps, status="failed")
    history.write(run)
    return run


def remove(history: ProjectHistory, name: str) -> None:
    """Delete an output by hand."""
    shutil.rmtree(history.output(step_run(name)))
