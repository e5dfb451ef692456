"""A TensorFlow step -> HLO with a table of its arguments. Runs in the user's own environment.

Needs TensorFlow and the standard library only. The variables are real here (TF2XLA asks for their
shapes), the step itself is never run: it is traced for the CPU and stops at HLO.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from tfdyno.core.errors import ToolError, UsageError

SLOT = re.compile(
    r"momentum|velocity|iteration|learning_rate|accumulator|loss_scale|(^|/)(m|v|vhat|rms|mg)/"
)
"""In the name of a variable that an optimizer made (Keras 3: words, Keras 2: one-letter scopes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """One step as a serialized ``HloModuleProto`` and its arguments in order."""

    hlo: bytes
    tensors: tuple[dict[str, Any], ...]
    """Fields of ``core.workload.TensorSpec``."""
    parameter_count: int
    trainable_parameter_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Which variables play which part; everything else that a step captures is a constant."""

    weights: Sequence[Any]
    state: Sequence[Any]
    optimizer: Sequence[Any]


def export(
    step: Callable[..., Any],
    arguments: Sequence[Any],
    roles: Sequence[str],
    variables: Variables,
    *,
    autograph: bool = False,
) -> Exported:
    """Lower ``step(*arguments)`` to HLO.

    Args:
        step: A Python function of tensors that uses TensorFlow variables.
        arguments: Nested structures of ``tf.TensorSpec`` with full shapes.
        roles: For each argument the role of its tensors: input, target, sample_weight.
        variables: The variables that the step may read or assign.
        autograph: Whether Python's ``if`` and ``for`` over tensors become part of the program.

    Raises:
        UsageError: The step uses an operation that XLA cannot compile (strings, unknown shapes).
        ToolError: TensorFlow fails otherwise.
    """
    compiled = tf.function(step, jit_compile=True, autograph=autograph)
    try:
        concrete = compiled.get_concrete_function(*arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lower = compiled.experimental_get_compiler_ir(*arguments)
            hlo = lower(stage="hlo_serialized", device_name="/device:CPU:0")
    except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
        raise UsageError("XLA cannot compile this step", why=_first_line(error)) from None
    except (TypeError, ValueError, RuntimeError, AttributeError) as error:
        why = f"{type(error).__name__}: {_first_line(error)}"
        raise ToolError("TensorFlow cannot trace this step", why=why) from None
    tensors = (
        *_given(arguments, roles),
        *_captured(concrete, variables),
    )
    trainable = _elements(variables.weights)
    return Exported(
        hlo=hlo,
        tensors=tensors,
        parameter_count=trainable + _elements(variables.state),
        trainable_parameter_count=trainable,
    )


def variables_of(model: Any) -> Variables:  # noqa: ANN401  (Keras is not imported here)
    """Weights, other state and optimizer slots of a Keras model (Keras 3 or tf.keras 2)."""
    weights = [_resource(v) for v in model.trainable_variables]
    slots_of = getattr(getattr(model, "optimizer", None), "variables", ())
    slots = [_resource(v) for v in (slots_of() if callable(slots_of) else slots_of)]
    taken = {id(v) for v in (*weights, *slots)}
    others = [_resource(v) for v in model.variables]
    state = [v for v in others if id(v) not in taken]
    return Variables(weights=weights, state=state, optimizer=slots)


def split_by_name(variables: Iterable[Any]) -> Variables:
    """Sort the variables that a hand-written step captures.

    A trainable variable is a weight; of the others those that look like an optimizer's slots go to
    the optimizer, the rest is state.
    """
    weights, state, slots = [], [], []
    for variable in variables:
        if SLOT.search(_name(variable).lower()):
            slots.append(variable)
        elif getattr(variable, "trainable", False):
            weights.append(variable)
        else:
            state.append(variable)
    return Variables(weights=weights, state=state, optimizer=slots)


def variables_used(
    step: Callable[..., Any], arguments: Sequence[Any], *, autograph: bool
) -> tuple[Any, ...]:
    """The variables that a step reads or assigns; those that it creates are created."""
    concrete = tf.function(step, autograph=autograph).get_concrete_function(*arguments)
    return tuple(concrete.graph.variables)


def _resource(variable: Any) -> Any:  # noqa: ANN401
    """The ``tf.Variable`` inside a Keras 3 variable, or the variable itself."""
    return getattr(variable, "value", variable) if hasattr(variable, "_value") else variable


def _elements(variables: Iterable[Any]) -> int:
    return sum(math.prod(variable.shape.as_list()) for variable in variables)


def _given(arguments: Sequence[Any], roles: Sequence[str]) -> Iterable[dict[str, Any]]:
    for argument, role in zip(arguments, roles, strict=True):
        for number, spec in enumerate(tf.nest.flatten(argument)):
            name = getattr(spec, "name", None) or f"{role}_{number}"
            yield _row(name, role, spec.shape, spec.dtype)


def _captured(concrete: Any, variables: Variables) -> Iterable[dict[str, Any]]:  # noqa: ANN401
    groups = {"weight": variables.weights, "optimizer": variables.optimizer}
    roles = {id(v.handle): role for role, group in groups.items() for v in group}
    known = {id(v.handle): v for v in concrete.graph.variables}  # the metrics' among them
    for tensor in concrete.captured_inputs:
        if tensor.dtype != tf.resource:
            yield _row("constant", "constant", tensor.shape, tensor.dtype)
            continue
        if (variable := known.get(id(tensor))) is None:
            raise UsageError("the step uses a table or iterator that XLA cannot compile")
        yield _row(_name(variable), roles.get(id(tensor), "state"), variable.shape, variable.dtype)


def _name(variable: Any) -> str:  # noqa: ANN401
    return str(getattr(variable, "path", None) or variable.name).removesuffix(":0")


def _row(name: str, role: str, shape: Any, dtype: Any) -> dict[str, Any]:  # noqa: ANN401
    sizes = [int(size) for size in shape]
    return {
        "name": name,
        "role": role,
        "shape": sizes,
        "dtype": dtype.name,
        "bytes": math.prod(sizes) * dtype.size,
    }


def _first_line(error: BaseException) -> str:
    message = getattr(error, "message", None) or str(error)
    return next((line for line in str(message).splitlines() if line.strip()), "no reason given")
