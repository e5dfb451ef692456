"""Try the check of a cluster on this machine: processes that each stand for a node."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import from_json
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.cluster.cluster import TOLD_BY
from tfdyno.core.cluster.cluster_facts import ClusterReport
from tfdyno.core.cluster.launch_plan import LaunchPlan
from tfdyno.engines.process.local import Limits, attend, together
from tfdyno.engines.process.process import Command
from tfdyno.engines.rendezvous.tf_config import free_ports, loopback_variables
from tfdyno.jobs.child.worker import PROGRESS, silent
from tfdyno.jobs.launch.launch import own_share
from tfdyno.jobs.launch.local import judged
from tfdyno.render.launch.local import node_variables, with_cards

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.jobs.doctor.cluster import ClusterRequest

RUN_S = 900.0
PEERS_S = 10.0


def doctor_local(
    asked: ClusterRequest,
    *,
    progress: Callable[[str], None] = silent,
    output: Callable[[str], None] = silent,
) -> ClusterReport:
    """Start as many processes as there are nodes, and give the report of the first.

    Args:
        asked: What is asked; ``nodes`` says how many.
        progress: Told what worker 0 does.
        output: Told every line that they print.

    Raises:
        UsageError: What is asked is wrong.
        ToolError: One of them failed, or a port is taken.
    """
    if asked.nodes < 2:
        what = f"--nodes {asked.nodes} is no cluster"
        raise UsageError(what, remedy="try 2 or more; tfdyno doctor looks at one machine")
    first = asked.port
    ports = tuple(range(first, first + asked.nodes)) if first else free_ports(asked.nodes)
    base = {name: value for name, value in os.environ.items() if name not in TOLD_BY}
    base |= {"PYTHONUNBUFFERED": "1", **loopback_variables(base)}
    plan = _plan(asked)
    words = [sys.executable, "-m", "tfdyno", "doctor", "--cluster", "--events"]
    words += ["--output", str(Path(asked.output).absolute()), "--wait", f"{asked.wait_s:g}s"]
    words += ["--gpus-per-node", str(plan.gpus_per_node)]
    words += ["--quick"] if asked.is_quick else []
    words += ["--link", asked.link] if asked.link else []
    commands = [
        Command(
            words=tuple(words),
            environment=base | node_variables(plan, rank, ports),
            purpose="the check of a cluster",
            name=f"worker {rank}",
        )
        for rank in range(asked.nodes)
    ]
    limits = Limits(run_s=RUN_S, peers_s=PEERS_S)

    def stage(line: str) -> None:
        if not line.startswith("{"):
            progress(line)

    with together(commands, chief=0, mark=PROGRESS, progress=stage, output=output) as crew:
        attend(crew, judged, limits)
        said = json.loads(crew.chief.said)
    if "report" not in said:
        raise ToolError("worker 0 ended without a report")
    return from_json(json.dumps(said["report"]).encode(), ClusterReport, where="the report")


def _plan(asked: ClusterRequest) -> LaunchPlan:
    """Return the plan of a training on so many processes, each with its share of the cards."""
    gpus = asked.gpus_per_node
    if gpus is None:
        gpus = own_share(asked.nodes, os.environ.get("CUDA_VISIBLE_DEVICES"))
    plan = LaunchPlan(
        engine="local", name="check", reference="", nodes=asked.nodes, gpus_per_node=gpus,
        port=asked.port,
    )  # fmt: skip
    return with_cards(plan, os.environ)
