"""One step of a workload by TensorFlow: any model, ``tf.*`` operations and own loops included.

Runs in the user's own environment and needs only TensorFlow, Keras and the standard library: the
step leaves as HLO, which ``runtime.trace.bridge`` reads in tfdyno's environment.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.choose.workload import TensorRole, Trace
from tfdyno.core.messages.trace import StepTraced
from tfdyno.process.environment import files_used, versions
from tfdyno.process.failure import Declined, first_line, place, user_code
from tfdyno.runtime.base.keras_internals import all_layers, made_seed_generator
from tfdyno.runtime.trace.marker import marker_batch, marker_of
from tfdyno.runtime.trace.recurrent import keeps_xla_off
from tfdyno.runtime.workload.batch import Batch, batches
from tfdyno.runtime.workload.dataspec import mapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import Model, Structure, Tensor, Value
    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.messages.trace import TraceStep
    from tfdyno.process import child
    from tfdyno.runtime.workload.loop_step import LoopStep
    from tfdyno.runtime.workload.workloads import Subject

BEGAN = time.perf_counter()
ROLES: tuple[TensorRole, ...] = ("input", "target", "sample_weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """A step that TensorFlow lowered, with the batch it was lowered at."""

    exported: Any
    batch_size: int
    marker: int
    about: dict[str, Any]
    """The fields of ``Trace`` that say what the model is."""


def trace_tensorflow(request: TraceStep, progress: child.Progress) -> StepTraced:
    """Write one step as HLO; returns the trace but for the digest of its StableHLO.

    Raises:
        UsageError: The request or the user's code is wrong.
        Declined: TensorFlow cannot trace the model.
    """
    progress("importing TensorFlow")
    _check_tensorflow()
    from tfdyno.runtime.base.keras2 import adapt

    adapt(request.workload.reference)
    made = _made(request, progress)
    request.hlo.write_bytes(made.exported.hlo)
    parameters = {
        "parameter_count": made.exported.parameter_count,
        "trainable_parameter_count": made.exported.trainable_parameter_count,
    }
    trace = Trace(
        **(parameters | made.about),
        workload=request.workload,
        batch_size=made.batch_size,
        marker=made.marker,
        path="tensorflow",
        path_reason=request.path_reason,
        tensors=made.exported.tensors,
        stablehlo_sha256="",
        seconds_s=time.perf_counter() - BEGAN,
        versions=versions(),
    )
    return StepTraced(trace=trace, files=files_used(request.workload.reference))


def _made(request: TraceStep, progress: child.Progress) -> _Made:
    from tfdyno.runtime.workload.capture_loop import LoopCaptured, LoopWatch, watching
    from tfdyno.runtime.workload.loop_step import loop_step

    workload = request.workload
    if workload.kind == "step_function":
        from tfdyno.runtime.workload.loop_step import named_step

        return _by_loop(workload, named_step(workload), request.batch_size)
    watch = LoopWatch()
    try:
        with watching(watch):
            return _by_keras(request, progress)
    except LoopCaptured as loop:
        progress("tracing the step of the loop")
        step = loop_step(loop.function, loop.arguments, loop.named)
        return _by_loop(workload, step, request.batch_size)
    except UsageError as error:
        raise _eager_loop(workload) if watch.eager_gradients else error from None


def _check_tensorflow() -> None:
    try:
        import tensorflow as tf
    except ImportError as error:
        raise UsageError(
            "this workload needs TensorFlow",
            why=first_line(error),
            remedy="pip install 'tfdyno[tf]', or name an interpreter that has it with --python",
        ) from None
    major, minor = (int(part) for part in tf.__version__.split(".")[:2])
    if (major, minor) < (2, 9):
        raise UsageError(f"TensorFlow {tf.__version__} is too old", remedy="use 2.9 or newer")


def _by_keras(request: TraceStep, progress: child.Progress) -> _Made:
    from tfdyno.runtime.trace.child import building, describe, sizes
    from tfdyno.runtime.workload.workloads import load

    workload = request.workload
    progress(building(request))
    subject = load(workload)
    progress(f"tracing {subject.title} with TensorFlow")
    asked = request.batch_size
    own = subject.data.batch_size if subject.data else 0
    with user_code(subject.title):
        found = batches(subject, workload)
    tries = [(batch, *size) for batch in found for size in sizes(subject.model, batch, asked, own)]

    def attempt(batch: Batch, size: int, marker: int, _of_jax: tuple[str, ...]) -> _Made:
        notes = list(batch.notes)
        with _recomputing(subject.model, workload.remat, batch, size, notes):
            exported = _export_keras(subject.model, batch, size, workload.mode)
        about = {**describe(subject, tuple(notes)), "execution": _execution(subject)}
        about |= _outside(exported, about)
        return _Made(exported=exported, batch_size=size, marker=marker, about=about)

    return _first_that_works(attempt, tries, subject.title)


def _outside(exported: Model, about: dict[str, Any]) -> dict[str, Any]:
    """Return what the trace says otherwise of a step with operations that XLA does not have."""
    if not exported.outside:
        return {}
    from tfdyno.runtime.trace.ctc_outside import outside_note

    names = sorted(exported.outside)
    return {
        "title": f"{about['title']} (without {', '.join(names)})",
        "execution": "graph",
        "outside_xla": tuple(names),
        "warnings": (*about["warnings"], outside_note(exported.outside)),
    }


def _execution(subject: Subject) -> str:
    """Return what Keras would do on a GPU: ``jit_compile="auto"`` means off only on this CPU."""
    model = subject.model
    if subject.strategy or keeps_xla_off(model):
        return "graph"
    if getattr(model, "jit_compile", False) is True:
        return "xla"
    arguments = getattr(getattr(model, "_compile_config", None), "config", {})
    asked = arguments.get("jit_compile", "auto")
    if asked in (True, False) or getattr(model, "run_eagerly", False):
        return "xla" if asked is True else "graph"
    supported = all(getattr(layer, "supports_jit", False) for layer in all_layers(model))
    return "xla" if supported else "graph"


def _first_that_works(
    attempt: Callable[..., _Made], tries: list[tuple[Any, ...]], title: str
) -> _Made:
    reasons: list[Exception] = []
    for arguments in tries:
        try:
            return attempt(*arguments)
        except Exception as error:
            reasons.append(error)
    first = reasons[0]
    if isinstance(first, UsageError):
        raise first from None
    if isinstance(first, TfdynoError):
        raise Declined(f"{title} cannot be traced", why=str(first)) from None
    why = f"{type(first).__name__}: {first_line(first)}"
    where = place(first)
    why = f"{where}: {why}" if where else why
    raise Declined(f"{title} cannot be traced by TensorFlow", why=why) from None


def _export_keras(model: Model, batch: Batch, size: int, mode: str) -> Value:
    from tfdyno.runtime.base.keras2 import is_keras2
    from tfdyno.runtime.trace.export_tensorflow import export, split_by_model

    parts = [_specs(part, size) for part in (batch.x, batch.y, batch.sample_weight)]
    given = [part for part in parts if part is not None]
    sort, autograph = split_by_model(model), is_keras2()
    if mode == "infer":

        def forward(x: Tensor) -> Value:
            return model(x, training=False)

        return export(forward, given[:1], ROLES[:1], sort, autograph=autograph)
    _build(model, given[0])

    def step(*data: Any) -> Value:
        alone = len(data) == 1 and not isinstance(data[0], tuple | list)  # as Keras packs it
        return model.train_step(data[0] if alone else data)

    return export(step, given, ROLES[: len(given)], sort, autograph=autograph)


@contextlib.contextmanager
def _recomputing(
    model: Model,
    wanted: str,
    batch: Batch,
    size: int,
    notes: list[str],
) -> Iterator[None]:
    """Let the model compute parts of itself again, as ``tfdyno train`` does, for one trace."""
    if not wanted:
        yield
        return
    from tfdyno.runtime.base.keras2 import is_keras2

    if is_keras2():
        raise UsageError(f"remat = {wanted} cannot be traced", why="the model is one of Keras 2")
    from tfdyno.runtime.remat.rewrite import apply_remat

    x = _specs(batch.x, size)
    _build(model, x)
    plan = apply_remat(model, wanted, batch_size=size, inputs=x)
    try:
        yield
    finally:
        plan.undo()
        notes += plan.notes  # a part that cannot be computed again says so when it is traced


def _build(model: Model, x: Tensor) -> None:
    """Make the weights and the optimizer's slots, where the model can be called by itself."""
    import tensorflow as tf

    with contextlib.suppress(ImportError):  # Keras 2 has none
        made_seed_generator()  # made by a trace that fails, it has no value for the next one
    if not model.built:
        # A model of several networks may have a train_step only: that makes its variables then.
        with contextlib.suppress(Exception):
            tf.function(model, autograph=False).get_concrete_function(x)
    optimizer = getattr(model, "optimizer", None)
    with contextlib.suppress(ValueError):  # Keras 2: the weights of such a model
        build = getattr(optimizer, "build", None)
        if build and model.trainable_variables:
            build(model.trainable_variables)


