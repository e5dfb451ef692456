"""The batch of a step: inputs from the model or its data, targets from the loss."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.keras2 import is_keras2, output_of
from tfdyno.runtime.base.keras_internals import all_layers, output_spec
from tfdyno.runtime.workload.dataspec import DataSpec, Leaf, leaves
from tfdyno.runtime.workload.open_sizes import is_open, refuse_open, with_declared, with_given

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Loss, Model, Structure, Tensor, Value
    from tfdyno.core.choose.workload import Workload
    from tfdyno.runtime.workload.workloads import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The data arguments of a step as structures of ``Leaf``."""

    x: Any
    y: Any = None
    sample_weight: Any = None
    notes: tuple[str, ...] = ()
    """What was assumed of it, in sentences."""


def batches(subject: Subject, workload: Workload) -> list[Batch]:
    """Return the batches to try, likeliest first; only the targets differ.

    Raises:
        UsageError: A dimension of an input is unknown and no ``--input-shape`` was given.
    """
    if subject.data:
        return [_of_data(subject.model, subject.data, workload)]
    model = subject.model
    x = with_given(_model_inputs(model, workload), workload.input_shapes)
    refuse_open(x, workload.input_shapes)
    if workload.mode == "infer" or model.loss is None:
        return [Batch(x=x)]
    return [Batch(x=x, y=y) for y in _targets(model, x)]


def _of_data(model: Model, data: DataSpec, workload: Workload) -> Batch:
    """Return a dataset's batch; what that leaves open the model may say, or its first batch."""
    x = with_given(with_declared(data.x, _declared_inputs(model)), workload.input_shapes)
    batch = Batch(x=x)
    if workload.mode != "infer" and data.y is not None:
        y = _with_targets(data.y, model, x)
        batch = Batch(x=x, y=y, sample_weight=data.sample_weight)
    if is_open(_parts(batch)) and data.read:
        batch = _as_read(batch, data.read())
    refuse_open(_parts(batch), workload.input_shapes)
    return batch


def _parts(data: Batch | DataSpec) -> tuple[Any, Any, Any]:
    return data.x, data.y, data.sample_weight


def _as_read(batch: Batch, first: DataSpec) -> Batch:
    """Return the batch with the sizes of one that was read, and a note of them."""
    before = _parts(batch)
    x, y, weight = after = tuple(map(with_declared, before, _parts(first)))
    pairs = zip(leaves(before), leaves(after), strict=True)
    told = [f"{a.shape} as {b.shape}" for a, b in pairs if a != b]
    note = f"The data leave sizes open; traced as in their first batch: {', '.join(told)}."
    return Batch(x=x, y=y, sample_weight=weight, notes=(note,) if told else ())


def _with_targets(y: Tensor, model: Model, x: Tensor) -> Value:
    """Give the targets the sizes of what the model gives, where its loss compares the two."""
    if not is_open(y) or is_open(x) or model.loss is None:
        return y
    with contextlib.suppress(Exception):  # what the user's code does wrong its trace will tell
        for each in _targets(model, x):
            if not is_open(found := with_declared(y, each)):
                return found
    return y


def baked_batch(model: Model) -> int:
    """Return the batch size that is part of the model's inputs; 0 where it is left open."""
    inputs = getattr(model, "inputs", None) or []
    return next((int(i.shape[0]) for i in inputs if i.shape and i.shape[0]), 0)


def dimensions(model: Model, batch: Batch) -> set[int]:
    """Return all sizes in the model that the batch must not share a prime with."""
    found = {size for leaf in leaves((batch.x, batch.y)) for size in leaf.shape if size}
    with contextlib.suppress(ValueError):  # Keras 2: not made before the first step
        for variable in model.variables:
            found.update(variable.shape)
    for layer in all_layers(model):
        for node in getattr(layer, "_inbound_nodes", ()):
            made = node.output_tensors
            for tensor in made if isinstance(made, list) else [made]:
                found.update(size for size in tensor.shape[1:] if size)
    return {int(size) for size in found}


