"""The states of the random number generators that a training draws from in its process.

Python's, numpy's global one, the seeds that TensorFlow draws for operations without one, its
global generator and Keras' global seed generator. Seed generators of layers are variables of the
model. Out of reach: generators that the user's code holds (``numpy.random.default_rng``), and the
counters inside TensorFlow's old stateful random operations (``tf.random.uniform`` in a graph).
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.runtime.base.keras_internals import made_seed_generator, seed_generator
from tfdyno.runtime.base.tensorflow_internals import global_generator, global_seed, operation_seeds

if TYPE_CHECKING:
    from collections.abc import Container

    from tfdyno.core.base.untyped import DataIterator, Value


def random_state() -> dict[str, Any]:
    """Return all states as plain values; None for a generator that nothing has used yet."""
    return {
        "python": random.getstate(),
        "numpy": _listed(np.random.get_state(legacy=False)),
        "tensorflow_seeds": _tensorflow_seeds(),
        "tensorflow_generator": _values(global_generator()),
        "keras": _values(seed_generator()),
    }


def drawn_since(state: dict[str, Any]) -> frozenset[str]:
    """Return which of Python's and numpy's generators drew since ``random_state`` returned this."""
    now = random_state()
    return frozenset(name for name in ("python", "numpy") if now[name] != state[name])


def restore_random_state(state: dict[str, Any], *, leave: Container[str] = ()) -> None:
    """Set what ``random_state`` returned; generators that it had not are left as they are.

    Args:
        state: What it returned.
        leave: ``python`` or ``numpy``: left as well, where another thread draws from it.
    """
    if state["keras"] is not None:
        # Made where it is missing: that draws from Python's, which is therefore set later.
        _assign(made_seed_generator(), state["keras"])
    if state["tensorflow_generator"] is not None:
        import tensorflow as tf

        _assign(tf.random.get_global_generator(), state["tensorflow_generator"])
    if state["tensorflow_seeds"] is not None:
        _set_tensorflow_seeds(*state["tensorflow_seeds"])
    if "python" not in leave:
        random.setstate(state["python"])
    if "numpy" not in leave:
        np.random.set_state(state["numpy"])


def _listed(state: Value) -> Value:
    """Write numpy's state with lists for its arrays."""
    if isinstance(state, dict):
        return {key: _listed(value) for key, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


def _tensorflow_seeds() -> tuple[int, Any] | None:
    """Return TensorFlow's global seed, and where it is in drawing operations' seeds from it."""
    seed, draws = global_seed(), operation_seeds()
    return None if seed is None or draws is None else (int(seed), draws.getstate())


def _set_tensorflow_seeds(seed: int, state: Value) -> None:
    import tensorflow as tf

    if global_seed() != seed:  # anew only then: it also forgets compiled kernels
        tf.random.set_seed(seed)
    draws = operation_seeds()
    if draws is not None:
        draws.setstate(state)


def _values(generator: DataIterator) -> list[int] | None:
    return None if generator is None else np.asarray(generator.state).ravel().tolist()


def _assign(generator: DataIterator, values: list[int]) -> None:
    state = generator.state
    state.assign(np.array(values, np.asarray(state).dtype).reshape(tuple(state.shape)))
