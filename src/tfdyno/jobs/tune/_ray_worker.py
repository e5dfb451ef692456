"""A trial on a node of Ray: run after run, each the same fresh child as everywhere.

After each run it reports, and Ray Tune ends it there, or lets it go on with the next one.
"""

from __future__ import annotations

import json
import os
from typing import Any

from tfdyno.core.base.codec import from_builtins, to_builtins
from tfdyno.core.base.errors import TfdynoError, kind_of
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.measurement import Protocol
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import Retreat
from tfdyno.jobs.bench.run import measured
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.tune._losses import Pair, compare_here
from tfdyno.jobs.tune._place import limit_here, look_here


class Shelf:
    """An actor beside the driver: the next request of each trial, put there before it goes on."""

    def __init__(self) -> None:
        """It is empty."""
        self._requests: dict[int, str] = {}

    def put(self, trial: int, request: str) -> None:
        """Keep the next request of a trial."""
        self._requests[trial] = request

    def take(self, trial: int) -> str:
        """Give it to the trial."""
        return self._requests.pop(trial)


def trial_of_runs(config: dict[str, Any]) -> None:
    """Run and report until Ray Tune ends the trial, what it trains.

    Args:
        config: ``trial``, its number; ``request`` of its first run, as JSON: of a trial that goes
            on after a kill that is the one after those that are kept; ``shelf``, the name of the
            actor with the next ones; ``unset``: names of variables that Ray has set, by commas.
    """
    import ray
    from ray import tune

    shelf = ray.get_actor(config["shelf"])
    unset = [name for name in config["unset"].split(",") if name]
    request = config["request"]
    while True:
        answer = measure_here({**json.loads(request), "unset": unset})
        tune.report({"answer": json.dumps(answer)})  # comes back when it goes on
        request = ray.get(shelf.take.remote(config["trial"]))


def measure_here(request: dict[str, Any]) -> dict[str, Any]:
    """Do in this process' place what is asked; what fails is told, not raised.

    Args:
        request: ``folder`` that the paths are relative to, ``on_cpu``, ``unset``, names of
            variables that Ray has set, and one of these: ``workload``, ``recipe``, ``protocol``,
            ``order``, ``doing`` and ``limit_bytes`` of resident memory (0: most of what there is)
            to measure once; ``workload`` and ``recipe`` to look at the place; ``pair`` to compare
            losses.
    """
    for name in request["unset"]:
        os.environ.pop(name, None)
    try:
        os.chdir(request["folder"])
    except OSError as error:
        what = f"{request['folder']} is not on node {os.uname().nodename}"
        lost = {"kind": "lost", "what": what, "why": error.strerror or str(error), "remedy": ""}
        return {"error": lost}
    try:
        return _answer(request)
    except TfdynoError as error:
        return {"error": _words(error)}


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    if "pair" in request:
        pair = from_builtins(request["pair"], Pair)
        return {"agreement": to_builtins(compare_here(pair, progress=silent))}
    workload = from_builtins(request["workload"], Workload)
    recipe = from_builtins(request["recipe"], Recipe)
    if "protocol" not in request:
        return {"place": to_builtins(look_here(workload, recipe, progress=silent))}
    found = measured(
        workload,
        recipe,
        from_builtins(request["protocol"], Protocol),
        order=request["order"],
        doing=request["doing"],
        progress=silent,
        had=from_builtins(request["had"], tuple[Retreat, ...]),
        memory_limit_bytes=limit_here(request["limit_bytes"], on_cpu=request["on_cpu"]),
        keeps_programs=True,
    )
    return {"measured": to_builtins(found)}


def _words(error: TfdynoError) -> dict[str, str]:
    return {"kind": kind_of(error), "what": error.what, "why": error.why, "remedy": error.remedy}
