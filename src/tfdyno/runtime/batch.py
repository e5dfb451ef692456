"""The batch of a step: inputs from the model or its data, targets from the loss."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.errors import UsageError
from tfdyno.runtime.dataspec import Leaf
from tfdyno.runtime.keras2 import is_keras2, output_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.workload import Workload
    from tfdyno.runtime.workloads import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The data arguments of a step as structures of ``Leaf``."""

    x: Any
    y: Any = None
    sample_weight: Any = None


def batches(subject: Subject, workload: Workload) -> list[Batch]:
    """The batches to try, likeliest first; only the targets differ.

    Raises:
        UsageError: A dimension of an input is unknown and no ``--input-shape`` was given.
    """
    model, data = subject.model, subject.data
    x = data.x if data else _model_inputs(model, workload)
    x = _known(x, workload.input_shapes)
    if workload.mode == "infer":
        return [Batch(x=x)]
    if data and data.y is not None:
        return [Batch(x=x, y=_known(data.y, ()), sample_weight=data.sample_weight)]
    if data or model.loss is None:
        return [Batch(x=x)]
    return [Batch(x=x, y=y) for y in _targets(model, x)]


def baked_batch(model: Any) -> int:  # noqa: ANN401
    """The batch size that is part of the model's inputs; 0 where it is left open."""
    inputs = getattr(model, "inputs", None) or []
    return next((int(i.shape[0]) for i in inputs if i.shape and i.shape[0]), 0)


def dimensions(model: Any, batch: Batch) -> set[int]:  # noqa: ANN401
    """All sizes in the model that the batch must not share a prime with."""
    found = {size for leaf in leaves((batch.x, batch.y)) for size in leaf.shape if size}
    with contextlib.suppress(ValueError):  # Keras 2: not made before the first step
        for variable in model.variables:
            found.update(variable.shape)
    for layer in model._flatten_layers():
        for node in getattr(layer, "_inbound_nodes", ()):
            made = node.output_tensors
            for tensor in made if isinstance(made, list) else [made]:
                found.update(size for size in tensor.shape[1:] if size)
    return {int(size) for size in found}


def leaves(structure: Any) -> Iterator[Leaf]:  # noqa: ANN401
    """Every ``Leaf`` of a structure in its own order."""
    if isinstance(structure, Leaf):
        yield structure
    elif isinstance(structure, dict):
        for value in structure.values():
            yield from leaves(value)
    elif isinstance(structure, tuple | list):
        for value in structure:
            yield from leaves(value)


def _model_inputs(model: Any, workload: Workload) -> Any:  # noqa: ANN401
    """The inputs as the model declares them, in the structure that it wants."""
    structure = getattr(model, "_inputs_struct", None)
    if structure is None and getattr(model, "inputs", None):
        structure = model.inputs if len(model.inputs) > 1 else model.inputs[0]
    if structure is not None:
        return _declared(structure)
    shapes = list((getattr(model, "_build_shapes_dict", None) or {}).values())
    if len(shapes) == 1 and isinstance(shapes[0], tuple | list):
        return Leaf(shape=tuple(shapes[0])[1:], dtype="float32")
    given = [Leaf(shape=shape, dtype="float32") for shape in workload.input_shapes]
    if not given:
        raise UsageError(
            f"the model {model.name} does not say what its input looks like",
            why="it is a subclass of keras.Model that was not built",
            remedy="give --input-shape, or return (model, dataset) from the function",
        )
    return given[0] if len(given) == 1 else given


def _declared(structure: Any) -> Any:  # noqa: ANN401
    if isinstance(structure, dict):
        return {key: _declared(value) for key, value in structure.items()}
    if isinstance(structure, tuple | list):
        return type(structure)(_declared(value) for value in structure)
    return Leaf(shape=tuple(structure.shape[1:]), dtype=_dtype(structure), name=structure.name)


def _dtype(tensor: Any) -> str:  # noqa: ANN401
    return str(getattr(tensor.dtype, "name", tensor.dtype))


