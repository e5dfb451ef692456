"""A part of a Keras model whose insides JAX computes again in the backward pass.

``keras.RematScope`` hands a layer to ``jax.checkpoint`` as it is: what the layer assigns (averages
of BatchNormalization, the state of Dropout) leaves the traced function, and JAX refuses it. So what
a part assigns comes out of it as a result here, and is assigned once, outside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import keras

from tfdyno.runtime.base.keras_internals import all_layers, mask_of, stateless_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.base.untyped import Loss, Value, Variable


class _Inner(keras.StatelessScope):
    """Variables as the scope around has them, and all that the part assigns."""

    def __init__(self, outer: Value) -> None:
        super().__init__(collect_losses=outer.collect_losses, initialize_variables=False)
        self.updates: dict[int, tuple[Any, Any]] = {}
        self._outer = outer

    def get_current_value(self, variable: Variable) -> Value:
        found = super().get_current_value(variable)
        return self._outer.get_current_value(variable) if found is None else found

    def add_update(self, update: tuple[Any, Any]) -> None:
        super().add_update(update)
        self.updates[id(update[0])] = update


class CheckpointedRegion:
    """A layer, or some operations of a functional model, that is computed twice in training.

    Attributes:
        name: As a person calls it.
    """

    def __init__(self, name: str, layers: Sequence[Any], notes: list[str]) -> None:
        """Take the layers at the top of the part; a reason against it goes to ``notes``."""
        self.name = name
        self._tops, self._notes = layers, notes

    def run(self, function: Callable[..., Any], *args: Any, **options: Any) -> Value:
        """Return ``function(*args, **options)``, with less kept for the backward pass."""
        leaves = keras.tree.flatten((args, options))
        places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
        outer = stateless_scope()
        if outer is None or not places:
            return function(*args, **options)
        if any(mask_of(leaves[place]) is not None for place in places):
            note = f"{self.name} is not recomputed: a mask hangs on what it is given."
            self._notes += [note] * (note not in self._notes)
            return function(*args, **options)
        assigned: list[Any] = []
        owners: list[Any] = []

        def pure(inputs: list[Any]) -> Value:
            given = list(leaves)
            for place, value in zip(places, inputs, strict=True):
                given[place] = value
            again, named = keras.tree.pack_sequence_as((args, options), given)
            with _Inner(outer) as scope:
                found = function(*again, **named)
            assigned[:] = [variable for variable, _ in scope.updates.values()]
            owners[:] = [self._owner(loss) for loss in scope.losses]
            return found, [value for _, value in scope.updates.values()], list(scope.losses)

        found, values, losses = jax.checkpoint(pure)([leaves[place] for place in places])
        for variable, value in zip(assigned, values, strict=True):
            variable.assign(value)
        for owner, loss in zip(owners, losses, strict=True):
            if owner is not None:
                owner.add_loss(loss)
        return found

    def _owner(self, loss: Loss) -> Value:
        """Return the layer that added a loss, which forgets this one: another leaves the part."""
        for layer in (inner for top in self._tops for inner in all_layers(top)):
            if id(loss) in layer._loss_ids:
                layer._loss_ids.discard(id(loss))
                return layer
        return None
