"""TensorFlow's graph, TensorFlow with XLA and JAX side by side: three answers of two traces."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.backends import BackendsAnswer, BackendsOnCard, BackendStep
from tfdyno.core.choose.hardware import CPU_VENDOR, Gpu
from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose.exact import add_cached
from tfdyno.jobs.choose.predict import StepSettings, check_batch, check_vendor, predictor_for
from tfdyno.model.choose.backend_speed import fastest, speed_of
from tfdyno.rules.jax.project import cause_of, first_stop
from tfdyno.words.base.language import spoken
from tfdyno.words.memory.basis import typed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    from tfdyno.jobs.choose.predict import Predictor

JAX = "jax"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendsRequest:
    """What is asked of every card."""

    workload: Workload
    gpus: tuple[Gpu, ...]
    batch_size: int = 0
    """0: the script's own, else Keras' default."""
    precision: str = ""
    fresh: bool = False
    card_files: bool = True
    """Whether the user's sweeps of cards count."""


def check(request: BackendsRequest) -> None:
    """Refuse a question that has no answer, before any work; raises ``UsageError``."""
    check_batch(request.batch_size)
    check_vendor(request.gpus)
    if any(gpu.vendor == CPU_VENDOR for gpu in request.gpus):
        what = "--backends is not for cpu"
        raise UsageError(what, why="JAX is not estimated on processors",
                         remedy="measure it: tfdyno bench … --against backend=jax")  # fmt: skip


def compare_backends(
    request: BackendsRequest, *, progress: Callable[[str], None] = silent
) -> BackendsAnswer:
    """Estimate the step in every way, on every card.

    Args:
        request: Workload, cards and settings.
        progress: Called with a line at every stage.

    Raises:
        UsageError: A setting is wrong, or the workload cannot be traced.
        ToolError: A child process failed.
    """
    check(request)
    tensorflow = _predictor(request, request.workload, progress)
    stop = _stop(request.workload, tensorflow)
    on_jax = None
    if not stop.obstacle:
        named = replace(request.workload, software=JAX)
        on_jax = _predictor(request, named, progress, batch_size=tensorflow.batch_size)
    cards = tuple(_card(gpu, tensorflow, on_jax, stop) for gpu in request.gpus)
    trace = tensorflow.traced.trace
    return BackendsAnswer(
        title=trace.title,
        batch_size=tensorflow.batch_size,
        batch_source=tensorflow.batch_source,
        trace=trace,
        cards=cards,
        command="" if stop.obstacle else bench_command(request, cards[0], trace.execution),
        notes=_notes(tensorflow, on_jax, cards),
    )


def bench_command(request: BackendsRequest, card: BackendsOnCard, execution: str) -> str:
    """Write the command that measures JAX against the faster way of TensorFlow in turns.

    Args:
        request: What was asked.
        card: Where it is measured.
        execution: What Keras on TensorFlow does by itself.

    Returns:
        Empty for a preset, which brings no weights and no data to measure.
    """
    workload = request.workload
    if workload.kind == "preset" or card.baseline is None:
        return ""
    options = {
        "--mode": workload.mode if workload.mode == "infer" else "",
        "--batch-size": str(request.batch_size or ""),
        "--precision": request.precision,
        "--execution": card.baseline if card.baseline != execution else "",
        "--fit": str(workload.fit_number) if workload.fit_number != 1 else "",
        "--python": workload.python,
    }
    words = [word for name, value in options.items() if value for word in (name, value)]
    for shape in workload.input_shapes:
        words += ["--input-shape", ",".join(map(str, shape))]
    words += ["--unsafe"] if workload.allow_unsafe else []
    return typed("bench", workload, *words, "--against", "backend=jax")


def _predictor(
    request: BackendsRequest,
    workload: Workload,
    progress: Callable[[str], None],
    *,
    batch_size: int = 0,
) -> Predictor:
    found = predictor_for(
        workload,
        StepSettings(precision=request.precision),
        batch_size=request.batch_size or batch_size,
        fresh=request.fresh,
        card_files=request.card_files,
        progress=progress,
    )
    return add_cached(found, request.gpus)


def _stop(workload: Workload, predictor: Predictor) -> BackendStep:
    """Return the way on JAX with what stands against it, if anything does."""
    step = BackendStep(backend="jax", execution="xla")
    path = Path(workload.reference.partition(":")[0])
    if first := first_stop(path):
        why = cause_of(first.cause).why
        told = why.zh if spoken() == "zh" else why.en
        return replace(step, obstacle="script", names=first.name, file=str(path),
                       line=first.line, why=told.rstrip(".。"))  # fmt: skip
    if workload.kind == "step_function":
        return replace(step, obstacle="step", names=workload.reference)
    trace = predictor.traced.trace
    if trace.path == "tensorflow":
        return replace(step, obstacle="untraced", names=trace.path_reason.rstrip("."))
    return step


def _card(
    gpu: Gpu, tensorflow: Predictor, on_jax: Predictor | None, stop: BackendStep
) -> BackendsOnCard:
    ways = [_on_tensorflow(gpu, tensorflow, "graph"), _on_tensorflow(gpu, tensorflow, "xla")]
    jax = replace(stop, estimate=on_jax.estimate(gpu)) if on_jax else stop
    known = [one for one in ways if one.estimate]
    times = [one.estimate.step_s for one in known if one.estimate]
    found = BackendsOnCard(
        gpu=gpu.slug,
        gpu_name=gpu.name,
        steps=(*ways, jax),
        verdict="unknown",
        baseline=known[fastest(times)].execution if times else None,
    )
    if jax.estimate is None or not times:
        return found
    verdict, ratio = speed_of(jax.estimate.step_s, times)
    return replace(found, verdict=verdict, speed_ratio=ratio)


def _on_tensorflow(
    gpu: Gpu, predictor: Predictor, execution: Literal["graph", "xla"]
) -> BackendStep:
    step = BackendStep(backend="tensorflow", execution=execution)
    if execution == "xla":
        outside = predictor.traced.trace.outside_xla
        if outside:
            return replace(step, obstacle="outside_xla", names=", ".join(outside))
        if predictor.xla_fails(gpu):
            return replace(step, obstacle="wheel", names=gpu.compute_capability)
    return replace(step, estimate=replace(predictor, execution=execution).estimate(gpu))


def _notes(
    tensorflow: Predictor, on_jax: Predictor | None, cards: Sequence[BackendsOnCard]
) -> tuple[str, ...]:
    """Return warnings of the model and of estimates, each once."""
    notes = [*tensorflow.traced.trace.warnings]
    for predictor in filter(None, (tensorflow, on_jax)):
        notes += [predictor.traced.software.note] if predictor.traced.software.note else []
    for step in (step for card in cards for step in card.steps):
        if step.estimate:
            notes += step.estimate.warnings
    return tuple(dict.fromkeys(notes))