def _known(structure: Any, shapes: tuple[tuple[int, ...], ...]) -> Any:  # noqa: ANN401
    """The structure with the given shapes in place of unknown ones, in order."""
    remaining = iter(shapes)

    def fill(part: Any) -> Any:  # noqa: ANN401
        if isinstance(part, dict):
            return {key: fill(value) for key, value in part.items()}
        if isinstance(part, tuple | list):
            return type(part)(fill(value) for value in part)
        if not isinstance(part, Leaf) or None not in part.shape:
            return part
        return _filled(part, next(remaining, None))

    filled = fill(structure)
    if (left := next(remaining, None)) and left not in [leaf.shape for leaf in leaves(filled)]:
        what = f"--input-shape {','.join(map(str, left))} fits no input whose shape is open"
        known = ", ".join(str(leaf.shape) for leaf in leaves(filled))
        raise UsageError(what, why=f"the inputs are {known} without the batch")
    return filled


def _example(leaf: Leaf) -> str:
    """Sizes as they may be: an image of 224 by 224, a text of 128 tokens."""
    usual = 224 if len(leaf.shape) == 3 else 128
    return ",".join(str(size or usual) for size in leaf.shape)


def _filled(leaf: Leaf, shape: tuple[int, ...] | None) -> Leaf:
    if shape is None:
        raise UsageError(
            f"the input {leaf.name or 'of the model'} has the shape {leaf.shape} without the batch",
            why="None is not known before the data is",
            remedy=f"say it with --input-shape, for example --input-shape {_example(leaf)}",
        )
    fits = len(shape) == len(leaf.shape) and all(
        known in (None, size) for known, size in zip(leaf.shape, shape, strict=False)
    )
    if not fits:
        what = f"--input-shape {','.join(map(str, shape))} does not fit the input {leaf.name}"
        raise UsageError(what, why=f"its shape without the batch is {leaf.shape}")
    return replace(leaf, shape=shape)


def _targets(model: Any, x: Any) -> list[Any]:  # noqa: ANN401
    """Targets for a model without data: integers for sparse losses, else like the output."""
    outputs = _outputs(model, x)
    sparse = _per_output(outputs, model.loss, sparse_first=True)
    dense = _per_output(outputs, model.loss, sparse_first=False)
    return [sparse, dense] if _has_sparse_loss(model.loss) else [dense, sparse]


def _outputs(model: Any, x: Any) -> Any:  # noqa: ANN401
    structure = getattr(model, "_outputs_struct", None)
    if structure is None and getattr(model, "outputs", None):
        structure = model.outputs if len(model.outputs) > 1 else model.outputs[0]
    if structure is not None:
        return _known(_declared(structure), ()) if _complete(structure) else _inferred(model, x)
    return _inferred(model, x)


def _complete(structure: Any) -> bool:  # noqa: ANN401
    return all(None not in leaf.shape for leaf in leaves(_declared(structure)))


def _inferred(model: Any, x: Any) -> Any:  # noqa: ANN401
    if is_keras2():
        return _declared(output_of(model, x))
    import keras
    from keras import tree
    from keras.src import backend

    def symbolic(leaf: Leaf) -> Any:  # noqa: ANN401
        return keras.KerasTensor((2, *leaf.shape), leaf.dtype)

    return _declared(backend.compute_output_spec(model, tree.map_structure(symbolic, x)))


def _per_output(outputs: Any, loss: Any, *, sparse_first: bool) -> Any:  # noqa: ANN401
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


def _loss_of(loss: Any, key: str, index: int) -> Any:  # noqa: ANN401
    if isinstance(loss, dict):
        return loss.get(key, list(loss.values())[index] if index < len(loss) else None)
    return loss[index] if isinstance(loss, tuple | list) else loss


def _named(loss: Any) -> bool:  # noqa: ANN401
    """Whether the loss is one of Keras' own, so that its name says what targets it takes."""
    return isinstance(loss, str) or type(loss).__module__.startswith("keras")


def _has_sparse_loss(loss: Any) -> bool:  # noqa: ANN401
    if isinstance(loss, dict):
        return any(map(_has_sparse_loss, loss.values()))
    if isinstance(loss, tuple | list):
        return any(map(_has_sparse_loss, loss))
    names = (loss, getattr(loss, "name", ""), getattr(loss, "__name__", ""), type(loss).__name__)
    return any("sparse" in str(name).lower() for name in names)
