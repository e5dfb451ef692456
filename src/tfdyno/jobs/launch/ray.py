"""Train on the nodes of a Ray cluster, or on this machine with a Ray of its own."""

from __future__ import annotations

import json
import math
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import Failure, RetreatAsked, TfdynoError, ToolError
from tfdyno.engines.process.local import Limits, attend, together
from tfdyno.engines.process.process import ChildCrash, Command, Process
from tfdyno.jobs.child.worker import PROGRESS, silent
from tfdyno.jobs.launch.local import Launched, event_of, judged, launched, note, was_asked
from tfdyno.jobs.train.run import STOP_GRACE_S
from tfdyno.render.base.yaml_text import without_none
from tfdyno.render.launch.ray import ray_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.cluster.launch_plan import LaunchPlan

DRIVER = "tfdyno.jobs.launch.ray_driver"
PATIENCE_S = 600.0
"""The time for a cluster that was lost to answer again."""
END_S = 15.0
"""The time for the driver, and the Ray that it has started, to end."""


class ClusterLost(ChildCrash):
    """The driver does not hear from Ray any more, or has died with it."""


def launch_ray(
    plan: LaunchPlan,
    *,
    progress: Callable[[str], None] = silent,
    output: Callable[[str], None] = silent,
    started: Callable[[int, int], object] = lambda _rank, _pid: None,
) -> Launched:
    """Run the plan to its end, or until somebody ends it.

    Ray Train starts all workers again after a failure, from the newest checkpoint, as often as the
    plan has restarts. Where the cluster itself is lost, its head for one, it is waited for, and
    that counts as one of them.

    Args:
        plan: What is to run.
        progress: Called with the progress of worker 0.
        output: Called with every other line of all: ``[worker 1] …``.
        started: Called with rank and process identifier of each worker of Ray.

    Raises:
        UsageError: The workload, its data or the recipe is wrong, or Ray is not there.
        ToolError: It failed more often than the plan has restarts.
    """
    until_s = time.monotonic() + (plan.time_limit_s or math.inf)
    folder = Path(plan.folder or ".", plan.output).absolute()
    failures: list[str] = []

    def hear(line: str) -> None:
        event = event_of(line)
        kind = event.get("event")
        if kind == "started":
            started(event["rank"], event["pid"])
        elif kind == "restart":
            again(event["failure"])
        elif kind not in ("done", "failed"):
            progress(line)

    def again(failure: str) -> None:
        failures.append(failure)
        left = plan.restarts - len(failures)
        output(f"{failure} All begin again from the newest checkpoint, {left} more times.")

    while True:
        try:
            _run(replace(plan, restarts=plan.restarts - len(failures)), until_s, hear, output,
                 patience_s=PATIENCE_S if failures else 0.0)  # fmt: skip
            break
        except RetreatAsked as error:  # each has another step back: this ends
            output(str(error))
        except ToolError as error:
            is_over = was_asked(error) or time.monotonic() >= until_s
            is_lost = isinstance(error, ChildCrash)
            if not is_lost or is_over or len(failures) >= plan.restarts:
                note(error, folder, failures)
                raise
            again(str(error))
    return launched(folder, failures)


def _run(
    plan: LaunchPlan,
    until_s: float,
    progress: Callable[[str], None],
    output: Callable[[str], None],
    *,
    patience_s: float,
) -> None:
    """Start the driver once and wait for its end."""
    command = Command(
        words=(plan.python, "-m", DRIVER),
        environment={**os.environ, "PYTHONUNBUFFERED": "1"},
        purpose=f"training {plan.reference}",
        cwd=plan.folder,
    )
    limits = Limits(
        run_s=math.inf, work_s=max(0.0, until_s - time.monotonic()), stop_s=STOP_GRACE_S,
        end_s=END_S,
    )  # fmt: skip
    request = {**without_none(ray_plan(plan)), "patience_s": patience_s}
    with together([command], chief=0, mark=PROGRESS, progress=progress, output=output) as crew:
        crew.chief.send(json.dumps(request))
        attend(crew, _judged, limits)


def _judged(process: Process) -> TfdynoError | None:
    """Return what the end of the driver means: None where the training has ended as it should."""
    said = event_of(process.said)
    error = judged(process)
    if error and said.get("event") == "failed" and said["error"]["kind"] == "lost":
        lost = Failure(**said["error"])
        return ClusterLost(lost.what, why=lost.why, remedy=lost.remedy)
    return error
