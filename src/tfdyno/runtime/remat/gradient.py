"""A part of a Keras model whose insides are computed again in the backward pass.

``tf.recompute_grad`` around a layer is wrong where the layer has state: the second run moves the
averages of BatchNormalization again and draws another mask for Dropout. So a part runs here as a
pure function: weights come in as arguments, what it reads of other variables is remembered and
given to the second run, and what it assigns is assigned once, after the first run.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import tensorflow as tf

from tfdyno.kernels.layers import RECOMPUTE
from tfdyno.runtime.base.keras_internals import (
    all_layers,
    mask_of,
    set_mask,
    surrounded_by,
    surroundings,
    without_autocast,
)
from tfdyno.runtime.base.tensorflow_internals import may_record, operation_definition, unrecorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Graph, Loss, Tensor, Value, Variable

HARMLESS = (
    "ReadVariableOp", "VarHandleOp", "ResourceGather", "Placeholder", "While", "If", "Case",
    "StatefulPartitionedCall", "PartitionedCall", "TensorList", "TensorArray", "Stack", "Assert",
    "Print", "Collective", "Nccl", "SymbolicGradient", "Xla",
)  # fmt: skip
"""Beginnings of the names of operations that TensorFlow calls stateful but that may run twice."""


class State(keras.StatelessScope):
    """Variables of one run: weights as given, others as first seen, assignments collected."""

    def __init__(self, weights: dict[int, Any], seen: dict[int, Any], outer: Value) -> None:
        """Set what the run reads.

        Args:
            weights: Value by id of the variable; gradients flow to these.
            seen: Value by id of the variables without a gradient; grows while the first run
                reads, and stands for the second.
            outer: The scope around, or None.
        """
        super().__init__(collect_losses=True, initialize_variables=False)
        self.state_mapping.update(weights)
        self.updates: dict[int, tuple[Any, Any]] = {}
        self._seen, self._outer = seen, outer

    def get_current_value(self, variable: Variable) -> Value:
        """Return the value that this run reads; None: the variable's own."""
        key = id(variable)
        if key in self.state_mapping:
            return self.state_mapping[key]
        if key not in self._seen:
            found = self._outer.get_current_value(variable) if self._outer else None
            if variable.trainable or (found is None and variable._value is None):
                return found  # a weight of another part: TensorFlow finds out that it is read
            self._seen[key] = tf.convert_to_tensor(variable._value) if found is None else found
        return self._seen[key]

    def add_update(self, update: tuple[Any, Any]) -> None:
        """Keep an assignment; later reads of this run see it."""
        super().add_update(update)
        self.updates[id(update[0])] = update


class Region:
    """A layer, or some operations of a functional model, that is computed twice in training.

    Attributes:
        name: As a person calls it.
        unfit: Why it is computed once after all; empty: it is not known of any reason.
    """

    def __init__(self, name: str, layers: Sequence[Any], notes: list[str]) -> None:
        """Take the layers at the top of the part; a reason against it goes to ``notes``."""
        self.name, self.unfit = name, ""
        self._tops, self._notes = layers, notes
        self._probed = self._ran = False

    def run(self, function: Callable[..., Any], *args: Any, **options: Any) -> Value:
        """Return ``function(*args, **options)``, with less kept for the backward pass."""
        leaves = keras.tree.flatten((args, options))
        if self.unfit or not may_record() or not self._is_ready(leaves):
            return function(*args, **options)
        call = _Call(self, function, (args, options), leaves)
        if not self._probed:
            self._probed = True
            self.unfit = call.why_not()
            if self.unfit:
                self._notes.append(f"{self.name} is not recomputed: {self.unfit}.")
                return function(*args, **options)
        return call.result()

    @property
    def layers(self) -> list[Any]:
        """All layers inside, each once."""
        found = {id(each): each for top in self._tops for each in all_layers(top)}
        return list(found.values())

    def _is_ready(self, leaves: list[Any]) -> bool:
        """Return whether all tensors are plain ones and all variables exist."""
        if any(_is_other_tensor(leaf) for leaf in leaves):
            return False
        first, self._ran = not self._ran, True
        # Layers make their variables when first called. Some are never called: ask only once.
        return not first or all(layer.built for layer in self.layers if layer not in self._tops)


def _is_other_tensor(leaf: Tensor) -> bool:
    """Return whether it is symbolic, ragged or sparse: no gradient is led through those here."""
    return isinstance(leaf, keras.KerasTensor | tf.__internal__.CompositeTensor) and not isinstance(
        leaf, tf.Tensor | tf.Variable
    )


