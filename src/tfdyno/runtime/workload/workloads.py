"""From a reference to a compiled Keras model and the shapes of its data."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import importlib.util
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import OTHER_FITS, Workload
from tfdyno.process.failure import user_code
from tfdyno.runtime.base.keras2 import forced_policy, is_keras2
from tfdyno.runtime.base.keras_internals import ARCHITECTURES, auto_jit_as_on_a_gpu, policy_kept
from tfdyno.runtime.base.replaced import to_the_end
from tfdyno.runtime.workload import capture
from tfdyno.runtime.workload.dataspec import DataSpec, of_dataset, with_batch_size
from tfdyno.runtime.workload.presets import preset, preset_notes
from tfdyno.runtime.workload.standins import stand_in
from tfdyno.runtime.workload.strategy_free import note_strategies, strategy_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from tfdyno.core.base.untyped import Model, Value

IMAGENET = (224, 224, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A model that is ready to be traced."""

    model: Any
    title: str
    data: DataSpec | None
    """None: nothing is known but the model's own inputs."""
    seconds_s: float
    """Time that the user's code took."""
    strategy: str = ""
    """The strategy of ``tf.distribute`` under which the code trains; empty: none."""
    warnings: tuple[str, ...] = ()


def load(workload: Workload) -> Subject:
    """Build the model that a workload refers to, by running the user's code where there is any.

    Raises:
        UsageError: There is no such file, function or model, or the user's code fails.
        Declined: The user's code fails in a way that the other backend may not.
    """
    began = time.perf_counter()
    notes: list[str] = []
    _compile_as_on_a_gpu()
    used = stand_in()
    strategies = [] if _is_distributed_loop(workload) else note_strategies()
    with policy_held(workload.precision, notes):
        model, title, data = _LOADERS[workload.kind](workload)
        with user_code(title):
            data = data and with_batch_size(data)
        if workload.kind == "preset":
            notes += preset_notes(workload, data)
        if workload.mode == "train" and not getattr(model, "compiled", False):
            notes.append(default_compile(model, named=workload.kind != "application"))
        if workload.optimizer:
            notes.append(take_optimizer(model, workload.optimizer))
    notes += [f"keras.datasets.{name} was not loaded: zeros stand for it." for name in used]
    notes += [*map(strategy_note, strategies[:1]), *_training_notes(model), *_other_fits(workload)]
    return Subject(
        model=model,
        title=title,
        data=data,
        seconds_s=time.perf_counter() - began,
        strategy=next(iter(strategies), ""),
        warnings=tuple(notes),
    )


def _training_notes(model: Model) -> list[str]:
    """Return settings of training that the traced step does not hold, as sentences."""
    notes = []
    if getattr(model, "run_eagerly", False):
        notes.append("run_eagerly=True: Keras then runs operation by operation, slower than this.")
    optimizer = getattr(model, "optimizer", None)
    accumulated = getattr(optimizer, "gradient_accumulation_steps", None)
    if accumulated:
        notes.append(f"The optimizer updates every {accumulated} batches; a step is one batch.")
    return notes


def _other_fits(workload: Workload) -> list[str]:
    """Return a note where a script calls ``fit`` in several places, of which this is one."""
    if workload.kind != "script" or workload.mode != "train":
        return []
    lines = capture.fit_lines(Path(workload.reference))
    if len(lines) < 2:
        return []
    return [
        f"{OTHER_FITS}{len(lines)} places (lines {', '.join(map(str, lines))}); this "
        f"is call {workload.fit_number} alone, its length and its step; --fit names another, and "
        "advise --all-fits adds them up."
    ]


def _is_distributed_loop(workload: Workload) -> bool:
    """Return whether a script names ``GradientTape`` and ``run``: its loop needs the strategy."""
    if workload.kind != "script":
        return False
    return {"GradientTape", "run"} <= capture.names_in(Path(workload.reference))


