"""``tfdyno node``: one process of a training on several nodes; engines start it, people seldom."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import JSON, PYTHON, UNSAFE, WORKLOAD, Filled, Whole
from tfdyno.cli.train.jax_options import JAX_OPTIONS, jax_plan
from tfdyno.cli.train.train_options import RUN_OPTIONS
from tfdyno.core.base.errors import RetreatAsked, TfdynoError, failure_of
from tfdyno.core.base.settings import MOST_PORT
from tfdyno.core.cluster.launch_plan import UNFINISHED, seconds_of

if TYPE_CHECKING:
    from tfdyno.jobs.launch.node import NodeEnd

PROGRESS = "progress: "
EVENTS_HELP = "Events as lines of JSON on stderr, for a program that watches."


@click.command()
@WORKLOAD
@RUN_OPTIONS
@JAX_OPTIONS
@click.option(
    "--nodes", type=Whole("--nodes"), help="That take part; checked against the engine's."
)
@click.option("--gpus-per-node", "gpus", type=Whole("--gpus-per-node", least=0),
              help="0: the CPUs train.")  # fmt: skip
@click.option("--rank", type=Whole("--rank", least=0),
              help="Of this process, where no engine tells.")  # fmt: skip
@click.option("--port", type=Whole("--port", most=MOST_PORT), help="Of every process.")
@click.option("--wait", type=Filled(), metavar="TIME", help="For the others.  [default: 10min]")
@click.option("--events", is_flag=True, help=EVENTS_HELP)
@PYTHON
@UNSAFE
@JSON
@click.option("-q", "--quiet", is_flag=True, help="Nothing on stderr but what is wrong.")
@click.option("-v", "--verbose", is_flag=True, help="Show every stage and event as a line.")
def node(**given: Any) -> int:
    """Take part in a training as one process of several.

    tfdyno launch, or an engine, starts it. Who it is and where the others are it reads from
    TF_CONFIG, Slurm, an indexed Job of Kubernetes, SkyPilot or SageMaker, or from TFDYNO_RANK and
    TFDYNO_WORKERS=host:port,… A run that is in --output already goes on from its newest
    checkpoint. Exit code 75: it was ended before its end.
    """
    if given["gpus"] == 0:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # before anything looks for cards
    try:
        end = _run(given)
    except TfdynoError as error:
        if given["events"]:
            told = {**asdict(failure_of(error)), "notes": getattr(error, "__notes__", [])}
            _say(json.dumps({"event": "failed", "error": told}))
            if given["nodes"] == 1 and os.environ.get("TFDYNO_DEBUG") != "1":
                return error.exit_code  # who reads the event says it; of several each says its own
        if isinstance(error, RetreatAsked):
            print(error, file=sys.stderr, flush=True)
            return UNFINISHED  # engines start it again
        raise
    if given["events"]:
        _say(json.dumps({"event": "done", "stopped": end.outcome.stopped}))
    if end.trained and not given["events"]:
        from tfdyno.cli.train.train import answer

        code = answer(end.trained, (), given)
        return UNFINISHED if end.is_unfinished else code
    return UNFINISHED if end.is_unfinished else 0


def _run(given: dict[str, Any]) -> NodeEnd:
    from dataclasses import replace

    from tfdyno.cli.train.train_options import question_from
    from tfdyno.cli.train.train_progress import train_progress
    from tfdyno.engines.meeting.rendezvous import WAIT_S
    from tfdyno.engines.meeting.sagemaker_hosts import with_hosts
    from tfdyno.jobs.launch.node import NodeRequest, node

    asked = NodeRequest(
        question=replace(question_from(given), jax=jax_plan(given)),
        nodes=given["nodes"] or 0,
        gpus_per_node=given["gpus"],
        rank=given["rank"],
        port=given["port"] or 0,
        wait_s=seconds_of(given["wait"], "--wait") if given["wait"] else WAIT_S,
    )
    environment = with_hosts(os.environ)
    if given["events"]:
        return node(asked, environment=environment, progress=_say, output=_print)
    with train_progress(quiet=given["quiet"], verbose=given["verbose"]) as shown:
        return node(asked, environment=environment, progress=shown.progress, output=shown.output)


def _say(line: str) -> None:
    print(f"{PROGRESS}{line}", file=sys.stderr, flush=True)


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
