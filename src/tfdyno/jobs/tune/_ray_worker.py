"""A trial on a node of Ray: run after run, each the same fresh child as everywhere.

After each run it reports, and Ray Tune ends it there, or lets it go on with the next one.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import Failure, TfdynoError, failure_of
from tfdyno.core.messages.tune import LOST, LookHere, NodeAnswer, NodeWork, Pair
from tfdyno.core.messages.wire import decode, encode
from tfdyno.jobs.bench.run import measured
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.tune._losses import compare_here
from tfdyno.jobs.tune._place import limit_here, look_here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.measure.fix_proof import Agreement
    from tfdyno.core.measure.measurement import Environment, Measured


class Shelf:
    """An actor beside the driver: the next work of each trial, put there before it goes on."""

    def __init__(self) -> None:
        """Begin empty."""
        self._works: dict[int, str] = {}

    def put(self, trial: int, work: str) -> None:
        """Keep the next work of a trial."""
        self._works[trial] = work

    def take(self, trial: int) -> str:
        """Give it to the trial."""
        return self._works.pop(trial)


def trial_of_runs(config: dict[str, Any]) -> None:
    """Run and report until Ray Tune ends the trial, what it trains.

    Args:
        config: ``trial``, its number; ``work`` of its first run, as JSON: of a trial that goes
            on after a kill that is the one after those that are kept; ``shelf``, the name of the
            actor with the next ones; ``unset``: names of variables that Ray has set, by commas.
    """
    import ray
    from ray import tune

    shelf = ray.get_actor(config["shelf"])
    unset = [name for name in config["unset"].split(",") if name]
    asked = config["work"]
    while True:
        answer = measure_here(decode(json.loads(asked), NodeWork), unset)
        tune.report({"answer": encode(answer)})  # comes back when it goes on
        asked = ray.get(shelf.take.remote(config["trial"]))


def measure_here(asked: NodeWork, unset: Sequence[str] = ()) -> NodeAnswer:
    """Do in this process' place what is asked; what fails is told, not raised.

    Args:
        asked: The work, and where.
        unset: Names of variables that Ray has set.
    """
    for name in unset:
        os.environ.pop(name, None)
    try:
        os.chdir(asked.folder)
    except OSError as error:
        what = f"{asked.folder} is not on node {os.uname().nodename}"
        lost = Failure(kind=LOST, what=what, why=error.strerror or str(error))
        return NodeAnswer(found=lost)
    try:
        return NodeAnswer(found=_found(asked))
    except TfdynoError as error:
        return NodeAnswer(found=failure_of(error))


def _found(asked: NodeWork) -> Measured | Environment | Agreement:
    work = asked.work
    if isinstance(work, Pair):
        return compare_here(work, silent)
    if isinstance(work, LookHere):
        return look_here(work, silent)
    may_be_on_cpu = asked.on_cpu or work.backend == "jax"  # which may have no GPU beside cards
    limit_bytes = limit_here(work.limit_bytes, on_cpu=may_be_on_cpu)
    return measured(replace(work, limit_bytes=limit_bytes), silent, keeps_programs=True)
