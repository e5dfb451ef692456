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

if TYPE_CHECKING:
    from collections.abc import Container

    from tfdyno.core.base.untyped import DataIterator, Value

_KERAS_NAME = "global_seed_generator"


def random_state() -> dict[str, Any]:
    """All states as plain values; None for a generator that nothing has used yet."""
    return {
        "python": random.getstate(),
        "numpy": _listed(np.random.get_state(legacy=False)),
        "tensorflow_seeds": _tensorflow_seeds(),
        "tensorflow_generator": _values(_tensorflow_generator()),
        "keras": _values(_keras_generator()),
    }


def drawn_since(state: dict[str, Any]) -> frozenset[str]:
    """Which of Python's and numpy's generators have drawn since ``random_state`` returned this."""
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
        from keras.src.random.seed_generator import global_seed_generator

        _assign(global_seed_generator(), state["keras"])
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
    """Numpy's state with lists for its arrays."""
    if isinstance(state, dict):
        return {key: _listed(value) for key, value in state.items()}
    return state.tolist() if isinstance(state, np.ndarray) else state


def _tensorflow_seeds() -> tuple[int, Any] | None:
    """TensorFlow's global seed, and where it is in drawing seeds of operations from it."""
    from tensorflow.python.eager import context

    seed, draws = context.global_seed(), getattr(context.context(), "_rng", None)
    return None if seed is None or draws is None else (int(seed), draws.getstate())


def _set_tensorflow_seeds(seed: int, state: Value) -> None:
    import tensorflow as tf
    from tensorflow.python.eager import context

    if context.global_seed() != seed:  # anew only then: it also forgets compiled kernels
        tf.random.set_seed(seed)
    draws = getattr(context.context(), "_rng", None)
    if draws is not None:
        draws.setstate(state)


def _tensorflow_generator() -> Value:
    from tensorflow.python.ops import stateful_random_ops

    return stateful_random_ops.global_generator  # the public getter would make one


def _keras_generator() -> Value:
    from keras.src.backend.common import global_state

    return global_state.get_global_attribute(_KERAS_NAME)


def _values(generator: DataIterator) -> list[int] | None:
    return None if generator is None else np.asarray(generator.state).ravel().tolist()


def _assign(generator: DataIterator, values: list[int]) -> None:
    state = generator.state
    state.assign(np.array(values, np.asarray(state).dtype).reshape(tuple(state.shape)))
