"""A measurement in words: times as precise as they were measured, places, settings."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, significant
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.words.base.amounts import listed, plural, step_unit

if TYPE_CHECKING:
    from tfdyno.core.measure.measurement import (
        BenchRun,
        BenchTask,
        Environment,
        Measurement,
        Summary,
    )

_IMAGE = re.compile(r"\w+\[[^,\]]+,[^,\]]+,[134]\]")
_DATA = {
    "own": "the workload's own data",
    "synthetic": "one made-up batch again and again through tf.data",
    "synthetic-device": "one made-up batch held on the device",
    "real": "real data",
}


def step_words(median_s: float, interval_s: tuple[float, float]) -> tuple[str, str]:
    """Return median and interval in the unit that reads best: (``52.1 ms``, ``51.8–52.6``).

    Three digits, and up to two more where the bounds would read the same.
    """
    if median_s <= 0:
        return "0 s", "0"
    factor, unit = step_unit(median_s)
    digits = 3
    for digits in (3, 4, 5):
        decimals = max(0, digits - 1 - math.floor(math.log10(median_s / factor)))
        low, best, high = (
            f"{value / factor:,.{decimals}f}" for value in (interval_s[0], median_s, interval_s[1])
        )
        if low != high:
            break
    return f"{best} {unit}", f"{low}–{high}" if low != high else low


def seconds_words(seconds: float) -> str:
    """Write ``8.21 s``, ``412 ms``; ``2 min 5 s`` from two minutes on."""
    if seconds >= 120.0:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return step_words(seconds, (seconds, seconds * 2))[0]


def rate_words(task: BenchTask, per_s: float) -> str:
    """Write ``614 images/s`` where the first input is a picture, else ``614 samples/s``."""
    return f"{significant(per_s)} {unit_of(task)}/s"


def unit_of(task: BenchTask) -> str:
    """Name the batch's samples: images, else samples; steps where the batch is unknown."""
    if not task.batch_size:
        return "steps"
    return "images" if task.inputs and _IMAGE.fullmatch(task.inputs[0]) else "samples"


def batch_words(task: BenchTask) -> str:
    """Write ``batch 128``."""
    return f"batch {task.batch_size:,}" if task.batch_size else "an unknown batch"


def device_words(environment: Environment) -> str:
    """Write ``NVIDIA H100 80GB HBM3``, ``2 x NVIDIA L4``, ``2 CPUs (AMD EPYC 7B13)``."""
    if environment.device == "cpu" or not environment.cards:
        return f"{plural(environment.cpu_count, 'CPU')} ({environment.cpu})"
    names = [card.name for card in environment.cards]
    counts = {name: names.count(name) for name in names}
    return listed([name if n == 1 else f"{n} x {name}" for name, n in counts.items()])


def environment_words(environment: Environment) -> str:
    """Return versions and machine in one sentence; what is unknown is left out."""
    named = [
        ("driver", environment.driver), ("CUDA", environment.cuda), ("cuDNN", environment.cudnn),
        ("TensorFlow", environment.tensorflow), ("Keras", environment.keras),
        ("Python", environment.python), ("tfdyno", environment.tfdyno),
    ]  # fmt: skip
    on_card = environment.device == "gpu"
    versions = [
        f"{name} {version}"
        for name, version in named
        if version and (on_card or name not in {"driver", "CUDA", "cuDNN"})
    ]
    cpu = f"{plural(environment.cpu_count, 'CPU')} ({environment.cpu}), " if on_card else ""
    memory = f"{cpu}{format_bytes(environment.memory_bytes)} of memory"
    container = environment.container_image or environment.container
    inside = f", in {container}" if container else ""
    return f"{', '.join(versions)}; {environment.system} on {environment.host}{inside}; {memory}"


def recipe_words(recipe: Recipe) -> str:
    """Write settings other than the script's: ``precision=mixed_float16``; empty: none."""
    return ", ".join(f"{name}={given}" for name, (_, given) in diff(Recipe(), recipe).items())


def task_words(one: Measurement) -> str:
    """Return what was run, in one sentence."""
    task = one.task
    parts = [
        f"{'training' if task.mode == 'train' else 'inference'} in {task.policy}",
        {"xla": "compiled by XLA", "graph": "graph without XLA", "eager": "eager"}[task.execution],
        f"{significant(task.parameter_count)} parameters",
        *([f"inputs {' '.join(task.inputs)}"] if task.inputs else []),
        *([f"{task.replica_count} replicas"] if task.replica_count > 1 else []),
        task.data_set or _DATA[one.protocol.data],
    ]
    return ", ".join(parts)


def peak_words(peak_bytes: float, kind: str) -> str:
    """Write ``3.1 GiB at most (TensorFlow's allocator on the GPU)``, by the kind of peak."""
    whose = "TensorFlow's allocator on the GPU"
    if kind == "process":
        whose = "the process, Python and TensorFlow included"
    return f"{format_bytes(peak_bytes)} at most ({whose})"


def energy_words(summary: Summary) -> str:
    """Write power and energy; empty where no card told of them."""
    parts = []
    if summary.utilisation_ratio is not None:
        parts.append(f"GPU busy {summary.utilisation_ratio:.0%} of the time")
    if summary.power_w is not None:
        parts.append(f"{significant(summary.power_w)} W")
    if summary.energy_j_per_step is not None:
        parts.append(f"{significant(summary.energy_j_per_step)} J a step")
    return ", ".join(parts)


def metric_words(run: BenchRun) -> str:
    """Write ``accuracy 0.912, loss 0.31`` at the end of a run's last epoch."""
    return ", ".join(f"{name} {significant(value)}" for name, value in run.metrics.items())
