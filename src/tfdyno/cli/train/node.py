"""``tfdyno node``: one process of a training on several nodes; engines start it, people seldom."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tfdyno.cli.command import command, flag, group, option
from tfdyno.cli.options import PYTHON, UNSAFE, Filled, Whole
from tfdyno.cli.progress import tell_program
from tfdyno.cli.train.jax_options import JaxOptions, jax_plan
from tfdyno.cli.train.train_options import Run, Watched, question_from
from tfdyno.cli.workload_options import WorkloadOptions
from tfdyno.core.base.errors import RetreatAsked, TfdynoError, failure_of
from tfdyno.core.base.settings import MOST_PORT
from tfdyno.core.cluster.launch_plan import UNFINISHED, seconds_of

if TYPE_CHECKING:
    from tfdyno.cli.answer import Answer
    from tfdyno.jobs.launch.node import NodeEnd

EVENTS_HELP = "Events as lines of JSON on stderr, for a program that watches."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(WorkloadOptions):
    run: Run = group(Run)
    jax: JaxOptions = group(JaxOptions)
    nodes: int | None = option(
        type=Whole("--nodes"), help="That take part; checked against the engine's."
    )
    gpus: int | None = option(
        "--gpus-per-node", type=Whole("--gpus-per-node", least=0), help="0: the CPUs train."
    )
    rank: int | None = option(
        type=Whole("--rank", least=0), help="Of this process, where no engine tells."
    )
    port: int | None = option(type=Whole("--port", most=MOST_PORT), help="Of every process.")
    wait: str | None = option(
        type=Filled(), metavar="TIME", help="For the others.  [default: 10min]"
    )
    events: bool = flag(help=EVENTS_HELP)
    python: str | None = PYTHON
    unsafe: bool = UNSAFE
    told: Watched = group(Watched)


@command(_Options)
def node(options: _Options) -> Answer | int:
    """Take part in a training as one process of several.

    tfdyno launch, or an engine, starts it. Who it is and where the others are it reads from
    TF_CONFIG, Slurm, an indexed Job of Kubernetes, SkyPilot or SageMaker, or from TFDYNO_RANK and
    TFDYNO_WORKERS=host:port,… A run that is in --output already goes on from its newest
    checkpoint. Exit code 75: it was ended before its end.
    """
    if options.gpus == 0:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # before anything looks for cards
    try:
        end = _run(options)
    except TfdynoError as error:
        if options.events:
            told = {**asdict(failure_of(error)), "notes": getattr(error, "__notes__", [])}
            tell_program(json.dumps({"event": "failed", "error": told}))
            if options.nodes == 1 and os.environ.get("TFDYNO_DEBUG") != "1":
                return error.exit_code  # who reads the event says it; of several each says its own
        if isinstance(error, RetreatAsked):
            print(error, file=sys.stderr, flush=True)
            return UNFINISHED  # engines start it again
        raise
    if options.events:
        tell_program(json.dumps({"event": "done", "stopped": end.outcome.stopped}))
    if end.trained and not options.events:
        from tfdyno.cli.train.train import answer

        trained = answer(end.trained)
        return replace(trained, exit_code=UNFINISHED) if end.is_unfinished else trained
    return UNFINISHED if end.is_unfinished else 0


def _run(options: _Options) -> NodeEnd:
    from tfdyno.cli.train.train_progress import train_progress
    from tfdyno.engines.rendezvous.rendezvous import WAIT_S
    from tfdyno.engines.rendezvous.sagemaker_hosts import with_hosts
    from tfdyno.jobs.launch.node import NodeRequest, node

    asked = NodeRequest(
        request=replace(
            question_from(options, options.run, python=options.python, unsafe=options.unsafe),
            jax=jax_plan(options.jax),
        ),
        nodes=options.nodes or 0,
        gpus_per_node=options.gpus,
        rank=options.rank,
        port=options.port or 0,
        wait_s=seconds_of(options.wait, "--wait") if options.wait else WAIT_S,
    )
    environment = with_hosts(os.environ)
    if options.events:
        output = partial(print, file=sys.stderr, flush=True)
        return node(asked, environment=environment, progress=tell_program, output=output)
    with train_progress(quiet=options.told.quiet, verbose=options.told.verbose) as shown:
        return node(asked, environment=environment, progress=shown.progress, output=shown.output)
