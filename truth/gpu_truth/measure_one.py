"""Measures one step in a process of its own: ``python -m gpu_truth.measure_one JSON``.

The JSON has ``step``, ``facts`` (fields of the row that the parent knows), ``device``, ``uuid`` of
the card, ``parent`` (its process) and ``folder``. In the folder the child writes ``ready`` when the
step is compiled, waits for ``go``, and leaves ``row.json``, or ``no_device`` with a sentence.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import platform
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from gpu_truth.card import meter_of
from gpu_truth.running import NoDeviceError, Running

WARM_UP_S = 0.4
WINDOW_S = 0.35
WINDOWS = 7
GATE_S = 0.02


def main(words: list[str]) -> int:
    """Measure; exit code 3 where the framework sees no card."""
    job = json.loads(words[0])
    folder = Path(job["folder"])
    try:
        row = _measured(job, folder)
    except NoDeviceError as error:
        (folder / "no_device").write_text(str(error), encoding="utf-8")
        return 3
    unfinished = folder / "row.part"
    unfinished.write_text(json.dumps(row), encoding="utf-8")
    unfinished.replace(folder / "row.json")
    return 0


def _measured(job: dict[str, Any], folder: Path) -> dict[str, object]:
    step, device, begun = job["step"], job["device"], time.monotonic()
    framework = importlib.import_module(f"gpu_truth.step_{step['backend']}")
    framework.prepare(step["precision"], device)
    import keras
    import numpy as np

    from gpu_truth.inputs import inputs_of, targets_of

    if step["precision"].startswith("mixed"):
        keras.config.set_dtype_policy(step["precision"])
    keras.utils.set_random_seed(1)
    model = getattr(importlib.import_module("zoo_today"), step["model"])()
    rng = np.random.default_rng(1)
    x, y = inputs_of(model, step["batch"], rng), targets_of(model, step["batch"], rng)
    row: dict[str, object] = {
        **step,
        **job["facts"],
        "keras_version": keras.__version__,
        "numpy_version": np.__version__,
        "python_version": platform.python_version(),
        "params_m": round(model.count_params() / 1e6, 3),
        "build_s": round(time.monotonic() - begun, 1),
    }
    compiling = time.monotonic()
    running = framework.running(model, x, y, step, device)
    row.update(running.facts)
    running.wait(running.call())
    row["first_step_s"] = round(time.monotonic() - compiling, 1)
    for _ in range(3):
        result = running.call()
    row.update(_loss("loss_3", running.wait(result)))
    _wait_for_go(folder, job["parent"])
    row["date"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    row.update(_timed(running, job["uuid"]))
    return row


def _wait_for_go(folder: Path, parent: int) -> None:
    """Say that the step is compiled and wait for the card; end where the parent is gone."""
    (folder / "ready").touch()
    while not (folder / "go").exists():
        if os.getppid() != parent:
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # the other children's folders are in it
                folder.parent.rmdir()
            sys.exit(4)
        time.sleep(GATE_S)


def _timed(running: Running, uuid: str | None) -> dict[str, object]:
    """Repeat the step alone on the card: a warm-up, then windows of many steps each."""
    begun, count, result = time.monotonic(), 0, None
    while time.monotonic() - begun < WARM_UP_S or count < 3:
        result = running.call()
        count += 1
        if count % 8 == 0:
            running.wait(result)
    running.wait(result)
    each_s = (time.monotonic() - begun) / count
    running.reset_memory()
    meter = meter_of(uuid, os.getpid())
    windows, steps = [], max(2, int(WINDOW_S / each_s))
    for _ in range(WINDOWS):
        start = time.perf_counter()
        for _ in range(steps):
            result = running.call()
        meter.sample()
        last = running.wait(result)
        windows.append(round((time.perf_counter() - start) / steps * 1e3, 4))
    told: dict[str, object] = {
        "step_ms": round(statistics.median(windows), 4),
        "window_ms": windows,
        "steps": steps * WINDOWS,
    }
    if running.memory is not None:
        told["current_bytes"], told["peak_bytes"] = running.memory()
    return told | meter.figures() | _loss("loss_end", last)


def _loss(name: str, value: float) -> dict[str, object]:
    """A loss, if it is a number: random data in 16 bits may overflow, which costs no time."""
    return {name: value} if math.isfinite(value) else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