class _Call:
    """One call of a region: what goes in, in the order in which gradients come back."""

    def __init__(
        self,
        region: Region,
        function: Callable[..., Any],
        given: tuple[tuple[Any, ...], dict[str, Any]],
        leaves: list[Any],
    ) -> None:
        self.region, self.function, self.given, self.leaves = region, function, given, leaves
        self.places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, tf.Tensor)]
        self.inputs = [leaves[n] for n in self.places]
        masks = [mask_of(x) for x in self.inputs]
        self.masked = [n for n, mask in enumerate(masks) if mask is not None]
        self.inputs += [masks[n] for n in self.masked]
        weights = {id(v): v for top in region._tops for v in top.trainable_variables}
        self.weights = list(weights.values())
        with without_autocast():  # gradients are those of the stored dtype
            self.inputs += [tf.convert_to_tensor(v.value) for v in self.weights]
        self.surroundings = surroundings()
        self.outer = self.surroundings["stateless_scope"]
        # Layers inside write to the context of the call: the second run needs it as it is now.
        self.surroundings["current_call_ctx"] = copy.copy(self.surroundings["current_call_ctx"])

    def result(self) -> Value:
        """Run once, with the gradient that runs again; assign what the run assigns."""
        seen: dict[int, Any] = {}
        runs: list[_Run] = []

        @tf.custom_gradient
        def twice(*inputs: Any) -> Value:
            with unrecorded():
                runs.append(self.run(inputs, seen))

            def gradient(*upstream: Any, variables: Variable = None) -> Value:
                found = self._gradient(inputs, seen, upstream, list(variables or ()))
                count = len(inputs)
                return (found[:count], found[count:]) if variables else found

            return runs[0].differentiable, gradient

        results = twice(*self.inputs)
        for variable, value in runs[0].state.updates.values():
            variable.assign(value)
        return runs[0].packed(results)

    def run(self, inputs: Sequence[Any], seen: dict[int, Any]) -> _Run:
        """Run the function on tensors in place of those it was called with."""
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, inputs, strict=False):
            leaves[place] = tf.identity(tensor)  # a mask is an attribute of this tensor alone
        tensors = [leaves[place] for place in self.places]
        for place, mask in zip(self.masked, inputs[len(tensors) :], strict=False):
            set_mask(tensors[place], mask)
        first = len(tensors) + len(self.masked)
        weights = {id(v): x for v, x in zip(self.weights, inputs[first:], strict=True)}
        args, options = keras.tree.pack_sequence_as(self.given, leaves)
        with State(weights, seen, self.outer) as state:
            return _Run(self.function(*args, **options), state, self.region.layers)

    def why_not(self) -> str:
        """Return what makes a second run wrong; empty: nothing was found."""

        def traced(inputs: Sequence[Any]) -> Probe:
            seen: dict[int, Any] = {}
            run = self.run(inputs, seen)
            assigned = [v.path for v, _ in run.state.updates.values() if v.trainable]
            return Probe(run.differentiable, self.region.layers, assigned, list(seen.values()))

        with _as_it_was(self.surroundings):
            return why_not(traced, self.inputs)

    def _gradient(
        self, inputs: Sequence[Any], seen: dict[int, Any], upstream: Sequence[Any], more: list[Any]
    ) -> list[Any]:
        """Return gradients of the inputs and of ``more`` variables, by a second run."""
        late = _after(upstream, inputs, len(inputs) - len(self.weights))
        with _as_it_was(self.surroundings), tf.GradientTape() as tape:
            tape.watch([x for x in late if x.dtype.is_floating])
            with tf.name_scope(RECOMPUTE):  # by which a trace tells the second run from the first
                again = self.run(late, seen)
        found = tape.gradient(again.differentiable, [*late, *more], output_gradients=upstream)
        return [x if x is None else tf.convert_to_tensor(x) for x in found]


class _Run:
    """What came out of a run of the function."""

    def __init__(self, outputs: Tensor, state: State, layers: Sequence[Any]) -> None:
        self.outputs, self.state = outputs, state
        self.leaves = keras.tree.flatten(outputs)
        self.places = [
            n for n, x in enumerate(self.leaves) if isinstance(x, tf.Tensor) and x.dtype.is_floating
        ]
        self.losses = [(_owner(loss, layers), loss) for loss in state.losses]
        self.differentiable = [self.leaves[n] for n in self.places] + list(state.losses)

    def packed(self, results: Sequence[Any]) -> Value:
        """Put ``results`` for the outputs that have a gradient; losses to their layers."""
        leaves = list(self.leaves)
        for place, result in zip(self.places, results, strict=False):
            mask = mask_of(leaves[place])
            leaves[place] = result
            if mask is not None:
                set_mask(result, mask)
        for (owner, _), loss in zip(self.losses, results[len(self.places) :], strict=True):
            if owner is not None:
                owner.add_loss(loss)
        return keras.tree.pack_sequence_as(self.outputs, leaves)


