"""A stand-in for the driver of Ray: two equal nodes and another one, all of them this machine.

The runs are real children (``tune_child``), each node's one after the other. ``law.json`` says at
which run it dies (``lost_at``), or loses the node (``node_lost_at``).
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.jobs import tune_child

import tfdyno.jobs.bench.run as bench_run
import tfdyno.jobs.diagnose.same_losses as same_losses
import tfdyno.jobs.tune._place as place
from tfdyno.jobs.child.worker import PROGRESS
from tfdyno.jobs.tune._ray_worker import measure_here

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

LOCK = threading.Lock()
NODES = [
    {"id": "a", "name": "first", "cpus": 2, "gpus": 0, "kinds": []},
    {"id": "b", "name": "second", "cpus": 2, "gpus": 0, "kinds": []},
    {"id": "c", "name": "larger", "cpus": 8, "gpus": 1, "kinds": ["accelerator_type:L4"]},
]


def losses(*_question: object, **_ways: object) -> Value:
    """The same whatever is trained, and who trained them written down."""
    with Path("losses.jsonl").open("a") as file:
        file.write("{}\n")
    return SimpleNamespace(outcome=SimpleNamespace(history={"loss": [1.0, 0.5]}, stopped=""))


def say(event: dict[str, Any]) -> None:
    with LOCK:
        sys.stderr.write(f"{PROGRESS}{json.dumps(event)}\n")  # in one piece: others write there too
        sys.stderr.flush()


def answer(wanted: dict[str, Any]) -> None:
    law = json.loads(Path("law.json").read_text())
    if wanted["run"] == law.get("lost_at"):
        os._exit(1)
    if wanted["run"] == law.get("node_lost_at"):
        said = {
            "kind": "lost",
            "what": "Ray has lost the run",
            "why": "the node died",
            "remedy": "",
        }
        say({"run": wanted["run"], "error": said})
        return
    with Path("nodes.jsonl").open("a") as file:
        file.write(json.dumps(wanted["node"]) + "\n")
    say({"run": wanted["run"], **measure_here({**wanted["request"], "unset": []})})


if __name__ == "__main__":
    bench_run.CHILD = place.CHILD = tune_child.__name__
    vars(same_losses)["train"] = losses
    json.loads(sys.stdin.readline())
    say({"nodes": NODES})
    for line in sys.stdin:
        wanted = json.loads(line)
        if "run" in wanted:  # the end of a trial is nothing to do here
            threading.Thread(target=answer, args=(wanted,), daemon=True).start()
