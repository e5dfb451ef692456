"""Where a device's time goes in steps on a held batch: TensorFlow's own profiler, read."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.profile.operations import operation_facts
from tfdyno.profile.planes import read_planes
from tfdyno.runtime.base.reference_speed import synchronise

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.measure.step_facts import OperationFacts

FRESH_RUNS = 80
"""So often a graph tells all of its operations. TensorFlow leaves cheap ones out of its profile: it
takes each for 1e8 cycles at first, brings that down by a tenth with each run that takes less, and
calls one cheap below 8,000, which is after 90 runs (``core/common_runtime/executor.cc``). Measured:
147 operations of a small step in its first runs, 8 after 300."""


def profiled(
    run_steps: Callable[[int], Any], steps: int, float64_names: frozenset[str] = frozenset()
) -> OperationFacts | None:
    """Run steps under the profiler.

    Args:
        run_steps: Runs so many steps; it is called with 1, once for each.
        steps: How many, at least 1. They must be warm: what is traced or compiled would count.
        float64_names: Operations of the step's graphs that give 64-bit floats.

    Returns:
        None where there can be no profile: another one is being made, or nothing was written.

    Raises:
        ValueError: ``steps`` is below 1.
        Exception: What a step raises.
    """
    if steps < 1:
        raise ValueError(f"need at least one step, got {steps}")
    with tempfile.TemporaryDirectory(prefix="tfdyno-profile-") as name:
        options = tf.profiler.experimental.ProfilerOptions(
            host_tracer_level=2, python_tracer_level=0, device_tracer_level=1
        )
        try:
            tf.profiler.experimental.start(name, options)
        except tf.errors.OpError:
            return None
        try:
            for number in range(steps):
                with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
                    run_steps(1)
            synchronise()
        finally:
            with contextlib.suppress(tf.errors.OpError):  # then it wrote nothing
                tf.profiler.experimental.stop()
        files = [file.read_bytes() for file in Path(name).rglob("*.xplane.pb")]
    return operation_facts(read_planes(files[0]), steps, float64_names) if files else None
