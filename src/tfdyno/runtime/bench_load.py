"""A workload with its real weights and data, run up to the call that is measured in place."""

from __future__ import annotations

import contextlib
import inspect
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.errors import TfdynoError, UsageError
from tfdyno.runtime.bench_failure import measured_code
from tfdyno.runtime.bench_fit import Call, Outcome, Plan, measure_fit, measure_predict
from tfdyno.runtime.bench_loop import LoopBench, LoopDone, watched
from tfdyno.runtime.dataspec import DEFAULT_BATCH
from tfdyno.runtime.failure import Declined, first_line
from tfdyno.runtime.standins import stand_in
from tfdyno.runtime.workloads import application, default_compile, model_and_data, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.workload import Workload


class _Reached(BaseException):
    """Leaves the script after the measurement; no ``except Exception`` of the user stops it."""


class Held:
    """Calls that are not the measured one: counted, answered with zeros, and named."""

    def __init__(self) -> None:
        """Nothing was called yet."""
        self.calls = 0
        self.names: list[str] = []
        self.outcome: Outcome | None = None
        self.error: TfdynoError | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the script called that was left out, as a sentence."""
        names = ", ".join(dict.fromkeys(self.names))
        return (f"Left out of the script: {names}.",) if names else ()


def run_workload(plan: Plan, task: str, loop: LoopBench) -> Outcome:
    """Load the workload of a plan and measure it.

    Args:
        plan: What is measured and how.
        task: Name of a standard task; empty: the workload is the user's own.
        loop: Takes over where the script trains by a loop of its own.

    Raises:
        UsageError: The workload or its data is wrong, or the user's code fails.
        ToolError: There is not enough memory.
    """
    if task:
        return _measured(_standard_task(task, plan), plan)
    synthetic = plan.protocol.data.startswith("synthetic")
    used = stand_in() if synthetic else []
    if plan.protocol.data == "real":
        what = "--data real is for standard tasks"
        raise UsageError(what, remedy="use own, or a task such as task:resnet18-cifar10")
    with _told_what_is_missing(synthetic):
        if plan.workload.kind == "script":
            outcome = _script(plan, loop)
        elif plan.workload.kind == "step_function":
            outcome = _step_function(plan, loop)
        else:
            outcome = _measured(_built(plan.workload), plan)
    stood_in = tuple(f"Zeros stand for keras.datasets.{name}." for name in used)
    return replace(outcome, notes=(*outcome.notes, *stood_in))


@contextlib.contextmanager
def _told_what_is_missing(synthetic: bool) -> Iterator[None]:
    """Name the way out where the data of the script is not on this machine."""
    try:
        yield
    except UsageError as error:
        text = str(error)
        missing = "needs the file" in text or "URL fetch failure" in text
        if missing and not synthetic:
            remedy = "put the data there, or use --data synthetic"
            raise UsageError(error.what, why=error.why, remedy=remedy) from None
        raise


def _standard_task(name: str, plan: Plan) -> Call:
    from tfdyno.runtime.tasks import build, goal_images

    recipe, protocol, real = plan.recipe, plan.protocol, plan.protocol.data == "real"
    size = recipe.batch_size
    images = goal_images(name, size) if real and protocol.epochs else 0
    task = build(name, batch_size=size, real=real, seed=recipe.seed or 0, images=images)
    shown = f"{task.samples_per_epoch:,} images of {task.data_set}"
    return Call(
        model=task.model,
        title=name,
        arguments={"x": task.data, "validation_data": task.evaluation},
        notes=(f"Epochs are short: {shown}.",) if images else (),
        data_set=task.data_set,
        is_batched=True,
    )


def _built(workload: Workload) -> Call:
    """The model (and data) of everything that is not a script."""
    notes: tuple[str, ...] = ()
    arguments: dict[str, Any] = {}
    with measured_code(workload.reference, lambda: 0, lambda: 0):
        if workload.kind == "application":
            model, title, _ = application(workload)
        elif workload.kind == "keras_file":
            model, title = _keras_file(workload), Path(workload.reference).stem
        else:
            held = Held()
            with _held_calls(held):
                model, title, data = model_and_data(workload.reference)
            arguments, notes = _as_arguments(data), held.notes
    if workload.mode == "train" and not getattr(model, "compiled", False):
        notes += (default_compile(model, named=workload.kind != "application"),)
    return Call(model=model, title=title, arguments=arguments, notes=notes)


def _as_arguments(data: Any) -> dict[str, Any]:  # noqa: ANN401
    if data is None:
        return {}
    if isinstance(data, tuple):
        return dict(zip(("x", "y", "sample_weight"), data, strict=False))
    return {"x": data}


def _keras_file(workload: Workload) -> Any:  # noqa: ANN401
    """The model with its weights; loading by configuration alone first tells what is wrong."""
    import keras

    from tfdyno.runtime.kerasfile import load_config

    path = Path(workload.reference)
    load_config(path, allow_unsafe=workload.allow_unsafe)
    try:
        return keras.saving.load_model(path, safe_mode=not workload.allow_unsafe)
    except Exception as error:
        raise Declined(f"{path} cannot be loaded", why=first_line(error)) from None


def _measured(call: Call, plan: Plan) -> Outcome:
    """Measure a call in place; errors come as sentences."""
    plan.progress("first step (compiling)")
    size = plan.recipe.batch_size or int(call.arguments.get("batch_size") or 0)
    with measured_code(plan.workload.reference, lambda: plan.clock.step_count, lambda: size):
        if plan.workload.mode == "infer":
            return measure_predict(call, plan)
        return measure_fit(call, plan)


def _script(plan: Plan, loop: LoopBench) -> Outcome:
    workload = plan.workload
    script = Path(workload.reference)
    held = Held()

    def reached(model: Any, bound: dict[str, Any]) -> None:  # noqa: ANN401
        loop.unwatch()
        title = title_of(model, script.stem)
        call = Call(model=model, title=title, arguments=bound, notes=held.notes)
        try:
            held.outcome = _measured(call, plan)
        except TfdynoError as error:
            held.error = error
        raise _Reached

    sys.argv = [str(script), *workload.script_arguments]
    sys.path.insert(0, str(script.resolve().parent))
    with (
        measured_code(str(script), lambda: plan.clock.step_count, lambda: _batch(loop)),
        contextlib.suppress(_Reached, LoopDone),
        _held_calls(held, workload, reached, loop),
        watched(loop),
    ):
        _run(script, lambda: bool(held.outcome or held.error or loop.outcome))
    if held.error:
        raise held.error
    if held.outcome:
        return held.outcome
    if loop.outcome or loop.error:
        return loop.finish()
    name = "predict" if workload.mode == "infer" else "fit"
    found = f"it calls {name} {held.calls} times" if held.calls else f"it ended without {name}"
    remedy = "name the function that builds the model: file.py:function"
    raise UsageError(
        f"{script} has no call {workload.fit_number} of {name}", why=found, remedy=remedy
    )


def _run(script: Path, is_found: Callable[[], bool]) -> None:
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit:
        if not is_found():
            raise  # else it is only the end of the script


def _batch(loop: LoopBench) -> int:
    return loop.outcome.spec.batch_size if loop.outcome else 0


@contextlib.contextmanager
def _held_calls(
    held: Held,
    workload: Workload | None = None,
    reached: Callable[[Any, dict[str, Any]], None] | None = None,
    loop: LoopBench | None = None,
) -> Iterator[None]:
    """Replace what trains, evaluates and saves; the call that counts is handed to ``reached``.

    Keras' own methods stand again while that one is measured.
    """
    import keras

    kind = keras.Model
    names = ("fit", "train_on_batch", "predict", "evaluate", "save", "save_weights", "export")
    originals = {name: getattr(kind, name) for name in names}
    signatures = {name: inspect.signature(original) for name, original in originals.items()}
    counted = "predict" if workload and workload.mode == "infer" else "fit"
    number = workload.fit_number if workload else 0

    def restore() -> None:
        for name, original in originals.items():
            setattr(kind, name, original)

    def replacement(name: str) -> Any:  # noqa: ANN401
        def call(self: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
            bound = dict(signatures[name].bind(self, *args, **options).arguments)
            if name == "train_on_batch" and counted == "fit" and loop and number == held.calls + 1:
                original = originals[name]
                return loop.batch_trained(self, lambda: original(self, *args, **options), bound)
            if name == counted or name == "train_on_batch":
                held.calls += 1
                if name == counted and held.calls == number and reached:
                    restore()
                    reached(self, _named(bound))
            if name == "predict" and counted == "fit":
                return originals[name](self, *args, **options)
            held.names.append(name)
            return _answer(name, self, bound)

        return call

    for name in names:
        setattr(kind, name, replacement(name))
    try:
        yield
    finally:
        restore()


def _named(bound: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in bound.items() if name != "self"}


def _answer(name: str, model: Any, bound: dict[str, Any]) -> Any:  # noqa: ANN401
    from tfdyno.runtime import capture

    if name == "fit":
        return capture.History(bound)
    if name == "evaluate":
        return capture.evaluated(model, **_named(bound))
    return [0.0, 0.0] if name == "train_on_batch" else None


def _step_function(plan: Plan, loop: LoopBench) -> Outcome:
    """Call a step that the user names again and again with random tensors."""
    import tensorflow as tf

    from tfdyno.runtime.step_function import named_step

    reference = plan.workload.reference
    with (
        measured_code(reference, lambda: plan.clock.step_count, lambda: _batch(loop)),
        contextlib.suppress(LoopDone),
    ):
        step = named_step(plan.workload)
        tensors = [_random(spec) for spec in step.specs(plan.recipe.batch_size or DEFAULT_BATCH)]
        function = tf.function(step.function, jit_compile=step.jit, autograph=step.autograph)
        loop.take(function)
        plan.progress("first step (compiling)")
        with watched(loop):
            while True:
                function(*tensors)
    file, _, name = reference.partition(":")
    title = f"{Path(file).stem}:{name}"
    return replace(loop.finish(), title=title, notes=("A step by itself, on random tensors.",))


def _random(spec: Any) -> Any:  # noqa: ANN401
    """Floats from 0 to 1; 0 for everything else, which is valid as a label and in every table."""
    import tensorflow as tf

    return (
        tf.random.uniform(spec.shape, dtype=spec.dtype)
        if spec.dtype.is_floating
        else tf.zeros(spec.shape, spec.dtype)
    )
