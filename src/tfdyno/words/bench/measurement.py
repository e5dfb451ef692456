"""A measurement in words: times as precise as they were measured, places, settings."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, significant
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.words.base.amounts import listed, plural, step_unit
from tfdyno.words.base.language import say, say_later

if TYPE_CHECKING:
    from tfdyno.core.measure.measurement import (
        BenchRun,
        BenchTask,
        Environment,
        Measurement,
        Summary,
    )
    from tfdyno.core.measure.software import Backend

BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX"}
"""Names of Keras' backends."""
_IMAGE = re.compile(r"\w+\[[^,\]]+,[^,\]]+,[134]\]")
_DATA = {
    "own": say_later("the workload's own data"),
    "synthetic": say_later("one made-up batch again and again through tf.data"),
    "synthetic-device": say_later("one made-up batch held on the device"),
    "real": say_later("real data"),
}
_EXECUTIONS = {
    "xla": say_later("compiled by XLA"),
    "graph": say_later("graph without XLA"),
    "eager": "eager",
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
    return f"{significant(per_s)} {say(unit_of(task))}/s"


def unit_of(task: BenchTask) -> str:
    """Name the batch's samples: images, else samples; steps where the batch is unknown."""
    if not task.batch_size:
        return say_later("steps")
    is_image = task.inputs and _IMAGE.fullmatch(task.inputs[0])
    return say_later("images") if is_image else say_later("samples")


def batch_words(task: BenchTask) -> str:
    """Write ``batch 128``."""
    if not task.batch_size:
        return say("an unknown batch")
    return say("batch {batch:,}", batch=task.batch_size)


def device_words(environment: Environment) -> str:
    """Write ``NVIDIA H100 80GB HBM3``, ``2 x NVIDIA L4``, ``2 CPUs (AMD EPYC 7B13)``."""
    if environment.device == "cpu" or not environment.cards:
        return _cpu_words(environment)
    names = [card.name for card in environment.cards]
    counts = {name: names.count(name) for name in names}
    return listed([
        name if n == 1 else say("{count} x {card}", count=n, card=name)
        for name, n in counts.items()
    ])  # fmt: skip


def _cpu_words(environment: Environment) -> str:
    count = plural(environment.cpu_count, "CPU")
    return say("{count} ({cpu})", count=count, cpu=environment.cpu)


def environment_words(environment: Environment) -> str:
    """Return versions and machine in one sentence; what is unknown is left out."""
    named = [
        (say("driver"), environment.driver),
        ("CUDA", environment.cuda), ("cuDNN", environment.cudnn),
        ("JAX", environment.jax), ("TensorFlow", environment.tensorflow),
        ("Keras", environment.keras),
        ("Python", environment.python), ("tfdyno", environment.tfdyno),
    ]  # fmt: skip
    on_card = environment.device == "gpu"
    versions = [
        f"{name} {version}"
        for name, version in named
        if version and (on_card or name not in {say("driver"), "CUDA", "cuDNN"})
    ]
    memory = say("{size} of memory", size=format_bytes(environment.memory_bytes))
    container = environment.container_image or environment.container
    return say(
        "{versions}; {system} on {host}{inside}; {machine}",
        versions=say(", ").join(versions),
        system=environment.system,
        host=environment.host,
        inside=say(", in {container}", container=container) if container else "",
        machine=say(", ").join([*([_cpu_words(environment)] if on_card else []), memory]),
    )


def recipe_words(recipe: Recipe) -> str:
    """Write settings other than the script's: ``precision=mixed_float16``; empty: none."""
    return ", ".join(f"{name}={given}" for name, (_, given) in diff(Recipe(), recipe).items())


def task_words(one: Measurement) -> str:
    """Return what was run, in one sentence."""
    return say(", ||clauses").join(task_parts(one))


def task_parts(one: Measurement) -> list[str]:
    """List what was run: mode and precision, how it was executed, the model, its data."""
    task = one.task
    return [
        say(
            "training in {policy}" if task.mode == "train" else "inference in {policy}",
            policy=task.policy,
        ),
        *([say("Keras on JAX")] if task.backend == "jax" else []),
        say(_EXECUTIONS[task.execution]),
        say("{count} parameters", count=significant(task.parameter_count)),
        *([say("inputs {inputs}", inputs=" ".join(task.inputs))] if task.inputs else []),
        *([say("{count} replicas", count=task.replica_count)] if task.replica_count > 1 else []),
        task.data_set or say(_DATA[one.protocol.data]),
    ]


def peak_words(peak_bytes: float, kind: str, backend: Backend = "tensorflow") -> str:
    """Write ``3.1 GiB at most (TensorFlow's allocator on the GPU)``, by the kind of peak."""
    return say(
        "{size} at most (the process, Python and TensorFlow included)"
        if kind == "process"
        else "{size} at most (JAX's allocator on the GPU, compiling included)"
        if backend == "jax"
        else "{size} at most (TensorFlow's allocator on the GPU)",
        size=format_bytes(peak_bytes),
    )


def energy_words(summary: Summary) -> str:
    """Write power and energy; empty where no card told of them."""
    parts = []
    if summary.utilisation_ratio is not None:
        parts.append(say("GPU busy {share:.0%} of the time", share=summary.utilisation_ratio))
    if summary.power_w is not None:
        parts.append(f"{significant(summary.power_w)} W")
    if summary.energy_j_per_step is not None:
        energy = significant(summary.energy_j_per_step)
        parts.append(say("{energy} J a step", energy=energy))
    return say(", ").join(parts)


def metric_words(run: BenchRun) -> str:
    """Write ``accuracy 0.912, loss 0.31`` at the end of a run's last epoch."""
    return ", ".join(f"{name} {significant(value)}" for name, value in run.metrics.items())
