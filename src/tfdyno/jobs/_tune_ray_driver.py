"""The process that gives the runs of a tuning to Ray, a child of ``tune``.

It reads lines of JSON: first the address of the cluster, then one for each run with the node that
makes it. It answers by ``progress:`` lines: the nodes, then the result of each run. When its
standard input ends, so does it, and Ray ends what still runs. Each run takes a whole node, so that
nothing else of Ray is beside it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import Any

from tfdyno.core.errors import TfdynoError, UsageError
from tfdyno.jobs._ray_driver import _connected
from tfdyno.jobs._ray_worker import OF_RAY
from tfdyno.jobs._tune_ray_worker import measure_here
from tfdyno.jobs._worker import PROGRESS

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
        kind = "usage" if isinstance(error, UsageError) else "tool"
        _say({"failed": {"kind": kind, "what": error.what, "why": error.why,
                         "remedy": error.remedy}})  # fmt: skip
        return error.exit_code
    return 0


def _serve(ray: Any) -> None:  # noqa: ANN401
    nodes = {one["NodeID"]: one for one in ray.nodes() if one["Alive"]}
    _say({"nodes": [_told(one) for one in nodes.values()]})
    unset = [name for name in OF_RAY if name not in os.environ]
    for line in sys.stdin:
        wanted = json.loads(line)
        resources = nodes[wanted["node"]]["Resources"]
        place = {ray._raylet.RAY_NODE_ID_KEY: wanted["node"]}
        whole = ray.remote(
            num_cpus=resources.get("CPU", 0), num_gpus=resources.get("GPU", 0), max_retries=0
        )
        task = whole(measure_here).options(label_selector=place)
        made = task.remote({**wanted["request"], "unset": unset})
        threading.Thread(target=_wait, args=(ray, made, wanted["run"]), daemon=True).start()


def _wait(ray: Any, made: Any, run: int) -> None:  # noqa: ANN401
    """Tell the answer of a run; that Ray lost it is one too."""
    try:
        answer = ray.get(made)
    except Exception as error:  # of Ray: the node, the worker, or the cluster is gone
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        is_memory = "OutOfMemory" in type(error).__name__
        why = "the node ran out of memory" if is_memory else first
        answer = {"error": {"kind": "tool" if is_memory else "lost", "remedy": "",
                            "what": "Ray has lost the run", "why": why}}  # fmt: skip
    _say({"run": run, **answer})


def _told(node: dict[str, Any]) -> dict[str, Any]:
    resources = node["Resources"]
    return {
        "id": node["NodeID"],
        "name": node["NodeManagerHostname"],
        "cpus": resources.get("CPU", 0),
        "gpus": resources.get("GPU", 0),
        "kinds": sorted(name for name in resources if name.startswith("accelerator_type:")),
    }


def _say(event: dict[str, Any]) -> None:
    with _LOCK:
        print(f"{PROGRESS}{json.dumps(event)}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