def _declared_inputs(model: Model) -> Value:
    """Return the inputs that the model declares, in the structure that it wants; or None."""
    structure = getattr(model, "_inputs_struct", None)
    if structure is None and getattr(model, "inputs", None):
        structure = model.inputs if len(model.inputs) > 1 else model.inputs[0]
    if structure is not None:
        return _declared(structure)
    shapes = list((getattr(model, "_build_shapes_dict", None) or {}).values())
    if len(shapes) == 1 and isinstance(shapes[0], tuple | list):
        return Leaf(shape=tuple(shapes[0])[1:], dtype="float32")
    return None


def _model_inputs(model: Model, workload: Workload) -> Value:
    """Return the inputs that the model declares, else those of the command line."""
    if (declared := _declared_inputs(model)) is not None:
        return declared
    given = [Leaf(shape=shape, dtype="float32") for shape in workload.input_shapes]
    if not given:
        raise UsageError(
            f"the model {model.name} does not say what its input looks like",
            why="it is a subclass of keras.Model that was not built",
            remedy="give --input-shape, or return (model, dataset) from the function",
        )
    return given[0] if len(given) == 1 else given


def _declared(structure: Structure) -> Value:
    if isinstance(structure, dict):
        return {key: _declared(value) for key, value in structure.items()}
    if isinstance(structure, tuple | list):
        return type(structure)(_declared(value) for value in structure)
    return Leaf(shape=tuple(structure.shape[1:]), dtype=_dtype(structure), name=structure.name)


def _dtype(tensor: Tensor) -> str:
    return str(getattr(tensor.dtype, "name", tensor.dtype))


def _targets(model: Model, x: Tensor) -> list[Any]:
    """Make targets for a model without data: integers for sparse losses, else like the output."""
    outputs = _outputs(model, x)
    sparse = _per_output(outputs, model.loss, sparse_first=True)
    dense = _per_output(outputs, model.loss, sparse_first=False)
    return [sparse, dense] if _has_sparse_loss(model.loss) else [dense, sparse]


def _outputs(model: Model, x: Tensor) -> Value:
    structure = getattr(model, "_outputs_struct", None)
    if structure is None and getattr(model, "outputs", None):
        structure = model.outputs if len(model.outputs) > 1 else model.outputs[0]
    if structure is not None:
        return _declared(structure) if _complete(structure) else _inferred(model, x)
    return _inferred(model, x)


def _complete(structure: Structure) -> bool:
    return all(None not in leaf.shape for leaf in leaves(_declared(structure)))


def _inferred(model: Model, x: Tensor) -> Value:
    if is_keras2():
        return _declared(output_of(model, x))
    import keras
    from keras import tree

    # A Sequential without an Input builds one of what it is called with first.
    batch = None if isinstance(model, keras.Sequential) else 2

    def symbolic(leaf: Leaf) -> Value:
        return keras.KerasTensor((batch, *leaf.shape), leaf.dtype)

    return _declared(output_spec(model, tree.map_structure(symbolic, x)))


def _per_output(outputs: Tensor, loss: Loss, *, sparse_first: bool) -> Value:
    if isinstance(outputs, dict):
        return {
            key: _per_output(value, _loss_of(loss, key, i), sparse_first=sparse_first)
            for i, (key, value) in enumerate(outputs.items())
        }
    if isinstance(outputs, tuple | list):
        return [
            _per_output(value, _loss_of(loss, value.name, i), sparse_first=sparse_first)
            for i, value in enumerate(outputs)
        ]
    sparse = _has_sparse_loss(loss) if _named(loss) else sparse_first
    return replace(outputs, shape=outputs.shape[:-1], dtype="int32") if sparse else outputs


def _loss_of(loss: Loss, key: str, index: int) -> Value:
    if isinstance(loss, dict):
        return loss.get(key, list(loss.values())[index] if index < len(loss) else None)
    return loss[index] if isinstance(loss, tuple | list) else loss


def _named(loss: Loss) -> bool:
    """Return whether the loss is one of Keras' own, so that its name says what targets it takes."""
    return isinstance(loss, str) or type(loss).__module__.startswith("keras")


def _has_sparse_loss(loss: Loss) -> bool:
    if isinstance(loss, dict):
        return any(map(_has_sparse_loss, loss.values()))
    if isinstance(loss, tuple | list):
        return any(map(_has_sparse_loss, loss))
    names = (loss, getattr(loss, "name", ""), getattr(loss, "__name__", ""), type(loss).__name__)
    return any("sparse" in str(name).lower() for name in names)
