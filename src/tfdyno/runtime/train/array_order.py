"""The order of arrays in an epoch, drawn anew for each epoch from one seed.

With a seed Keras draws the same order in every epoch: the random operation begins anew with each
iterator (Keras 3.15, seen in ``ArrayDataAdapter.get_tf_dataset``). Whoever has set no seed shall
not get that from the one that tfdyno sets to be able to go on after a kill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.runtime.base.keras_internals import shuffles_arrays
from tfdyno.runtime.base.replaced import replaced
from tfdyno.runtime.base.tensorflow_internals import global_seed

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Dataset, Value


class ArrayOrder:
    """Orders that depend on the seed and the epoch alone."""

    def __init__(self, seed: int) -> None:
        """Begin with epoch 0."""
        self.seed = seed
        with tf.init_scope(), tf.device("CPU:0"):
            self._epoch = tf.Variable(0, dtype=tf.int64, trainable=False, name="epoch_of_order")

    def begin(self, epoch: int) -> None:
        """Take iterators that are made next as of this epoch."""
        self._epoch.assign(epoch)

    def dataset(self, adapter: Value) -> Dataset:
        """Return Keras' dataset of an array adapter, with these orders in place of its own."""

        def shuffle(values: Value, *_args: Any, **_options: Any) -> Value:
            seed = tf.stack([tf.constant(self.seed, tf.int64), self._epoch.read_value()])
            return tf.random.experimental.stateless_shuffle(values, seed)

        with replaced((tf.random, "shuffle", shuffle)):
            return adapter.get_tf_dataset()


def order_for(adapter: Value, seed: int | None) -> ArrayOrder | None:
    """Return the order for the data of a ``fit``; None where Keras' own is right.

    Args:
        adapter: Keras' data adapter.
        seed: That tfdyno has drawn; None: the user has set one. A seed that the user's code has
            set since then counts as the user's.
    """
    if seed is None or global_seed() != seed:
        return None
    return ArrayOrder(seed) if shuffles_arrays(adapter) else None


def repeats(adapter: Value) -> bool:
    """Return whether Keras draws one order for all epochs."""
    return shuffles_arrays(adapter) and global_seed() is not None
