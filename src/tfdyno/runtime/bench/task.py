"""What was measured, in the words of ``BenchTask``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.core.measure.measurement import BenchTask
from tfdyno.runtime.bench.fit import on_jax
from tfdyno.runtime.trace.child import describe
from tfdyno.runtime.workload.dataspec import leaves
from tfdyno.runtime.workload.workloads import Subject

if TYPE_CHECKING:
    from tfdyno.runtime.bench.fit import Outcome, Plan
    from tfdyno.runtime.bench.loop import LoopBench


def task_of(outcome: Outcome, plan: Plan, loop: LoopBench, notes: tuple[str, ...]) -> BenchTask:
    """Return the task of a run, after its steps: all variables exist then."""
    about = _about(outcome, loop)
    return BenchTask(
        reference=plan.workload.reference,
        title=outcome.title,
        mode=plan.workload.mode,
        backend="jax" if on_jax() else "tensorflow",
        inputs=tuple(_text(leaf.dtype, leaf.shape) for leaf in leaves(outcome.spec.x)),
        batch_size=outcome.batch_size,
        replica_count=outcome.replica_count,
        samples_per_epoch=outcome.spec.samples_per_epoch,
        is_loop=loop.is_found,
        has_pipeline=outcome.has_pipeline,
        data_set=outcome.data_set,
        notes=tuple(dict.fromkeys(notes)),
        **about,
    )


def loss_of(outcome: Outcome) -> float:
    """Return the mean loss of the steps so far; 0.0 where the model keeps none."""
    tracker = getattr(outcome.model, "_loss_tracker", None)
    try:
        return float(tracker.result()) if tracker else 0.0
    except (TypeError, ValueError, RuntimeError):  # distributed, or never updated
        return 0.0


def _about(outcome: Outcome, loop: LoopBench) -> dict[str, Any]:
    model = outcome.model
    if model is None:
        import keras

        return {
            "parameter_count": loop.parameter_count,
            "policy": keras.config.dtype_policy().name,
            "execution": loop.execution,
        }
    subject = Subject(model=model, title=outcome.title, data=outcome.spec, seconds_s=0.0)
    said = describe(subject)
    compiled = bool(getattr(model, "jit_compile", False)) and not model.run_eagerly
    return {
        "parameter_count": said["parameter_count"],
        "policy": said["policy"],
        "loss": said["loss"],
        "optimizer": said["optimizer"],
        "execution": "eager" if model.run_eagerly else "xla" if compiled else "graph",
    }


def _text(dtype: str, shape: tuple[int | None, ...]) -> str:
    """Write ``float32[224,224,3]``, the batch left out; ? for a size that differs."""
    return f"{dtype}[{','.join('?' if size is None else str(size) for size in shape)}]"
