"""Steps that Keras runs on JAX: how they are waited for, what memory they held, their forward pass.

The train step itself is the one of Keras' own ``fit`` there too: see ``fit``.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import jax
import keras
from keras import tree

from tfdyno.runtime.base.keras_internals import data_adapter
from tfdyno.runtime.base.memory_counters import PeakMemory
from tfdyno.runtime.base.replaced import ignored, replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import DataIterator, Model, Value
    from tfdyno.runtime.bench.clock import StepClock


def is_on_cpu() -> bool:
    """Return whether the steps run on CPUs."""
    return jax.default_backend() == "cpu"


def kept_alone(notes: list[str]) -> AbstractContextManager[None]:
    """Let the user's code set a distribution of its own to no effect: one device is measured.

    Args:
        notes: Receives a sentence for each call.
    """
    place = keras.distribution
    names = ("initialize", "set_distribution")
    said = [(name, f"The code calls {name}; one device is measured.") for name in names]
    return replaced(*((place, name, ignored(note, notes)) for name, note in said))


class PeakOnJax(PeakMemory):
    """Reads the most that the first card held; JAX cannot forget what was held before."""

    @property
    def is_of_a_card(self) -> bool:
        """Whether there is nothing to reset: JAX keeps one peak for the whole process."""
        return False

    def read(self) -> tuple[int, str]:
        """Return bytes, and what they are of."""
        stats = jax.local_devices()[0].memory_stats() or {}
        if "peak_bytes_in_use" in stats:
            return int(stats["peak_bytes_in_use"]), "allocator"
        return super().read()


def waited_for(clock: StepClock, result: Value) -> Value:
    """Let the clock wait for what a step gave: JAX has no other way to tell its end."""
    clock.sync = partial(jax.block_until_ready, result)
    return result


def endless(adapter: Value, full: int) -> Iterator[Any]:
    """Yield the batches that Keras itself makes of arrays on JAX, again and again.

    Args:
        adapter: Of Keras, for arrays.
        full: Batches of a pass that are full; 0: all.
    """
    while True:
        yield from islice(adapter.get_jax_iterator(), full or None)
        adapter.on_epoch_end()


def forward(model: Model, x: Value, clock: StepClock, first: Callable[[Any], None]) -> bool:
    """Run the predict function of Keras on JAX until the clock has enough.

    Args:
        model: Built or not.
        x: Dataset, PyDataset, generator or arrays.
        clock: Is started.
        first: Takes what the first call gave.

    Returns:
        Whether it was enough; else the data ended.
    """
    several = int(model.steps_per_execution)
    model.make_predict_function()
    run = model.predict_function
    clock.start()
    batches = iter(data_adapter(x).get_jax_iterator())
    state: Value = None
    while call := list(islice(batches, several)):
        if state is None:
            if not all(layer.built for layer in model._flatten_layers()):
                model(_inputs(call[0]))
            state = model._get_jax_state(trainable_variables=True, non_trainable_variables=True)
        outputs, state = waited_for(clock, run(state, iter(call)))
        is_enough = clock.steps(len(call))
        first(outputs)
        first = _nothing
        del outputs
        clock.sync = _all_done  # lets go of them, as predict does
        if is_enough:
            return True
    return False


def _inputs(batch: DataIterator) -> Value:
    """Return the inputs of a batch as Keras unpacks it."""
    from keras.utils import unpack_x_y_sample_weight

    return tree.map_structure(jax.numpy.asarray, unpack_x_y_sample_weight(batch)[0])


def _nothing(_outputs: Value) -> None:
    """Do nothing with what later calls give."""


def _all_done() -> None:
    """Wait for nothing: no step is under way."""