def _owner(loss: Loss, layers: Sequence[Any]) -> Value:
    """Return the layer that added a loss, which forgets this tensor: another leaves the region."""
    for layer in layers:
        if id(loss) in layer._loss_ids:
            layer._loss_ids.discard(id(loss))
            return layer
    return None


def _as_it_was(kept: dict[str, Any]) -> AbstractContextManager[None]:
    """Restore Keras' own surroundings of the first run, for the second."""
    return surrounded_by({**kept, "current_call_ctx": copy.copy(kept["current_call_ctx"])})


def _after(upstream: Sequence[Any], inputs: Sequence[Any], count: int) -> list[Any]:
    """Return the inputs, the first ``count`` tied to the gradients that come from above.

    Without the tie TensorFlow would run the second time at once, and XLA would find that it is
    the same as the first and keep the first. XLA does not heed control dependencies, so a zero
    that it cannot foresee is added (the same means as in ``tf.recompute_grad``).
    """
    if tf.executing_eagerly() or all(x is None for x in upstream):
        return list(inputs)
    firsts = [tf.cast(tf.reshape(x, [-1])[:1], tf.float32) for x in upstream if x is not None]
    first = tf.reduce_max(tf.concat(firsts, 0))  # of an empty tensor: -inf
    zero = tf.where(tf.math.is_nan(first), first, 0.0)
    tied = [x + tf.cast(zero, x.dtype) if x.dtype.is_floating else x for x in inputs[:count]]
    return [*tied, *inputs[count:]]


class Probe(NamedTuple):
    """What a trial run of a part left behind."""

    outputs: list[Any]
    layers: Sequence[Any]
    assigned_weights: list[str]
    remembered: list[Any]
    """Values of variables that the second run is given."""


def why_not(traced: Callable[[Sequence[Any]], Probe], inputs: Sequence[Any]) -> str:
    """Trace a part once more and look for what a second run would change.

    Args:
        traced: Runs the part on placeholders.
        inputs: Tensors that the placeholders stand for.

    Returns:
        The first reason against a second run as the rest of a sentence; empty: none was found.
    """
    graph = tf.__internal__.FuncGraph("remat_check")
    try:
        with graph.as_default():
            stand_ins = [tf.compat.v1.placeholder(x.dtype, x.shape) for x in inputs]
            probe = traced(stand_ins)
    except RuntimeError as error:
        if "merge_call" in str(error):  # replicas meet in it, which no graph of its own allows
            return ""
        raise
    return _lost(graph, probe) or _kept_by_a_layer(graph, probe)


def _lost(graph: Graph, probe: Probe) -> str:
    """Return what a gradient would miss, or what would happen twice."""
    if not probe.outputs:
        return "nothing that comes out of it has a gradient"
    if probe.assigned_weights:
        return f"it assigns its own weight {probe.assigned_weights[0]}"
    known = {id(x) for x in probe.remembered}
    for external, _ in graph.captures:
        constant = isinstance(external, tf.__internal__.EagerTensor) or id(external) in known
        if external.dtype.is_floating and not constant:
            return f"it uses {external.name}, which is not among its arguments"
    for name in _stateful(graph):
        return f"its operation {name} gives or does something else each time"
    return ""


def _kept_by_a_layer(graph: Graph, probe: Probe) -> str:
    """Return a tensor that a layer keeps, through which a gradient might be taken later."""
    for layer in probe.layers:
        for name, value in vars(layer).items():
            if isinstance(value, tf.Tensor) and getattr(value, "graph", None) is graph:
                setattr(layer, name, None)  # of a graph that is thrown away
                return f"{layer.name} keeps a tensor of its call in {name}"
    return ""


def _stateful(graph: Graph) -> Iterator[str]:
    """Yield kinds of operations, also in loops and branches, that must not run twice."""
    for operation in graph.get_operations():
        if operation.op_def.is_stateful and not operation.type.startswith(HARMLESS):
            yield operation.type
    for function in graph.as_graph_def().library.function:
        for node in function.node_def:
            definition = operation_definition(node.op)  # None: a function of the user
            if definition and definition.is_stateful and not node.op.startswith(HARMLESS):
                yield node.op
