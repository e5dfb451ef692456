"""A stand-in for ``tfdyno.runtime.bench.child`` whose step time follows from the recipe, by a law.

It is a real child process, so that what the job does with one can be seen in milliseconds. The
file ``law.json`` of the working folder has the numbers, and what goes wrong.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.jobs.bench_child import SOFTWARE, TASK

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.measure.measurement import BenchRun, BenchTask
from tfdyno.core.messages.bench import PLACE, RUN, MeasuredRun, MeasureRun
from tfdyno.core.messages.child import Child
from tfdyno.core.messages.wire import decode, encode
from tfdyno.process import child

if TYPE_CHECKING:
    from tfdyno.core.measure.software import Software
    from tfdyno.core.recipe.recipe import Recipe

MADE_UP = replace(RUN, module="tests.jobs.tune_child")
MADE_UP_PLACE = replace(PLACE, module="tests.jobs.tune_child")
OWN_BATCH = 64
LAW = {"fixed_s": 0.004, "per_sample_s": 0.0001, "xla": 1.5, "several_steps": 0.9}
"""A step of the graph; XLA takes so many times as long, several steps in one so little."""


def step_s(recipe: Recipe, law: dict[str, Any]) -> float:
    """Seconds of a step under a recipe."""
    several = recipe.steps_per_execution > 1
    fixed_s = law["fixed_s"] * (law["several_steps"] if several else 1.0)
    whole_s = fixed_s + law["per_sample_s"] * (recipe.batch_size or OWN_BATCH)
    return float(whole_s * (law["xla"] if recipe.execution == "xla" else 1.0))


def handle(request: dict[str, Any], progress: child.Progress) -> MeasuredRun | Software:
    """Answer by the law; every run is written down. What asks for no run looks at the place."""
    law = LAW | json.loads(Path("law.json").read_text())
    software: Software = {**SOFTWARE, **law.get("software", {})}
    if not request:
        return software
    recipe = decode(request, MeasureRun).recipe
    log = Path("runs.jsonl")
    number = len(log.read_text().splitlines()) if log.exists() else 0
    with log.open("a") as file:
        file.write(encode({"recipe": recipe}) + "\n")
    progress("40 steps")
    batch_size = recipe.batch_size or OWN_BATCH
    if number == law.get("kill_at"):
        os.kill(os.getppid(), signal.SIGKILL)
    if number == law.get("stop_at"):
        os.kill(os.getppid(), signal.SIGINT)
        signal.pause()
    if number in law.get("crash_at", ()):
        os._exit(7)
    if batch_size > law.get("most", 1 << 20):
        raise ToolError("train.py: this machine ran out of memory",
                        why=f"a batch of {batch_size} does not fit")  # fmt: skip
    if law.get("xla_fails") and recipe.execution == "xla":
        cause = RuntimeError("INTERNAL: Failed to compute symbolic tile for (d0)")
        raise UsageError("train.py failed") from cause
    if recipe.input.cache and law.get("no_cache"):
        raise UsageError("the input options cannot be set for a generator")
    if held_bytes := law.get("held_bytes_per_sample", 0) * batch_size:
        held = bytearray(held_bytes)
        held[::4096] = b"x" * len(held[::4096])  # resident, not only promised
        time.sleep(0.5)
    noise = random.Random(number).gauss(0.0, law.get("noise", 0.002))
    seconds = step_s(recipe, law) * (1 + noise)
    run = BenchRun(
        samples_s=tuple(seconds * (1 + 0.001 * (i % 3)) for i in range(40)),
        steps_per_sample=(1,) * 40, steady_from=2,
        first_step_s=1.0, import_s=2.0, build_s=0.5,
        peak_memory_bytes=(100 + batch_size) << 20, memory_kind="process",
        started_at="2026-11-24T12:00:00Z",
    )  # fmt: skip
    task = TASK | {"batch_size": batch_size, "samples_per_epoch": 100_000} | law.get("task", {})
    return MeasuredRun(run=run, task=decode(task, BenchTask), software=software)


if __name__ == "__main__":
    child.leave(child.serve(handle, Child(module="", request=dict, result=object)))