def _specs(structure: Structure, size: int) -> Value:
    import tensorflow as tf

    return mapped(structure, lambda leaf: tf.TensorSpec((size, *leaf.shape), leaf.dtype))


def _by_loop(workload: Workload, step: LoopStep, asked: int | None) -> _Made:
    """Export a hand-written step: first at the marker batch, else at the batch it came with."""
    from tfdyno.runtime.trace.export_tensorflow import export, split_by_name

    if changed := workload.remat or workload.optimizer:
        what = f"{changed} cannot be weighed for {workload.reference}"
        raise UsageError(what, why="a loop of your own does its step itself")
    sizes = step.dimensions()
    own = [(0, 0)] if step.batch_size else []
    tries = [(asked, marker_of(asked, sizes))] if asked else [marker_batch(sizes), *own]
    roles = [ROLES[min(number, 1)] for number in range(len(step.tensors))]
    about = {
        "title": f"{Path(workload.reference.partition(':')[0]).stem}:{step.name}",
        "script_batch_size": step.batch_size,
        "policy": _policy(),
        "loss": "",
        "optimizer": "",
        "execution": "xla" if step.jit else "graph",
        "script_seconds_s": time.perf_counter() - BEGAN,
        "samples_per_epoch": 0,
        "epochs": 0,
        "warnings": ("A loop of your own: the loss and the optimizer are inside the step.",),
    }

    def attempt(size: int, marker: int) -> _Made:
        specs = step.specs(size)
        exported = export(step.function, specs, roles, split_by_name, autograph=step.autograph)
        batch_size = size or step.batch_size
        fields = about | _outside(exported, about)
        return _Made(exported=exported, batch_size=batch_size, marker=marker, about=fields)

    return _first_that_works(attempt, tries, step.name)


def _policy() -> str:
    import keras

    read = getattr(keras.config, "dtype_policy", None) if hasattr(keras, "config") else None
    return str(read().name) if read else "float32"


def _eager_loop(workload: Workload) -> UsageError:
    return UsageError(
        f"{workload.reference} takes gradients outside a tf.function",
        why="a step that runs operation by operation has no program to read",
        remedy="decorate the step with @tf.function, or name it: file.py:train_step --input-spec",
    )