def application(workload: Workload) -> tuple[Any, str, None]:
    """Return a model of ``keras.applications`` by its name, with random weights.

    Raises:
        UsageError: There is no such model.
    """
    import keras

    name = workload.reference.partition(":")[2]
    known = sorted(n for n in dir(keras.applications) if _is_architecture(n))
    if name not in known:
        near = _nearest(name, known)
        remedy = f"did you mean keras:{near}?" if near else "see keras.io/api/applications"
        raise UsageError(f"keras.applications has no model {name!r}", remedy=remedy)
    build = getattr(keras.applications, name)
    shape = workload.input_shapes[0] if workload.input_shapes else None
    with user_code(workload.reference):
        model = build(weights=None, input_shape=shape)
        if None in model.inputs[0].shape[1:]:
            model = build(weights=None, input_shape=IMAGENET)  # MobileNetV3 leaves it open
    return model, name, None


def _task(workload: Workload) -> tuple[Any, str, DataSpec]:
    from tfdyno.runtime.workload.tasks import model_and_spec

    name = workload.reference.partition(":")[2]
    model, spec = model_and_spec(name)
    return model, name, spec


def _is_architecture(name: str) -> bool:
    import keras

    member = getattr(keras.applications, name)
    return str(getattr(member, "__module__", "")).startswith(ARCHITECTURES)


def _function(workload: Workload) -> tuple[Any, str, DataSpec | None]:
    capture.hold_training(fit_number=0)
    model, title, data = model_and_data(workload.reference)
    return model, title, None if data is None else of_dataset(data)


def model_and_data(reference: str) -> tuple[Any, str, Any]:
    """Call ``file.py:function[:data]``: the model, its title, and the data or None.

    Raises:
        UsageError: There is no such function, or it returns no Keras model.
        Declined: The user's code fails.
    """
    import keras

    place, name, *data_name = reference.split(":")
    returned = called(f"{place}:{name}")
    model, data = returned if isinstance(returned, tuple) else (returned, None)
    if data_name:
        data = called(f"{place}:{data_name[0]}")
    if not isinstance(model, keras.Model):
        what = f"{reference} does not return a Keras model"
        remedy = "return a keras.Model, or (model, dataset)"
        raise UsageError(what, why=f"it returns a {type(model).__name__}", remedy=remedy)
    return model, title_of(model, name), data


def function_of(reference: str) -> Callable[..., Any]:
    """Find what ``file.py:function`` or ``package.module:function`` names, not called.

    Raises:
        UsageError: There is no such module or function.
        Declined: The module fails when it is imported.
    """
    place, name = reference.split(":")[:2]
    with user_code(place):
        module = _imported(place)
    function = getattr(module, name, None)
    if callable(function):
        return cast("Callable[..., Any]", function)
    known = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
    near = _nearest(name, known)
    remedy = f"did you mean {near}?" if near else "name a function that returns a model"
    raise UsageError(f"{place} has no function {name!r}", remedy=remedy)


def _imported(place: str) -> ModuleType:
    if not place.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(place)
    path = Path(place).resolve()
    sys.path.insert(0, str(path.parent))
    loaded = sys.modules.get(path.stem)
    if loaded and getattr(loaded, "__file__", None) == str(path):
        return loaded
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def called(reference: str) -> Value:
    """Return what the function that ``reference`` names returns; raises as ``function_of`` does."""
    function = function_of(reference)
    with user_code(reference):
        return function()


def _keras_file(workload: Workload) -> tuple[Any, str, None]:
    from tfdyno.runtime.workload.kerasfile import load_config

    path = Path(workload.reference)
    model = load_config(path, allow_unsafe=workload.allow_unsafe)
    if model.compiled and not model.jit_compile and not model.run_eagerly:
        # Saved where there was no GPU, "auto" stands in the file as off.
        model.jit_compile = model._resolve_auto_jit_compile()
    return model, path.stem, None


def _script(workload: Workload) -> tuple[Any, str, DataSpec]:
    caught = capture.first_fit(
        Path(workload.reference),
        workload.script_arguments,
        fit_number=workload.fit_number,
        predict=workload.mode == "infer",
    )
    return caught.model, title_of(caught.model, Path(workload.reference).stem), caught.data


