"""A model cut in two: layers that prepare the data, and the rest that is trained.

Nothing of the model is copied or changed: both parts run the model's own nodes. While the step of
the model is to get prepared data, its ``call`` is replaced on the instance. Data that were not
prepared still go through the whole model, so ``predict`` and ``save`` in a callback work.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.runtime.base.keras_internals import (
    ARRAY_OPERATIONS,
    PREPROCESSING_LAYERS,
    all_layers,
    calls_its_graph,
    is_functional,
    run_graph,
)
from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Dataset, Layer, Model, Operation, Tensor, Value

_GLUE = {"Concatenate", "Flatten", "Identity", "Permute", "Reshape"}
"""Layers without weights that may stand between two that prepare the data."""
GROWTH = 2.0
"""A layer that makes more than so many times its input's bytes stays on the device, where it can:
sending its output there would cost more than computing it. Indices as int64 instead of float32
are twice the bytes, images as float32 instead of uint8 four times."""
_MARK = "tfdyno_prepared_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The two parts of a model."""

    model: Any
    before: keras.Function
    rest: keras.Function
    moved: tuple[Any, ...]
    """The layers that run in the pipeline only."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tensors between the parts, as keys of what the step gets."""
        return tuple(f"{_MARK}{number}" for number in range(len(self.before.outputs)))

    def prepare(self, x: Tensor) -> dict[str, Any]:
        """Return what the step gets instead of the model's inputs."""
        inputs = _functional(self.model)._standardize_inputs(x)
        with tf.device("CPU:0"):
            values = run_graph(self.before, inputs, training=False)
        return dict(zip(self.names, values, strict=True))

    def batch(self, *data: Any) -> Value:
        """Return a batch of a dataset, ``x``, ``(x, y)`` or ``(x, y, sample_weight)``, prepared."""
        prepared = self.prepare(data[0])
        return (prepared, *data[1:]) if len(data) > 1 else (prepared,)

    def dataset(self, dataset: Dataset) -> Dataset:
        """Return a dataset of batches with prepared inputs, in the same order."""
        made = dataset.map(self.batch, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        return made.prefetch(tf.data.AUTOTUNE)

    def is_prepared(self, inputs: Tensor) -> bool:
        """Return whether these inputs come from ``prepare``."""
        return isinstance(inputs, dict) and set(inputs) == set(self.names)

    def run(self, inputs: dict[str, Any], training: Value = None) -> Value:
        """Return what the model gives for prepared inputs."""
        values = [inputs[name] for name in self.names]
        outputs = run_graph(self.rest, values, training)
        single = isinstance(outputs, list | tuple) and len(outputs) == 1
        return outputs[0] if single else outputs

    @property
    def unfit(self) -> tuple[Any, ...]:
        """Layers of the rest that XLA cannot compile."""
        left = {id(operation) for operation in self.rest.operations}
        return tuple(
            part
            for layer in _functional(self.model).layers
            if id(layer) in left
            for part in all_layers(layer)
            if not part.supports_jit
        )

    @contextlib.contextmanager
    def in_step(self, *, compiled: bool = False) -> Iterator[None]:
        """Let the model take prepared inputs too; it is the user's again afterwards.

        Args:
            compiled: Whether XLA shall compile the steps. Keras itself would refuse because the
                model as a whole has layers that cannot be compiled.
        """
        model = self.model
        whole, check = model.call, model._assert_input_compatibility

        def call(
            inputs: Tensor, training: Value = None, mask: Tensor = None, **other: Any
        ) -> Value:
            if self.is_prepared(inputs):
                return self.run(inputs, training)
            return whole(inputs, training=training, mask=mask, **other)

        def compatible(inputs: Tensor, *others: Any) -> None:
            if not self.is_prepared(inputs):
                check(inputs, *others)

        jit = model.jit_compile or (compiled and not self.unfit)
        changes = (
            (model, "call", call),
            (model, "_assert_input_compatibility", compatible),
            (model, "_jit_compile", jit),
        )
        try:
            with replaced(*changes):
                yield
        finally:
            model.train_function = model.test_function = None  # traced for prepared inputs


def _functional(model: Model) -> Value:
    return model._functional if isinstance(model, keras.Sequential) else model


def why_whole(model: Model) -> str:
    """Return why nothing can be moved out of this model; empty where its graph may be cut."""
    functional = _functional(model)
    if not is_functional(functional):
        return "only the model's own code knows what comes before it"
    cls = type(model)
    if not calls_its_graph(cls):
        return "the model has a call of its own, which may use the data as they come"
    for name in ("train_step", "test_step", "compute_loss", "compute_metrics"):
        if getattr(cls, name) is not getattr(keras.Model, name):
            return f"the model has a {name} of its own, which may use the data as they come"
    return ""


def split(model: Model) -> Split | None:
    """Cut the model after the preprocessing layers at its inputs; None: there is nothing to move.

    Args:
        model: A Keras model; a Sequential one must know its input's shape.
    """
    if why_whole(model):
        return None
    functional = _functional(model)
    moved = _moved(functional)
    if not moved:
        return None
    made = {id(tensor) for node in moved for tensor in node.outputs}
    made |= {id(tensor) for tensor in functional.inputs}
    gone = {id(node) for node in moved}
    cut: dict[int, Any] = {}
    for node in _nodes(functional):
        if id(node) not in gone:
            cut |= {id(each): each for each in node.input_tensors if id(each) in made}
    cut |= {id(each): each for each in functional.outputs if id(each) in made}
    border = list(cut.values())
    if any(tensor.sparse or tensor.ragged for tensor in border):
        return None
    still = {id(node.operation) for node in _nodes(functional) if id(node) not in gone}
    layers = {id(node.operation): node.operation for node in moved if _is_target(node)}
    return Split(
        model=model,
        before=keras.Function(functional.inputs, border, name=f"{model.name}_before"),
        rest=keras.Function(border, functional._outputs_struct, name=f"{model.name}_rest"),
        moved=tuple(layer for key, layer in layers.items() if key not in still),
    )


def _nodes(functional: Model) -> list[Any]:
    """Return all calls of layers in the model, each after those that it needs."""
    by_depth = functional._nodes_by_depth
    ordered = [node for depth in sorted(by_depth, reverse=True) for node in by_depth[depth]]
    return [node for node in ordered if node.operation and not node.is_input]


def _is_target(node: Operation) -> bool:
    return preprocesses(node.operation) or bool(why_cpu(node.operation))


def _moved(functional: Model) -> list[Any]:
    """Return the calls that can run before the step and lead to a preprocessing layer's output."""
    ready = {id(tensor) for tensor in functional.inputs}
    movable = []
    for node in _nodes(functional):
        if all(id(tensor) in ready for tensor in node.input_tensors) and _is_movable(node):
            movable.append(node)
            ready |= {id(tensor) for tensor in node.outputs}
    wanted: set[int] = set()
    kept = []
    for node in reversed(movable):
        if _is_target(node) or any(id(tensor) in wanted for tensor in node.outputs):
            kept.append(node)
            wanted |= {id(tensor) for tensor in node.input_tensors}
    return kept[::-1]


def _is_movable(node: Operation) -> bool:
    operation = node.operation
    if getattr(operation, "trainable_weights", None) or is_random(operation):
        return False
    if why_cpu(operation):
        return True
    if preprocesses(operation):
        return not grows(node)
    if isinstance(operation, keras.layers.Layer):
        return type(operation).__name__ in _GLUE
    return type(operation).__module__.startswith(ARRAY_OPERATIONS)


def grows(node: Operation) -> float:
    """Return how many times its input's bytes a call makes; 0 where that is within ``GROWTH``."""
    taken, made = (sum(map(_bytes, tensors)) for tensors in (node.input_tensors, node.outputs))
    return made / taken if made > GROWTH * taken else 0.0


def _bytes(tensor: Tensor) -> int:
    size = tf.as_dtype(tensor.dtype).size
    return math.prod(each or 1 for each in tensor.shape) * size


_TABLES = {"IndexLookup", "TextVectorization"}
_HASHES = {"Hashing", "HashedCrossing"}


def preprocesses(layer: Layer) -> bool:
    """Return whether it is one of Keras' preprocessing layers, or a class made from one."""
    return any(each.__module__.startswith(PREPROCESSING_LAYERS) for each in type(layer).__mro__)


def is_random(layer: Layer) -> bool:
    """Return whether it draws random numbers, as ``RandomFlip``: the seed moves with each step."""
    generator = getattr(layer, "generator", None)
    return bool(getattr(layer, "_seed_generators", ())) or generator is not None


def why_cpu(layer: Layer) -> str:
    """Return why the layer can run on the CPU only; empty where it could run on a card."""
    names = {each.__name__ for each in type(layer).__mro__}
    if names & _TABLES:
        return "its table is on the CPU"
    if names & _HASHES:
        return "it hashes text on the CPU"
    return "it reads text" if _reads_text(layer) else ""


def _reads_text(layer: Layer) -> bool:
    nodes = getattr(layer, "_inbound_nodes", ())
    return any(tensor.dtype == "string" for node in nodes for tensor in node.input_tensors)
