"""The trials of a tuning as trials of Ray Tune, which end when the command's law says so.

Ray Tune gets its trials from a searcher that hands out what the command wants, and after each run
its scheduler asks what follows. The study is the command's: what Ray Tune writes itself lies in a
temporary folder, and goes with it. Only the process that has Ray imports this.
"""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ray
from ray import tune
from ray._raylet import RAY_NODE_ID_KEY
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher
from ray.tune.stopper import Stopper

from tfdyno.core.messages.tune import NodeAnswer
from tfdyno.core.messages.wire import decode, encode
from tfdyno.jobs.launch.ray_driver import _place
from tfdyno.jobs.launch.ray_worker import OF_RAY
from tfdyno.jobs.tune._ray_worker import Shelf, trial_of_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.base.untyped import Value
    from tfdyno.jobs.tune._ray_desk import Desk

LOOK_S = 2.0
"""Between two looks whether a node is there that a trial waits for."""
_MEMORY = ("OutOfMemory", "running low on memory", "memory pressure")
"""What Ray says of a worker that it has killed for its memory."""
_QUIET = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # no files of results
    "TUNE_DISABLE_SIGINT_HANDLER": "1",
    "TUNE_WARN_INSUFFICENT_RESOURCE_THRESHOLD_S": "1000000000",  # (it is spelled so)
    "RAY_AIR_NEW_OUTPUT": "0",  # the new one prints a table whatever ``verbose`` says
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
}


def run_trials(desk: Desk, nodes: Mapping[str, dict[str, Any]]) -> None:
    """Run what the desk is asked for, one trial on each node at a time, until nobody asks.

    Args:
        desk: Where the command asks.
        nodes: What ``ray.nodes`` says of them, by id.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    logging.getLogger("ray.tune").setLevel(logging.ERROR)
    name = f"tfdyno-{os.getpid()}-{time.time_ns()}"
    here = {RAY_NODE_ID_KEY: ray.get_runtime_context().get_node_id()}
    shelf = ray.remote(num_cpus=0)(Shelf).options(name=name, label_selector=here).remote()
    with _place() as place:
        tune.Tuner(
            tune.with_resources(trial_of_runs, lambda config: _whole(nodes[config["node"]])),
            tune_config=tune.TuneConfig(
                search_alg=Wanted(desk, name),
                scheduler=Judged(desk, shelf),
                max_concurrent_trials=len(nodes),
                num_samples=-1,
                trial_dirname_creator=lambda trial: f"trial-{trial.config['trial']}",
            ),
            run_config=tune.RunConfig(
                name="tfdyno",
                storage_path=place,
                verbose=0,
                failure_config=tune.FailureConfig(max_failures=0),
                callbacks=[Watch(desk)],
                stop=Nobody(desk),
            ),
        ).fit()


def _whole(node: Mapping[str, Any]) -> Value:
    """Return all CPUs and cards of one node, and of no other."""
    resources = node["Resources"]
    bundle = {name: resources[name] for name in ("CPU", "GPU") if resources.get(name)}
    place = {RAY_NODE_ID_KEY: node["NodeID"]}
    return tune.PlacementGroupFactory([bundle], bundle_label_selector=[place])


class Wanted(Searcher):
    """Suggests what the command asks for, which has asked its own sampler."""

    def __init__(self, desk: Desk, shelf: str) -> None:
        """Begin.

        Args:
            desk: Where the command asks.
            shelf: Name of the actor with the next works.
        """
        super().__init__()
        self._desk, self._shelf = desk, shelf

    def suggest(self, trial_id: str) -> Value:
        """Return the configuration of the next trial; None: not now."""
        if self._desk.is_closed:
            return Searcher.FINISHED
        begun = self._desk.next_trial()
        if begun is None:
            return None
        return {
            "trial": begun.trial,
            "node": begun.node,
            "shelf": self._shelf,
            "work": encode(begun.work),
            "unset": ",".join(name for name in OF_RAY if name not in os.environ),
        }

    def on_trial_complete(self, trial_id: str, result: Value = None, error: bool = False) -> None:
        """Do nothing: the command has told its study."""

    def save(self, checkpoint_path: str) -> None:
        """Save nothing: the study is the command's."""

    def restore(self, checkpoint_path: str) -> None:
        """Restore nothing: a tuning that goes on is a new one for Ray Tune."""


class Judged(FIFOScheduler):
    """Ends a trial, or lets it go on with its next run, as the command's law says."""

    def __init__(self, desk: Desk, shelf: Value) -> None:
        """Begin.

        Args:
            desk: Where the command judges.
            shelf: The actor with the next works.
        """
        super().__init__()
        self._desk, self._shelf = desk, shelf

    def on_trial_result(self, tune_controller: Value, trial: Value, result: dict[str, Any]) -> str:
        """Return what follows after a run; the command takes milliseconds to say it."""
        number = trial.config["trial"]
        following = self._desk.judged(number, decode(json.loads(result["answer"]), NodeAnswer))
        if following is None:
            return str(TrialScheduler.STOP)
        ray.get(self._shelf.put.remote(number, encode(following)))
        return str(TrialScheduler.CONTINUE)

    def on_trial_error(self, tune_controller: Value, trial: Value) -> None:
        """Note that the node, or the worker on it, is gone."""
        file = trial.error_file
        error = Path(file).read_text() if file and Path(file).exists() else ""
        lines = [line.strip() for line in error.splitlines() if line.strip()]
        why = next((one for one in lines if not one.startswith("Failure #")), "")
        is_memory = any(word in error for word in _MEMORY)
        self._desk.lost(trial.config["trial"], why, is_memory=is_memory)


class Nobody(Stopper):
    """Ends Ray Tune, with what still runs, when nobody asks any more."""

    def __init__(self, desk: Desk) -> None:
        """Begin.

        Args:
            desk: Where it is asked.
        """
        self._desk = desk

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """Return whether a trial is to end, which the scheduler says."""
        return False

    def stop_all(self) -> bool:
        """Return whether all are."""
        return self._desk.is_closed


class Watch(tune.Callback):
    """Sees that a node is gone which a trial would wait for without end."""

    def __init__(self, desk: Desk) -> None:
        """Begin.

        Args:
            desk: Where it is told.
        """
        self._desk, self._due_s = desk, 0.0

    def on_step_begin(self, iteration: int, trials: list[Any], **_info: object) -> None:
        """Look from time to time."""
        waiting = [one for one in trials if one.status == "PENDING"]
        if not waiting or time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + LOOK_S
        alive = {one["NodeID"] for one in ray.nodes() if one["Alive"]}
        for one in waiting:
            if one.config["node"] not in alive:
                self._desk.lost(one.config["trial"], "the node has left the cluster",
                                is_memory=False)  # fmt: skip
