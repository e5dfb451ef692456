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
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.choose.workload import TensorSpec
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.replaced import replaced
from tfdyno.runtime.trace.ctc_outside import ctc_outside

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import DType, Function, Model, Shape, Value, Variable
    from tfdyno.core.choose.workload import TensorRole

SLOT = re.compile(
    r"momentum|velocity|iteration|learning_rate|accumulator|loss_scale|(^|/)(m|v|vhat|rms|mg)/"
)
"""What the name of a variable holds that an optimizer made (Keras 3: words, Keras 2: one-letter
scopes)."""

UNKNOWN = re.compile(r"(\w+) \(No registered")
"""An operation in TensorFlow's message about those that XLA does not know."""
OPEN_SIZE = frozenset({"Unique", "UniqueV2", "Where"})
EARLIER = "do that part in the dataset, before the step"
OTHERWISE = "write what belongs to the loss or the model with operations of tf.math or keras.ops"
"""What to do otherwise for what works on what the model gives: no dataset has that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """One step as a serialized ``HloModuleProto`` and its arguments in order."""

    hlo: bytes
    tensors: tuple[TensorSpec, ...]
    parameter_count: int
    trainable_parameter_count: int
    outside: dict[str, int]
    """Operations that XLA does not have and that were left out, as ``ctc_outside`` finds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """Which variables play which part; everything else that a step captures is a constant."""

    weights: Sequence[Any]
    state: Sequence[Any]
    optimizer: Sequence[Any]


def export(
    step: Callable[..., Any],
    arguments: Sequence[Any],
    roles: Sequence[TensorRole],
    sort: Callable[[Sequence[Any]], Variables],
    *,
    autograph: bool = False,
) -> Exported:
    """Lower ``step(*arguments)`` to HLO.

    Args:
        step: A Python function of tensors that uses TensorFlow variables, or makes them.
        arguments: Nested structures of ``tf.TensorSpec`` with full shapes.
        roles: For each argument the role of its tensors: input, target, sample_weight.
        sort: Says which part each of the variables plays that the step reads or assigns.
        autograph: Whether Python's ``if`` and ``for`` over tensors become part of the program.

    Raises:
        UsageError: The step uses an operation that XLA cannot compile: strings, tables, Python.
        ToolError: TensorFlow fails otherwise.
    """
    flat = tf.nest.flatten(list(arguments))

    def flat_step(*tensors: Any) -> Value:
        return step(*tf.nest.pack_sequence_as(list(arguments), tensors))

    outside: dict[str, int] = {}

    def traced() -> tuple[Any, Any]:
        function = tf.function(flat_step, jit_compile=True, autograph=autograph)
        with ctc_outside(outside):
            return function, function.get_concrete_function(*flat)

    try:
        compiled, concrete = traced()
        if _has_open_size(concrete):
            with _dense_gradients():
                compiled, concrete = traced()
        variables = sort(concrete.graph.variables)
        captured = tuple(_captured(concrete, variables))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lower = compiled.experimental_get_compiler_ir(*flat)
            hlo = lower(stage="hlo_serialized", device_name="/device:CPU:0")
    except (
        *(tf.errors.InvalidArgumentError, tf.errors.UnimplementedError),
        *(TypeError, ValueError, RuntimeError, AttributeError),
    ) as error:
        raise _refusal(error) from None
    trainable = _elements(variables.weights)
    return Exported(
        hlo=hlo,
        tensors=(*_given(arguments, roles), *captured),
        parameter_count=trainable + _elements(variables.state),
        trainable_parameter_count=trainable,
        outside=outside,
    )


def _has_open_size(concrete: Function) -> bool:
    """Return whether an operation in it gives as many elements as the data decide."""
    graph = concrete.graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    return any(node.op in OPEN_SIZE for node in nodes)


