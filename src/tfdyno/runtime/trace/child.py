"""Child process: one workload as StableHLO with its table of tensors, and as quick programs."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, failure_of
from tfdyno.core.choose.workload import Trace, Workload
from tfdyno.core.messages.trace import TRACE, StepTraced
from tfdyno.process import child
from tfdyno.process.environment import files_used, versions
from tfdyno.process.failure import Declined, first_line, place, user_code
from tfdyno.process.reads import noted_reads
from tfdyno.runtime.base.keras2 import reason_against_jax
from tfdyno.runtime.trace.marker import marker_batch, marker_of
from tfdyno.runtime.trace.recurrent import cudnn_layers, keeps_xla_off, recurrent_notes
from tfdyno.runtime.workload.batch import Batch, baked_batch, batches, dimensions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from tfdyno.core.base.untyped import Model, Value, Variable
    from tfdyno.core.choose.program import Lowering
    from tfdyno.core.messages.trace import TraceStep

BEGAN = time.perf_counter()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A lowered step and the batch it was lowered at."""

    lowered: Any
    again: Callable[[], Any]
    """Lowers it once more."""
    batch_size: int
    marker: int
    notes: tuple[str, ...]
    fusable: bool
    """Whether some cards fuse attention in it."""


def handle(request: TraceStep, progress: child.Progress) -> StepTraced:
    """Trace by the path that is asked for."""
    try:
        with noted_reads() as reads:
            traced = _by_path(request, progress)
    except Declined as error:
        return StepTraced(trace=failure_of(error))
    variables = tuple(sorted(reads.variables))
    return dataclasses.replace(traced, read=reads.paths(), variables=variables)


def _by_path(request: TraceStep, progress: child.Progress) -> StepTraced:
    if request.path == "tensorflow":
        from tfdyno.runtime.trace.step_tensorflow import trace_tensorflow

        return trace_tensorflow(request, progress)
    return trace_jax(request, progress)


def trace_jax(request: TraceStep, progress: child.Progress) -> StepTraced:
    """Trace a workload on the JAX backend without memory for its weights.

    Raises:
        UsageError: The request or the user's code is wrong whatever the path.
        Declined: The model cannot be traced on this backend.
    """
    workload = request.workload
    if reason := reason_against_jax(workload.reference):
        raise Declined(reason)
    progress("importing Keras")
    with _no_sklearn(workload):
        import keras  # noqa: F401
    from tfdyno.runtime.workload.weightless import weightless
    from tfdyno.runtime.workload.workloads import load

    with weightless():
        progress(building(request))
        subject = load(workload)
        progress(f"tracing {subject.title}")
        step = _lowered(subject, workload, request.batch_size, request.lowering)
        unfused = _also_fused(step, request)
    code = step.lowered.bytecode
    request.stablehlo.write_bytes(code)
    trace = Trace(
        workload=workload,
        batch_size=step.batch_size,
        marker=step.marker,
        path="jax",
        path_reason=request.path_reason,
        tensors=step.lowered.tensors,
        stablehlo_sha256=hashlib.sha256(code).hexdigest(),
        seconds_s=time.perf_counter() - BEGAN,
        versions=versions(),
        **describe(subject, step.notes + unfused),
    )
    programs = None
    if request.count:
        from tfdyno.runtime.trace.quick import programs_of

        progress("counting its operations")
        folder = request.stablehlo.parent
        programs = programs_of(step.lowered.module, trace, request.lowering, folder)
    return StepTraced(trace=trace, files=files_used(workload.reference), programs=programs)


def _also_fused(step: _Step, request: TraceStep) -> tuple[str, ...]:
    """Write the step as cards with cuDNN's attention have it; return a note where that fails."""
    if not step.fusable:
        return ()
    from tfdyno.runtime.trace.fused_attention import lower_fused

    try:
        lower_fused(step.again, request.stablehlo.parent)
    except Exception as error:  # the user's layers may do anything with what they are given
        why = f"{type(error).__name__}: {first_line(error)}"
        return (f"How cuDNN would compute its attention is not known ({why}): all scores count.",)
    return ()


