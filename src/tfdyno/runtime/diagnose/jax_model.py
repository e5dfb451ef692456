"""What a model and its step on JAX are made of, as far as it may hold the step back."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import jax

from tfdyno.process.own_lines import own_file, place_of
from tfdyno.runtime.base.keras_internals import all_layers, inner_layers
from tfdyno.runtime.diagnose.waits import line_of
from tfdyno.runtime.diagnose.work import BYTES_PER_S, unaligned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tfdyno.core.base.untyped import Model, Value, Variable

_TO_PYTHON = frozenset({"pure_callback", "io_callback", "debug_callback", "debug_print"})
"""Operations of JAX that call Python."""
_WIDE = frozenset({"float64", "complex128"})
_DEEP = 12


def facts_of(model: Model, batch: Value, cards: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return fields of ``StepFacts`` that the model tells; nothing is computed.

    Args:
        model: That has run steps.
        batch: Shapes and types of a batch; None: not known.
        cards: As ``work.work_of`` takes them.
    """
    variables = [*model.variables, *getattr(model.optimizer, "variables", ())]
    variables = list({id(one): one for one in variables}.values())
    trainable = model.trainable_variables
    parts = [one for one in inner_layers(model) if one.weights]
    policies = Counter(one.dtype_policy.name for one in parts or [model])
    precision = str(policies.most_common(1)[0][0])
    loose = tuple(uncompiled(model))
    is_eager = bool(model.run_eagerly or not model.jit_compile)
    found: dict[str, Any] = {
        "precision": precision,
        "execution": "eager" if is_eager else "xla",
        "variable_count": len(variables),
        "parameter_bytes": sum(map(_bytes, trainable)),
        "devices": dict(Counter(map(_device, variables))),
        "float64": tuple(one.path for one in variables if str(one.dtype) in _WIDE),
        "python_steps": ("run_eagerly",) if model.run_eagerly else (),
        "uncompiled_layers": loose if is_eager and not model.run_eagerly else (),
        "unaligned": unaligned(model),
        "compute_capability": _capability(),
    }
    dtype = precision.removeprefix("mixed_")
    for field, name in (("peak_flops_per_s", dtype), ("peak_bytes_per_s", BYTES_PER_S)):
        found[field] = float(sum(cards.get(name, ())[:1]))
    if batch is not None and not is_eager:
        found |= _of_program(model, batch)
    return found


def uncompiled(model: Model) -> Iterator[str]:
    """Yield the layers for which Keras does not compile the step: ``crop (RandomCrop)``."""
    for layer in all_layers(model):
        if not getattr(layer, "supports_jit", True):
            yield f"{layer.name} ({type(layer).__name__})"


def waited_for(callbacks: Sequence[Any]) -> tuple[str, ...]:
    """Return callbacks for which Keras reads what each step gave, and so waits for it.

    Keras hands the loss on as a number as soon as one of them has a method of its own at the end of
    a batch, and does not call itself ``async_safe``.
    """
    found = []
    for one in callbacks:
        methods = [getattr(one, name, None) for name in ("on_train_batch_end", "on_batch_end")]
        own = [each for each in methods if each and not getattr(each, "_is_default", False)]
        if own and not getattr(one, "async_safe", False):
            place = line_of(getattr(own[0], "__func__", own[0]))
            name = type(one).__name__
            found.append(f"{name} in {place}" if place else name)
    return tuple(found)


def _of_program(model: Model, batch: Value) -> dict[str, Any]:
    """Trace the step once more, for the work that is in it and the Python that it calls."""
    found: dict[str, Any] = {}
    with contextlib.suppress(Exception):  # facts beside the times are no reason to fail
        state = model._get_jax_state(
            trainable_variables=True,
            non_trainable_variables=True,
            optimizer_variables=True,
            metrics_variables=True,
        )
        specs = jax.tree.map(lambda one: jax.ShapeDtypeStruct(one.shape, one.dtype), state)
        traced = jax.jit(model.train_step).trace(specs, batch)
        found["python_steps"] = tuple(dict.fromkeys(_python_steps(traced.jaxpr.jaxpr)))
        costs = traced.lower().cost_analysis() or {}
        found["step_flops"] = max(0.0, float(costs.get("flops", 0.0)))
    return found


def _python_steps(program: Value, depth: int = 0) -> Iterator[str]:
    for one in program.eqns:
        name = str(one.primitive.name)
        if name in _TO_PYTHON:
            place = _line(one)
            yield f"{name} in {place}" if place else name
        if depth < _DEEP:
            for inner in jax.core.jaxprs_in_params(one.params):
                yield from _python_steps(inner, depth + 1)


def _line(operation: Value) -> str:
    """Return the user's line that made an operation; empty where it is not known."""
    traceback = getattr(operation.source_info, "traceback", None)
    for frame in traceback.frames if traceback else ():
        if own_file(frame.file_name):
            return place_of(frame.file_name, frame.line_num)
    return ""


def _device(variable: Variable) -> str:
    with contextlib.suppress(Exception):  # what a step that failed has left without a value
        one = next(iter(variable.value.devices()))
        return f"{'CPU' if one.platform == 'cpu' else 'GPU'}:{one.id}"
    return "unknown"


def _bytes(variable: Variable) -> int:
    count = math.prod(int(size or 1) for size in variable.shape)
    return count * int(jax.numpy.dtype(variable.dtype).itemsize)


def _capability() -> str:
    first = jax.local_devices()[0]
    return "" if first.platform == "cpu" else str(getattr(first, "compute_capability", ""))
