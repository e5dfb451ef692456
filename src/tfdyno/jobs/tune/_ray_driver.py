"""The process that gives the trials of a tuning to Ray Tune, a child of ``tune``.

It reads lines of JSON: first the address of the cluster, then one for each run, with the trial
that it is of and the node, and one for each trial that is over. It answers by ``progress:`` lines:
the nodes, then the result of each run. When its standard input ends, so does it, and Ray ends what
still runs. Each trial takes a whole node, so that nothing else of Ray is beside it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, failure_of
from tfdyno.core.messages.tune import RayBegun, RayNode
from tfdyno.core.messages.wire import encode
from tfdyno.jobs.child.worker import PROGRESS
from tfdyno.jobs.launch.ray_driver import _connected
from tfdyno.jobs.tune._ray_desk import Desk

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Module
    from tfdyno.core.messages.tune import RunDone

_LOCK = threading.Lock()


def main() -> int:
    """Serve runs until nobody asks any more; the exit code of its end."""
    first = sys.stdin.readline()
    asked = {"address": json.loads(first)["address"], "scaling_config": {"num_workers": 1}}
    stop = threading.Event()
    try:
        with _connected(asked, stop) as ray:
            signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
            _serve(ray)
    except TfdynoError as error:
        _say(RayBegun(failed=failure_of(error)))
        return error.exit_code
    return 0


def _serve(ray: Module) -> None:
    from tfdyno.jobs.tune._ray_trials import run_trials

    nodes = {one["NodeID"]: one for one in ray.nodes() if one["Alive"]}
    _say(RayBegun(nodes=tuple(map(_told, nodes.values()))))
    desk = Desk(_say)
    threading.Thread(target=desk.listen, args=(sys.stdin,), daemon=True).start()
    run_trials(desk, nodes)


def _told(node: dict[str, Any]) -> RayNode:
    resources = node["Resources"]
    kinds = sorted(name for name in resources if name.startswith("accelerator_type:"))
    return RayNode(
        id=node["NodeID"],
        name=node["NodeManagerHostname"],
        cpus=int(resources.get("CPU", 0)),
        gpus=int(resources.get("GPU", 0)),
        kinds=tuple(kinds),
    )


def _say(event: RayBegun | RunDone) -> None:
    with _LOCK:
        print(f"{PROGRESS}{encode(event)}\n", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