@contextlib.contextmanager
def _no_sklearn(workload: Workload) -> Iterator[None]:
    """Let Keras find no scikit-learn, whose import takes as long as the rest of Keras' own.

    Keras needs it for ``keras.wrappers`` alone, which only the user's code can name.
    """
    if workload.kind not in ("application", "task", "preset") or "sklearn" in sys.modules:
        yield
        return
    hidden: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]
    hidden["sklearn"] = None
    try:
        yield
    finally:
        del hidden["sklearn"]


def building(request: TraceStep) -> str:
    """Return the stage in which the user's code runs, with the limit that it has."""
    workload = request.workload
    if workload.kind != "script":
        return f"building {workload.reference}"
    return f"running {workload.reference} up to its fit, {request.limit_s:.0f} s at most"


def describe(subject: Model, notes: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return what a trace says about the model itself, as fields of ``Trace``."""
    model, data = subject.model, subject.data
    optimizer = getattr(model, "optimizer", None)
    return {
        "title": subject.title,
        "script_batch_size": data.batch_size if data else baked_batch(model),
        "policy": model.dtype_policy.name,
        "loss": _name_of(getattr(model, "loss", None)),
        "optimizer": _name_of(getattr(optimizer, "inner_optimizer", optimizer)),
        "execution": "xla" if _compiles(model) and not subject.strategy else "graph",
        "parameter_count": _size(model.weights),
        "trainable_parameter_count": _size(model.trainable_weights),
        "script_seconds_s": subject.seconds_s,
        "samples_per_epoch": data.samples_per_epoch if data else 0,
        "epochs": data.epochs if data else 0,
        "validation": data.validation if data else None,
        "savings": data.savings if data else (),
        "warnings": subject.warnings + notes + recurrent_notes(model),
        "cudnn_layers": cudnn_layers(model),
    }


def _compiles(model: Model) -> bool:
    compiles = bool(getattr(model, "jit_compile", False)) and not model.run_eagerly
    return compiles and not keeps_xla_off(model)


def _lowered(
    subject: Model,
    workload: Workload,
    asked: int | None,
    lowering: Lowering,
) -> _Step:
    """Return the first batch and size that works: the marker's, then the script's own."""
    from tfdyno.runtime.trace.fused_attention import WITHOUT, attention_on
    from tfdyno.runtime.trace.step_jax import lower_step

    model, reasons = subject.model, []
    own = subject.data.batch_size if subject.data else 0
    with user_code(subject.title):
        tries = batches(subject, workload)
    on_card = partial(attention_on, WITHOUT) if lowering == "jax" else contextlib.nullcontext
    for batch in tries:
        for size, marker, notes in sizes(model, batch, asked, own):
            again = partial(
                lower_step,
                model,
                batch,
                batch_size=size,
                mode=workload.mode,
                remat=workload.remat,
                lowering=lowering,
            )
            try:
                with on_card() as seen:
                    lowered = again()
                return _Step(
                    lowered=lowered,
                    again=again,
                    batch_size=size,
                    marker=marker,
                    notes=batch.notes + notes,
                    fusable=bool(seen and seen.possible),
                )
            except TfdynoError:
                raise
            except Exception as failure:
                reasons.append(failure)
    why = (place(reasons[0]), type(reasons[0]).__name__, first_line(reasons[0]))
    what = f"{subject.title} cannot be traced on the JAX backend"
    raise Declined(what, why=": ".join(filter(None, why)))


def sizes(
    model: Model,
    batch: Batch,
    asked: int | None,
    own: int,
) -> list[tuple[int, int, tuple[str, ...]]]:
    """Return (batch size, marker, notes) to try for a batch."""
    known, baked = dimensions(model, batch), baked_batch(model)
    if baked:
        note = () if asked in (None, baked) else (f"The batch size {baked} is part of the model.",)
        return [(baked, 0, note)]
    if asked:
        return [(asked, marker_of(asked, known), ())]
    note = (f"The model works only at its own batch size of {own}.",)
    return [(*marker_batch(known), ()), *([(own, 0, note)] if own else [])]


def _name_of(part: Value) -> str:
    if part is None:
        return ""
    if isinstance(part, dict):
        part = list(part.values())
    if isinstance(part, tuple | list):
        return ", ".join(dict.fromkeys(map(_name_of, part)))
    return str(getattr(part, "name", None) or getattr(part, "__name__", None) or part)


def _size(variables: Variable) -> int:
    import math

    return sum(math.prod(variable.shape) for variable in variables)


if __name__ == "__main__":
    child.leave(child.serve(handle, TRACE))
