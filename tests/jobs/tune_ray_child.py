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
from typing import TYPE_CHECKING

from tests.jobs import tune_child

import tfdyno.jobs.bench.run as bench_run
import tfdyno.jobs.diagnose.same_losses as same_losses
import tfdyno.jobs.tune._place as place
from tfdyno.core.base.errors import Failure
from tfdyno.core.messages.tune import (
    LOST,
    NodeAnswer,
    NodeWork,
    RayBegun,
    RayNode,
    RunDone,
    RunWanted,
)
from tfdyno.core.messages.wire import decode, encode
from tfdyno.jobs.child.worker import PROGRESS
from tfdyno.jobs.tune._ray_worker import measure_here

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

LOCK = threading.Lock()
NODES = (
    RayNode(id="a", name="first", cpus=2, gpus=0),
    RayNode(id="b", name="second", cpus=2, gpus=0),
    RayNode(id="c", name="larger", cpus=8, gpus=1, kinds=("accelerator_type:L4",)),
)


def losses(*_request: object, **_ways: object) -> Value:
    """The same whatever is trained, and who trained them written down."""
    with Path("losses.jsonl").open("a") as file:
        file.write("{}\n")
    return SimpleNamespace(outcome=SimpleNamespace(history={"loss": [1.0, 0.5]}, stopped=""))


def say(event: RayBegun | RunDone) -> None:
    with LOCK:
        sys.stderr.write(f"{PROGRESS}{encode(event)}\n")  # in one piece: others write there too
        sys.stderr.flush()


def answer(wanted: RunWanted, work: NodeWork) -> None:
    law = json.loads(Path("law.json").read_text())
    if wanted.run == law.get("lost_at"):
        os._exit(1)
    if wanted.run == law.get("node_lost_at"):
        lost = Failure(kind=LOST, what="Ray has lost the run", why="the node died")
        say(RunDone(run=wanted.run, answer=NodeAnswer(found=lost)))
        return
    with Path("nodes.jsonl").open("a") as file:
        file.write(json.dumps(wanted.node) + "\n")
    say(RunDone(run=wanted.run, answer=measure_here(work)))


if __name__ == "__main__":
    vars(bench_run)["RUN"] = tune_child.MADE_UP
    vars(place)["PLACE"] = tune_child.MADE_UP_PLACE
    vars(same_losses)["train"] = losses
    json.loads(sys.stdin.readline())
    say(RayBegun(nodes=NODES))
    for line in sys.stdin:
        wanted = decode(json.loads(line), RunWanted)
        if wanted.work:  # the end of a trial is nothing to do here
            threading.Thread(target=answer, args=(wanted, wanted.work), daemon=True).start()
