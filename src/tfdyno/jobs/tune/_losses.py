"""Whether two recipes of a tuning learn the same, and where that cannot be asked."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.jobs.diagnose.same_losses import SameLosses

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.measure.fix_proof import Agreement
    from tfdyno.core.measure.measurement import BenchTask
    from tfdyno.core.measure.software import Backend
    from tfdyno.core.messages.tune import Pair

NO_DATA = "brings no data"
"""What the children say of a model alone."""
NO_ROOM = "the start does not fit, so that there is nothing to compare with"


def compare_here(pair: Pair, progress: Callable[[str], None]) -> Agreement:
    """Train a few steps under both on this machine; raises as ``SameLosses.of``."""
    with tempfile.TemporaryDirectory(prefix="tfdyno-") as folder:
        losses = SameLosses(
            pair.workload, folder=Path(folder), batch_size=pair.batch_size,
            steps_per_epoch=pair.steps_per_epoch, is_loop=pair.is_loop, backend=pair.backend,
        )  # fmt: skip
        return losses.of(pair.before, pair.after, progress)


def why_uncompared(
    workload: Workload, task: BenchTask | None = None, backend: Backend = "tensorflow"
) -> str:
    """Return why a workload has no losses that could be compared; empty: it has.

    Args:
        workload: What is tuned.
        task: What the runs of the start found; None: it did not run.
        backend: Of Keras.
    """
    if workload.kind == "task" and backend == "jax":
        return f"{workload.reference} trains on TensorFlow alone"
    if workload.kind in ("application", "keras_file"):
        return f"{workload.reference} {NO_DATA}"
    if workload.kind == "step_function":
        return f"{workload.reference} is a single step, which nothing is trained with"
    if task and any(NO_DATA in note for note in task.notes):
        return f"{workload.reference} {NO_DATA}"
    return ""