def _dense_gradients() -> AbstractContextManager[None]:
    """Make embeddings' gradients whole tables, as the JAX path has them.

    Optimizers bring sparse ones together by token, and how many tokens differ is not known before
    the data is: a program with such sizes cannot be read.
    """
    gradient = tf.GradientTape.gradient

    def dense(*arguments: Any, **named: Any) -> Value:
        found = gradient(*arguments, **named)
        return tf.nest.map_structure(lambda g: g if g is None else tf.convert_to_tensor(g), found)

    return replaced((tf.GradientTape, "gradient", dense))


def split_by_model(model: Model) -> Callable[[Sequence[Any]], Variables]:
    """Sort by what a Keras model says of its variables, by name those that it does not know."""

    def sort(used: Sequence[Any]) -> Variables:
        weights = [_resource(v) for v in model.trainable_variables]
        slots_of = getattr(getattr(model, "optimizer", None), "variables", ())
        slots = [_resource(v) for v in (slots_of() if callable(slots_of) else slots_of)]
        state = [_resource(v) for v in model.non_trainable_variables]
        known = {id(v.handle) for v in (*weights, *slots, *state)}
        others = split_by_name(v for v in used if id(v.handle) not in known)
        return Variables(weights=weights, state=state, optimizer=[*slots, *others.optimizer])

    return sort


def split_by_name(variables: Iterable[Any]) -> Variables:
    """Sort the variables that a hand-written step uses.

    Those that look like an optimizer's slots go to the optimizer; of the others a trainable
    variable is a weight, the rest is state.
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


def _resource(variable: Variable) -> Value:
    """Return the ``tf.Variable`` inside a Keras 3 variable, or the variable itself."""
    return getattr(variable, "value", variable) if hasattr(variable, "_value") else variable


def _elements(variables: Iterable[Any]) -> int:
    return sum(math.prod(variable.shape.as_list()) for variable in variables)


def _given(arguments: Sequence[Any], roles: Sequence[TensorRole]) -> Iterable[TensorSpec]:
    for argument, role in zip(arguments, roles, strict=True):
        for number, spec in enumerate(tf.nest.flatten(argument)):
            name = getattr(spec, "name", None) or f"{role}_{number}"
            yield _row(name, role, spec.shape, spec.dtype)


def _captured(concrete: Function, variables: Variables) -> Iterable[TensorSpec]:
    groups: dict[TensorRole, Sequence[Any]] = {
        "weight": variables.weights,
        "optimizer": variables.optimizer,
    }
    roles = {id(v.handle): role for role, group in groups.items() for v in group}
    known = {id(v.handle): v for v in concrete.graph.variables}  # the metrics' among them
    for tensor in concrete.captured_inputs:
        if tensor.dtype != tf.resource:
            yield _row("constant", "constant", tensor.shape, tensor.dtype)
            continue
        if (variable := known.get(id(tensor))) is None:
            raise UsageError(
                "the step reads a lookup table or an iterator",
                why="XLA compiles variables and tensors only",
                remedy=EARLIER,
            )
        yield _row(_name(variable), roles.get(id(tensor), "state"), variable.shape, variable.dtype)


def _name(variable: Variable) -> str:
    return str(getattr(variable, "path", None) or variable.name).removesuffix(":0")


def _row(name: str, role: TensorRole, shape: Shape, dtype: DType) -> TensorSpec:
    sizes = tuple(int(size) for size in shape)
    return TensorSpec(
        name=name, role=role, shape=sizes, dtype=dtype.name, bytes=math.prod(sizes) * dtype.size
    )


def _refusal(error: Exception) -> TfdynoError:
    """Return what TensorFlow means when it refuses a step, in one sentence."""
    if operations := sorted(set(UNKNOWN.findall(str(error)))):
        why = f"it uses {', '.join(operations)}, which exists outside of XLA only"
        return UsageError("XLA cannot compile this step", why=why, remedy=f"{EARLIER}; {OTHERWISE}")
    why = f"{type(error).__name__}: {first_line(error)}"
    if isinstance(error, tf.errors.OpError):
        return UsageError("XLA cannot compile this step", why=why)
    return ToolError("TensorFlow cannot trace this step", why=why)
