"""What ``report --json`` and ``runs … --json`` print: the documented keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.view.base.documents import fields_of
from tfdyno.view.bench.load_text import RAW
from tfdyno.words.project.answers import answer, head
from tfdyno.words.project.report import (
    change_words,
    error_words,
    gained_words,
    run_sentence,
    status_words,
    step_count,
    step_counts,
    why_words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.project.project import ProjectRun
    from tfdyno.core.project.report import ProjectReport, Removal, RunsCompared, RunTold, StepTold


def report_document(report: ProjectReport, *, every: bool = True) -> dict[str, Any]:
    """Write ``{"project", "run", "status", "answer": […], "steps": […], "history": […], …}``.

    ``steps`` hold the whole ``document`` of each; those of the ``history`` its figures alone.

    Args:
        report: The answer.
        every: Whether every latency of load tests stands in it.
    """
    told = report.told
    return {
        **_run(told.run),
        "folder": report.folder,
        "summary": run_sentence(told),
        "answer": [{"step": name, "text": text} for name, text in head(told)],
        "steps": [
            _step(one) | {"document": one.document if every else _short(one.document)}
            for one in told.steps
        ],
        "history": [
            {**_run(one.run), "steps": [_step(step) for step in one.steps]}
            for one in report.history
        ],
        "run_count": report.run_count,
        "compared": [compared_document(one) for one in report.compared],
        "made_at": report.made_at,
        "made_by": f"tfdyno {report.tfdyno}",
    }


def compared_document(found: RunsCompared) -> dict[str, Any]:
    """Write ``{"before", "after", "changes": […], "gained": […], "notes": […]}`` in words."""
    return {
        "before": found.before,
        "after": found.after,
        "changes": [to_builtins(one) | {"text": change_words(one)} for one in found.changes],
        "gained": [to_builtins(one) | {"text": gained_words(one)} for one in found.gained],
        "notes": list(found.notes),
    }


def runs_document(folder: str, runs: Sequence[ProjectRun]) -> dict[str, Any]:
    """List all runs, newest first, without their steps."""
    return {"folder": folder, "runs": [_run(one) for one in runs]}


def run_document(told: RunTold) -> dict[str, Any]:
    """Return one run with its steps: why each was made or reused, and what it found."""
    steps = [_step(one) | {"why": why_words(one)} for one in told.steps]
    return {**_run(told.run), "summary": run_sentence(told), "steps": steps}


def removal_document(found: Removal, *, removed: bool) -> dict[str, Any]:
    """Return what a removal takes away."""
    return {
        "removed": removed,
        "runs": [_run(one) for one in found.runs],
        **fields_of(found, "outputs", "kept_outputs", "unnamed", "freed_bytes", "left"),
    }


def _run(run: ProjectRun) -> dict[str, Any]:
    done, reused, failed = step_counts(run)
    return {
        **fields_of(run, "id", "project", "status", "started_at", "ended_at"),
        "duration_s": sum(one.duration_s for one in run.steps),
        "step_count": step_count(run),
        "done": done,
        "reused": reused,
        "failed": failed,
        "tfdyno": run.tfdyno,
    }


def _step(one: StepTold) -> dict[str, Any]:
    return {
        **to_builtins(one.run),
        "status": one.run.status if one.reached else status_words(one).replace(" ", "_"),
        "kind": one.kind,
        "state": one.state,
        "answer": answer(one),
        "trouble": error_words(one),
        "figures": to_builtins(one.figures),
        "log": one.log,
    }


def _short(document: dict[str, Any]) -> dict[str, Any]:
    """Leave out a load test's single requests, which would be most of a page."""
    stages = document.get("stages")
    if not isinstance(stages, list) or "knee_rate_per_s" not in document:
        return document
    kept = []
    for stage in stages:
        run = stage.get("run") if isinstance(stage, dict) else None
        bare = {k: v for k, v in run.items() if k not in RAW} if isinstance(run, dict) else run
        kept.append({**stage, "run": bare} if isinstance(stage, dict) else stage)
    return {**document, "stages": kept}
