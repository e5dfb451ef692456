"""A stand-in for ``tfdyno.runtime.bench.child``: measures nothing, its numbers come from a file.

It is a real child process, so that what the job does with one can be seen in milliseconds. The
file ``plan.json`` of the working folder says what happens in which run.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import BenchRun, BenchTask
from tfdyno.core.measure.software import Software
from tfdyno.core.messages.bench import RUN, MeasuredRun
from tfdyno.core.messages.wire import decode
from tfdyno.process import child

if TYPE_CHECKING:
    from tfdyno.core.messages.bench import MeasureRun

MADE_UP = replace(RUN, module="tests.jobs.bench_child")
TASK: dict[str, Any] = {
    "reference": "train.py", "title": "convnet", "parameter_count": 1000,
    "inputs": ["float32[32,32,3]"], "policy": "float32", "execution": "graph", "batch_size": 64,
}  # fmt: skip
SOFTWARE = Software(tensorflow="2.21.0", keras="3.15.1", python="3.11.7", devices=["CPU:0"])


def handle(request: MeasureRun, progress: child.Progress) -> MeasuredRun:
    """Answer as the plan says for this run, which is counted by a file."""
    log = Path("runs.jsonl")
    number = len(log.read_text().splitlines()) if log.exists() else 0
    plan = json.loads(Path("plan.json").read_text())
    now = plan.get(str(number), {})
    with log.open("a") as file:
        line = {"pid": os.getpid(), "batch_size": request.recipe.batch_size,
                "threads": os.environ.get("TF_NUM_INTRAOP_THREADS"),
                "backend": request.backend, "keras": os.environ.get("KERAS_BACKEND"),
                "first_weights": request.first_weights}  # fmt: skip
        file.write(json.dumps(line) + "\n")
    progress("40 steps, median 52.1 ms")
    if request.first_weights:
        Path(request.first_weights).touch()
    if "fail" in now:
        raise UsageError("train.py failed at step 3", why=now["fail"])
    time.sleep(now.get("sleep_s", 0.0))
    step_s = now.get("step_s", plan.get("step_s", 0.1))
    count = now.get("samples", 40)
    run = BenchRun(
        samples_s=tuple(step_s * (1 + 0.001 * (i % 3)) for i in range(count)),
        steps_per_sample=(1,) * count, steady_from=2,
        first_step_s=1.0, import_s=2.0, build_s=0.5,
        peak_memory_bytes=1 << 30, memory_kind="process", started_at="2026-11-21T12:00:00Z",
        metrics={"accuracy": 0.9, "loss": float("nan")},
    )  # fmt: skip
    task = decode(TASK | now.get("task", {}), BenchTask)
    return MeasuredRun(run=run, task=task, software=SOFTWARE)


if __name__ == "__main__":
    child.leave(child.serve(handle, RUN))
