"""``tfdyno doctor --cluster``: whether several nodes can train together."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import flag, option
from tfdyno.cli.options import Filled, Telling, Whole
from tfdyno.cli.progress import progress_line, tell_program
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import TfdynoError, failure_of
from tfdyno.core.base.settings import MOST_PORT

if TYPE_CHECKING:
    from tfdyno.core.cluster.cluster_facts import ClusterReport
    from tfdyno.jobs.doctor.cluster import ClusterRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What goes with ``--cluster``."""

    nodes: int | None = option(
        type=Whole("--nodes"), help="Of --cluster; started here without an engine."
    )
    output: str | None = option(
        type=Filled(), metavar="DIR", help="Of --cluster: the run's folder."
    )
    gpus: int | None = option(
        "--gpus-per-node", type=Whole("--gpus-per-node", least=0),
        help="Of --cluster; 0: the CPUs train.  [default: whatever there is]",
    )  # fmt: skip
    link: str | None = option(
        type=Filled(), metavar="SLUG", help="Of --cluster: between the nodes."
    )
    rank: int | None = option(
        type=Whole("--rank", least=0), help="Of --cluster, where no engine tells."
    )
    port: int | None = option(
        type=Whole("--port", most=MOST_PORT), help="Of --cluster: of every node."
    )
    wait: str | None = option(
        type=Filled(), metavar="TIME", help="Of --cluster: for the other nodes."
    )
    events: bool = flag(hidden=True, help="Lines of JSON on stderr.")


def answer_cluster(options: Cluster, told: Telling, *, is_quick: bool) -> Answer | int:
    """Take part in the check, or start it here."""
    if options.gpus == 0:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # before anything looks for cards
    asked = _request(options, is_quick=is_quick)
    if options.events:
        return _with_events(asked)
    if asked.nodes and asked.rank is None and not _is_told():
        return check_here(asked, quiet=told.quiet, verbose=told.verbose)
    from tfdyno.jobs.doctor.cluster import doctor_cluster

    with progress_line(quiet=told.quiet, verbose=told.verbose) as progress:
        report = doctor_cluster(asked, environment=os.environ, progress=progress)
    if report is None:
        click.echo("This node told what it is and did its part; worker 0 has the report.")
        return 0
    return _answer(report)


def check_here(asked: ClusterRequest, *, quiet: bool, verbose: bool) -> Answer:
    """Start the processes on this machine; their report.

    Args:
        asked: What is asked.
        quiet: No progress.
        verbose: What each of them says as well.
    """
    from tfdyno.jobs.doctor.cluster_local import doctor_local

    shown = (lambda line: print(line, file=sys.stderr)) if verbose else (lambda _: None)
    with progress_line(quiet=quiet, verbose=verbose) as progress:
        return _answer(doctor_local(asked, progress=progress, output=shown))


def _request(options: Cluster, *, is_quick: bool) -> ClusterRequest:
    from tfdyno.catalog.links import find_link
    from tfdyno.core.cluster.launch_plan import seconds_of
    from tfdyno.engines.rendezvous.rendezvous import WAIT_S
    from tfdyno.jobs.doctor.cluster import ClusterRequest

    return ClusterRequest(
        output=options.output or ".",
        nodes=options.nodes or 0,
        rank=options.rank,
        port=options.port or 0,
        wait_s=seconds_of(options.wait, "--wait") if options.wait else WAIT_S,
        gpus_per_node=options.gpus,
        is_quick=is_quick,
        link=find_link(options.link).slug if options.link else "",
    )


def _is_told() -> bool:
    """Return whether an engine, or a person, says that this is one process of several."""
    from tfdyno.core.cluster.cluster import TOLD_BY

    return any(os.environ.get(name) for name in TOLD_BY)


def _with_events(asked: ClusterRequest) -> int:
    """Do the same for a program that watches: lines of JSON on stderr, the report in the last."""
    from tfdyno.core.base.codec import to_builtins
    from tfdyno.core.messages.wire import encode
    from tfdyno.jobs.doctor.cluster import doctor_cluster

    try:
        report = doctor_cluster(asked, environment=os.environ, progress=tell_program)
    except TfdynoError as error:
        tell_program(encode({"event": "failed", "error": failure_of(error)}))
        raise
    done: dict[str, Any] = {"event": "done"}
    done |= {"report": to_builtins(report)} if report else {}
    tell_program(json.dumps(done))
    return 0


def _answer(report: ClusterReport) -> Answer:
    from tfdyno.view.doctor.cluster_text import cluster_document, cluster_text

    return Answer(
        document=partial(cluster_document, report),
        text=partial(cluster_text, report),
        exit_code=report.exit_code,
    )