_LOADERS = {
    "application": application,
    "function": _function,
    "keras_file": _keras_file,
    "preset": preset,
    "script": _script,
    "task": _task,
}


def title_of(model: Model, fallback: str) -> str:
    """Return the model's own name, unless Keras invented it."""
    invented = model.name.rstrip("0123456789_") in ("functional", "sequential", "model", "")
    return fallback if invented else str(model.name)


def _nearest(name: str, known: list[str]) -> str:
    by_lower = {n.lower(): n for n in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[found[0]] if found else ""


def _compile_as_on_a_gpu() -> None:
    """Let ``jit_compile="auto"`` mean what it means where there is a GPU."""
    with contextlib.suppress(ImportError):  # Keras 2 compiles with XLA only where it is told to
        to_the_end(auto_jit_as_on_a_gpu())


def default_compile(model: Model, *, named: bool) -> str:
    """Compile as most image classifiers are trained; returns what was assumed."""
    import keras

    loss: Any = "mean_squared_error"
    output = getattr(model, "outputs", None) or []
    last = model.layers[-1] if model.layers else None
    activation = getattr(getattr(last, "activation", None), "__name__", "")
    if len(output) == 1 and (activation in ("softmax", "linear") and output[0].shape[-1] > 1):
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=activation != "softmax")
    elif len(output) == 1 and activation == "sigmoid":
        loss = "binary_crossentropy"
    model.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss=loss)
    reason = "The model is not compiled: assumed" if named else "Assumed"
    return f"{reason} SGD with momentum 0.9 and {getattr(loss, 'name', loss)}."


@contextlib.contextmanager
def policy_held(precision: str, notes: list[str]) -> Iterator[None]:
    """Set the dtype policy before the user's code and ignore what that code sets itself."""
    if not precision:
        yield
        return
    import keras

    policy = "float32" if precision == "tf32" else precision
    sentence = f"The code sets the policy {{}}; --precision {precision} holds."
    if is_keras2():
        with forced_policy(policy, notes, sentence):
            yield
        return
    keras.config.set_dtype_policy(policy)

    def told(asked: Value) -> None:
        if getattr(asked, "name", policy) != policy and not notes:
            notes.append(sentence.format(asked.name))

    with policy_kept(told):
        yield


_OPTIMIZERS = {"adafactor": "Adafactor", "lion": "Lion", "sgd": "SGD"}
_OPTIMIZER_SETTINGS = (
    "weight_decay",
    "clipnorm",
    "global_clipnorm",
    "clipvalue",
    "use_ema",
    "ema_momentum",
    "ema_overwrite_frequency",
    "loss_scale_factor",
    "gradient_accumulation_steps",
)
"""What every optimizer of Keras has, and what it adds to a step; the learning rate adds nothing."""


def take_optimizer(model: Model, name: str) -> str:
    """Train with another optimizer, at the settings that both have; returns what to tell.

    A loss that was scaled stays so. The model is not built yet, or its optimizer is not.

    Args:
        model: A compiled Keras 3 model.
        name: ``adafactor``, ``lion`` or ``sgd`` (without momentum).

    Raises:
        UsageError: The model keeps no optimizer of its own, or is one of Keras 2.
    """
    import keras

    if is_keras2():
        what = "another optimizer cannot be weighed for this model"
        raise UsageError(what, why="it is one of Keras 2")
    own = getattr(model, "optimizer", None)
    if not isinstance(own, keras.optimizers.Optimizer):
        what = "another optimizer cannot be weighed for this model"
        raise UsageError(what, why="it was compiled without one")
    scaled = isinstance(own, keras.optimizers.LossScaleOptimizer)
    inner = own.inner_optimizer if scaled else own
    settings = {key: getattr(inner, key) for key in _OPTIMIZER_SETTINGS}
    found = getattr(keras.optimizers, _OPTIMIZERS[name])(**settings)
    model.optimizer = keras.optimizers.LossScaleOptimizer(found) if scaled else found
    return f"Optimizer {name} in place of {inner.name}: what is learned changes."
