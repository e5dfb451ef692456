"""``tfdyno doctor --cluster``: whether several nodes can train together."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.progress import progress_line
from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.cluster.cluster import TOLD_BY
from tfdyno.core.cluster.launch_plan import seconds_of

if TYPE_CHECKING:
    from tfdyno.core.cluster.cluster_facts import ClusterReport
    from tfdyno.jobs.doctor.cluster import ClusterRequest

PROGRESS = "progress: "


def answer_cluster(given: dict[str, Any]) -> int:
    """Take part in the check, or start it here; the exit code."""
    if given["gpus"] == 0:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # before anything looks for cards
    asked = _question(given)
    if given["events"]:
        return _with_events(asked)
    if asked.nodes and asked.rank is None and not _is_told():
        return check_here(asked, given)
    from tfdyno.jobs.doctor.cluster import doctor_cluster

    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        report = doctor_cluster(asked, environment=os.environ, progress=progress)
    if report is None:
        click.echo("This node told what it is and did its part; worker 0 has the report.")
        return 0
    _print(report, as_json=given["as_json"])
    return report.exit_code


def check_here(asked: ClusterRequest, given: dict[str, Any]) -> int:
    """Start the processes on this machine, and print their report; the exit code.

    Args:
        asked: What is asked.
        given: How much is told, and in which form.
    """
    from tfdyno.jobs.doctor.cluster_local import doctor_local

    shown = (lambda line: print(line, file=sys.stderr)) if given["verbose"] else _silent
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        report = doctor_local(asked, progress=progress, output=shown)
    _print(report, as_json=given["as_json"])
    return report.exit_code


def _question(given: dict[str, Any]) -> ClusterRequest:
    from tfdyno.engines.meeting.rendezvous import WAIT_S
    from tfdyno.jobs.doctor.cluster import ClusterRequest

    return ClusterRequest(
        output=given["output"] or ".",
        nodes=given["nodes"] or 0,
        rank=given["rank"],
        port=given["port"] or 0,
        wait_s=seconds_of(given["wait"], "--wait") if given["wait"] else WAIT_S,
        gpus_per_node=given["gpus"],
        is_quick=given["quick"],
        link=_link(given["link"]),
    )


def _link(slug: str | None) -> str:
    if not slug:
        return ""
    from tfdyno.catalog.links import find_link

    return find_link(slug).slug


def _is_told() -> bool:
    """Whether an engine, or a person, says that this is one process of several."""
    return any(os.environ.get(name) for name in TOLD_BY)


def _with_events(asked: ClusterRequest) -> int:
    """The same for a program that watches: lines of JSON on stderr, the report in the last."""
    from tfdyno.core.base.codec import to_builtins
    from tfdyno.jobs.doctor.cluster import doctor_cluster

    try:
        report = doctor_cluster(asked, environment=os.environ, progress=_say)
    except TfdynoError as error:
        kind = "usage" if isinstance(error, UsageError) else "tool"
        words = {"what": error.what, "why": error.why, "remedy": error.remedy}
        _say(json.dumps({"event": "failed", "error": {"kind": kind, **words}}))
        raise
    done: dict[str, Any] = {"event": "done"}
    done |= {"report": to_builtins(report)} if report else {}
    _say(json.dumps(done))
    return 0


def _print(report: ClusterReport, *, as_json: bool) -> None:
    if as_json:
        from tfdyno.core.base.codec import to_json
        from tfdyno.view.doctor.cluster_document import cluster_document

        click.echo(to_json(cluster_document(report), indent=2).decode())
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.doctor.cluster_text import cluster_text

    click.echo(cluster_text(report, width=terminal_width(), colour=colour_wanted()))


def _say(line: str) -> None:
    print(f"{PROGRESS}{line}", file=sys.stderr, flush=True)


def _silent(_line: str) -> None:
    """Show nothing."""
