"""One step of a Keras model on the JAX backend, lowered to StableHLO without weights."""

from __future__ import annotations

import contextlib
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import keras
from keras import tree

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.program import TODAY
from tfdyno.core.choose.workload import TensorRole, TensorSpec
from tfdyno.runtime.base.keras_internals import output_spec
from tfdyno.runtime.trace.as_tensorflow import as_tensorflow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Dataset, Model, Structure, Tensor, Value, Variable
    from tfdyno.core.choose.program import Lowering
    from tfdyno.runtime.workload.batch import Batch
    from tfdyno.runtime.workload.dataspec import Leaf


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """StableHLO of a step and its arguments in order."""

    module: Any
    tensors: tuple[TensorSpec, ...]

    @property
    def bytecode(self) -> bytes:
        """The module as MLIR writes it to a file."""
        buffer = io.BytesIO()
        self.module.operation.write_bytecode(buffer)
        return buffer.getvalue()


def lower_step(
    model: Model,
    batch: Batch,
    *,
    batch_size: int,
    mode: str,
    remat: str = "",
    lowering: Lowering = TODAY,
) -> Lowered:
    """Trace what Keras itself would run for one batch: ``train_step`` or ``predict_step``.

    The training step has loss scaling, the optimizer's update, state updates and metrics; its
    state is donated, as Keras does. With ``remat`` parts of the model are computed again in the
    backward pass, each by ``jax.checkpoint``.
    """
    data = tuple(_with_batch(part, batch_size) for part in (batch.x, batch.y, batch.sample_weight))
    with as_tensorflow(lowering):
        if mode != "train":
            return _lower_infer(model, data[0])
        _build(model, data)
        with _recomputing(model, remat, batch_size):
            return _lower_train(model, data)


@contextlib.contextmanager
def _recomputing(model: Model, wanted: str, batch_size: int) -> Iterator[None]:
    if not wanted:
        yield
        return
    from tfdyno.runtime.remat.rewrite import apply_remat

    plan = apply_remat(model, wanted, batch_size=batch_size)
    try:
        yield
    finally:
        plan.undo()


def _lower_train(model: Model, data: tuple[Any, Any, Any]) -> Lowered:
    groups: list[tuple[TensorRole, list[Any]]] = [
        ("weight", model.trainable_variables),
        ("state", model.non_trainable_variables),
        ("optimizer", model.optimizer.variables),
        ("state", model.metrics_variables),
    ]

    def step(state: Value, data: Dataset) -> Value:
        return model.train_step(state, data)

    state = tuple([_abstract(variable) for variable in group] for _, group in groups)
    roles: tuple[TensorRole, ...] = ("input", "target", "sample_weight")
    tensors = _variable_specs(groups) + _data_specs(zip(roles, data, strict=True))
    return _lowered(step, (state, data), tensors)


def _lower_infer(model: Model, x: Tensor) -> Lowered:
    if not model.built:
        output_spec(model, _symbolic(x))
    groups: list[tuple[TensorRole, list[Any]]] = [
        ("weight", model.trainable_variables),
        ("state", model.non_trainable_variables),
    ]

    def step(state: Value, x: Tensor) -> Value:
        return model.predict_step(state, (x,))[0]

    state = tuple([_abstract(variable) for variable in group] for _, group in groups)
    tensors = _variable_specs(groups) + _data_specs([("input", x)])
    return _lowered(step, (state, x), tensors, donate=())


def _build(model: Model, data: tuple[Any, Any, Any]) -> None:
    """Create the variables of layers, loss, metrics and optimizer that the first batch would."""
    x, y, weight = data
    parts = (x, y) if weight is None else (x, y, weight)
    model._symbolic_build(data_batch=parts)
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)


def _lowered(step: Value, arguments: Structure, tensors: Tensor, donate: Value = (0,)) -> Lowered:
    traced = jax.jit(step, donate_argnums=donate, keep_unused=True).trace(*arguments)
    # Lines of Python are left out: of another folder or line the same step keeps its digest, by
    # which its compiled programs are kept.
    with contextlib.suppress(AttributeError):  # of a JAX that has no such setting
        jax.config.update("jax_traceback_in_locations_limit", 0)
    module = traced.lower(lowering_platforms=("cuda",)).compiler_ir("stablehlo")
    return Lowered(module=module, tensors=tensors)


def _abstract(variable: Variable) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(variable.shape, variable.dtype)


def _with_batch(structure: Structure, batch_size: int) -> Value:
    def abstract(leaf: Leaf) -> jax.ShapeDtypeStruct:
        if leaf.dtype in ("string", "object", "str") or leaf.dtype.startswith("<U"):
            raise UsageError(
                "the model takes strings",
                why="a GPU cannot hold them",
                remedy="move the lookup into the dataset and feed its numbers",
            )
        return jax.ShapeDtypeStruct((batch_size, *leaf.shape), leaf.dtype)

    return None if structure is None else tree.map_structure(abstract, structure)


def _symbolic(structure: Structure) -> Value:
    return tree.map_structure(
        lambda leaf: keras.KerasTensor(leaf.shape, str(leaf.dtype)), structure
    )


def _variable_specs(groups: list[tuple[TensorRole, list[Any]]]) -> tuple[TensorSpec, ...]:
    return tuple(
        _spec(variable.path, role, variable) for role, group in groups for variable in group
    )


def _data_specs(parts: Value) -> tuple[TensorSpec, ...]:
    specs = []
    for role, structure in parts:
        leaves = jax.tree_util.tree_flatten_with_path(structure)[0]
        for path, leaf in leaves:
            suffix = jax.tree_util.keystr(path, simple=True, separator="/")
            specs.append(_spec(f"{role}/{suffix}" if suffix else role, role, leaf))
    return tuple(specs)


def _spec(name: str, role: TensorRole, tensor: Tensor) -> TensorSpec:
    shape, dtype = tuple(map(int, tensor.shape)), keras.backend.standardize_dtype(tensor.dtype)
    width = jax.numpy.dtype(dtype).itemsize
    return TensorSpec(
        name=name, role=role, shape=shape, dtype=dtype, bytes=math.prod(shape) * width
    )
