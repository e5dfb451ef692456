"""What ``tfdyno launch`` tells of a training that it has watched, and the command that goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.cluster.launch_plan import name_of

if TYPE_CHECKING:
    from tfdyno.cli.answer import Answer
    from tfdyno.core.cluster.launch_plan import LaunchPlan
    from tfdyno.jobs.launch.local import Launched


def answer(launched: Launched, plan: LaunchPlan) -> Answer:
    """Return what came of it, with the command that goes on where it was ended.

    Args:
        launched: What came of the training.
        plan: By which.
    """
    from dataclasses import replace

    from tfdyno.cli.train.train import answer_of
    from tfdyno.core.measure.measurement import Telemetry
    from tfdyno.view.train.document import TrainReport

    outcome, record = launched.outcome, launched.record
    again = tuple(f"Started again after: {failure}" for failure in launched.failures)
    assert record.environment
    told = TrainReport(
        outcome=replace(outcome, notes=(*again, *outcome.notes)),
        output=str(launched.folder),
        reference=plan.reference,
        recipe=launched.recipe,
        environment=record.environment,
        telemetry=record.telemetry or Telemetry(),
        resume_command=resume_command(plan, launched) if outcome.stopped else "",
    )
    return answer_of(told, nodes=plan.nodes, failures=launched.failures)


def resume_command(plan: LaunchPlan, launched: Launched) -> str:
    """Return what goes on with a run that was ended.

    Args:
        plan: Of the run.
        launched: What came of it so far.
    """
    import shlex

    from tfdyno.core.train.training import seconds_text
    from tfdyno.jobs.train.train import shown

    is_here = Path(plan.folder or ".").absolute() == Path.cwd()
    given = {
        "--on": plan.engine if plan.engine != "local" else "",
        "--nodes": str(plan.nodes),
        "--gpus-per-node": str(plan.gpus_per_node),
        "--cpus": str(plan.cpus or ""),
        "--memory": str(plan.memory_bytes or ""),
        "--time-limit": seconds_text(plan.time_limit_s) if plan.time_limit_s else "",
        "--restarts": str(plan.restarts or ""),
        "--name": plan.name if plan.name != name_of(plan.reference) else "",
        "--python": plan.python if plan.python != sys.executable else "",
        "--workdir": "" if is_here else plan.folder,
        "--port": str(plan.port or ""),
        "--output": shown(launched.folder) if is_here else str(launched.folder),
    }
    words = ["tfdyno", "launch", plan.reference]
    for name, value in given.items():
        words += [name, value] if value else []
    for option, pairs in (("--env", plan.environment), ("--with", plan.extra)):
        for name, value in pairs:
            words += [option, f"{name}={value}"]
    words += [*plan.options, *(["--", *plan.script_arguments] if plan.script_arguments else [])]
    return shlex.join(words)
