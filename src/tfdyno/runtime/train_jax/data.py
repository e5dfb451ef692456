"""Batches for several devices and processes, whatever kind of data ``fit`` is given.

Every process reads the same whole batches, as one process would, and puts onto its own devices the
part that belongs there. So arrays, ``tf.data``, PyDatasets and generators work alike, the order of
the samples is that of one process, and the last, smaller batch of an epoch, which the devices
cannot share, is computed by each of them as a whole: no sample is lost and no number differs.
"""

from __future__ import annotations

import contextlib
import hashlib
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from keras import tree

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.jax_values import spread, whole
from tfdyno.runtime.base.keras_internals import epoch_iterator_changed
from tfdyno.runtime.base.replaced import replaced
from tfdyno.runtime.checkpoint.random_states import restore_random_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Batch, DataIterator, Instance, Tensor, Value
    from tfdyno.runtime.train_jax.start import World


NO_BATCH = object()
"""Stands for the batches of an epoch of which an earlier session has taken all."""


class Batches:
    """How ``fit`` gets its batches in this session.

    Attributes:
        ran: Called with the last step of each call of the train function that has returned, from 0,
            when Keras asks for the next. A callback for each batch would do as well, but for its
            sake Keras would read the loss from the device after every step.
        skip: Steps of the next epoch that an earlier session has taken.
        epochs_before: That earlier sittings have read.
        replay: Given what reads an epoch, brings data whose order Python draws to its place.
        last: Last step of the call that is under way, or was at last.
        largest: Samples of the largest batch so far.
    """

    def __init__(self, world: World, compare: Callable[[int], None] | None = None) -> None:
        """Take the devices, and what compares a number of all processes.

        Without that the first batch is not looked at: it is none of a training.
        """
        self._world, self._compare = world, compare
        self.ran: Callable[[int], None] | None = None
        self.replay: Callable[[Callable[[], None]], None] | None = None
        self.is_taken, self.last = False, 0
        self.skip = self.epochs_before = self.largest = 0

    def placed(self, batch: Batch) -> Value:
        """Return a batch over the devices.

        Raises:
            UsageError: It cannot be shared by them, holds texts, or differs between processes.
        """
        return tree.map_structure(self._one, self.seen(batch))

    @property
    def is_alone(self) -> bool:
        """Whether there is one device, to which Keras itself brings the batches."""
        return self._world.distribution is None

    def seen(self, batch: Batch) -> Value:
        """Return a batch as it is, when it was looked at; raises ``UsageError`` as ``placed``."""
        leaves = [np.asarray(leaf) for leaf in tree.flatten(batch) if leaf is not None]
        if self._compare and not self.largest:
            self._check_first(leaves, self._compare)
        self.largest = max(self.largest, *(len(one) for one in leaves if one.ndim))
        return batch

    def _one(self, leaf: Tensor) -> Value:
        if leaf is None:
            return None
        value = np.asarray(leaf)
        value = value.astype(jax.dtypes.canonicalize_dtype(value.dtype), copy=False)
        is_shared = value.ndim > 0 and len(value) % self._world.mesh.replica_count == 0
        name = self._world.mesh.data_name
        mesh = self._world.distribution.device_mesh.backend_mesh
        spec = jax.sharding.PartitionSpec(*([name] if is_shared else []))
        return spread(value, jax.sharding.NamedSharding(mesh, spec))

    def _check_first(
        self, leaves: list[np.ndarray[Any, Any]], compare: Callable[[int], None]
    ) -> None:
        if any(one.dtype.kind in "OSU" for one in leaves):
            remedy = "turn them into numbers in the dataset"
            raise UsageError("the data hold texts, which JAX cannot compute with", remedy=remedy)
        size, parts = len(leaves[0]), self._world.mesh.replica_count
        if size % parts:
            raise UsageError(
                f"a batch of {size} cannot be shared by {parts} replicas",
                why="each takes as many samples of it",
                remedy=f"give a batch that {parts} divides, in the script or by --set "
                "batch_size=N (each)",
            )
        digest = hashlib.blake2b(digest_size=4)
        for one in leaves:
            digest.update(np.ascontiguousarray(one).tobytes())
        compare(int.from_bytes(digest.digest(), "big"))


@contextlib.contextmanager
def used_by_all(world: World) -> Iterator[None]:
    """Let ``evaluate`` and ``predict`` of the user's code take their batches so as well.

    What a model predicts lies on the devices of all processes; each gets all of it.
    """
    import keras

    original = keras.Model.make_predict_function

    def make(self: Instance, force: bool = False) -> Value:
        if self.predict_function is not None and not force:
            return self.predict_function
        original(self, force=force)
        predict = self.predict_function

        def predicted(state: Value, iterator: DataIterator) -> Value:
            outputs, after = predict(state, iterator)
            return tree.map_structure(whole, outputs), after

        self.predict_function = predicted
        return predicted

    with replaced((keras.Model, "make_predict_function", make)), batches_of(Batches(world)):
        yield


def batches_of(batches: Batches) -> AbstractContextManager[None]:
    """Let ``fit`` and ``evaluate`` take their batches so, until the block ends.

    Raises:
        UsageError: This Keras makes its batches otherwise.
    """
    return epoch_iterator_changed(lambda own: _iterator_class(own, batches))


def _iterator_class(base: Value, batches: Batches) -> Value:
    class Placing(base):
        """Keras' own, with the place of each batch, and without the steps that are done."""

        def _get_iterator(self) -> Iterator[Any]:
            turns, batches.epochs_before = batches.epochs_before, 0
            done = 0
            if turns and self.steps_per_epoch:  # one reading goes on over several epochs
                size = self.data_adapter.num_batches
                read = turns * self.steps_per_epoch
                turns, done = divmod(read, size) if size else (0, read)
            _turn(self.data_adapter, turns)
            left = islice(self.data_adapter.get_jax_iterator(), done, None)
            if not batches.is_alone:
                yield from map(batches.placed, left)
                return
            ahead = getattr(self, "_one_batch_ahead_iterator", None)  # as Keras does off the CPU
            seen = map(batches.seen, left)
            yield from ahead(seen) if ahead and jax.default_backend() != "cpu" else seen

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._ran = None if batches.is_taken else batches.ran  # else it is that of validation
            batches.is_taken = True

        def _enumerate_iterator(self) -> Iterator[Any]:
            skip, batches.skip = batches.skip, 0
            _read_again(self, batches, super()._enumerate_iterator)
            every = super()._enumerate_iterator()
            for begin, end, iterator in _without(every, skip) if skip else every:
                if not self._ran:
                    yield begin, end, iterator
                    continue
                batches.last = end
                yield begin, end, iterator
                self._ran(end)

    return Placing


def replay_of(
    epochs: int,
    before: dict[str, Any],
    after: dict[str, Any],
    progress: Callable[[str], None],
) -> Callable[[Callable[[], None]], None]:
    """Return what brings data to their place, given what reads an epoch of them.

    Args:
        epochs: That are done.
        before: The random generators as the first of them found them.
        after: As the next one finds them.
        progress: Called with a line for each.
    """

    def replay(read_epoch: Callable[[], None]) -> None:
        restore_random_state(before)
        for epoch in range(epochs):
            progress(f"reading the data of epoch {epoch + 1} again")
            read_epoch()
        restore_random_state(after)

    return replay


def _read_again(
    iterator: Value, batches: Batches, epoch: Callable[[], Iterator[tuple[int, int, Any]]]
) -> None:
    """Read the epochs before again, of a PyDataset: what Python draws may decide its order."""
    replay, batches.replay = batches.replay, None
    if replay is None or getattr(iterator.data_adapter, "py_dataset", None) is None:
        return
    batches.epochs_before = 0

    def read_epoch() -> None:
        with iterator.catch_stop_iteration():
            for begin, end, own in epoch():
                for _ in range(begin, end + 1):
                    next(own)

    replay(read_epoch)


def _turn(adapter: Value, epochs: int) -> None:
    """Draw again where a dataset that shuffles draws an order each time that it is read."""
    dataset = getattr(adapter, "_dataset", None)
    if dataset is None or not hasattr(dataset, "element_spec"):
        return
    for _ in range(epochs):
        next(iter(dataset), None)


def _without(every: Iterator[Any], skip: int) -> Iterator[Any]:
    """Drop the calls of an epoch whose steps are done; at least one stays, if only for its end.

    Args:
        every: First and last step of each call, and the batches.
        skip: Steps that are done.
    """
    for begin, end, iterator in every:
        if end < skip:
            for _ in range(end - begin + 1):
                next(iterator, None)
        elif (first := next(iterator, NO_BATCH)) is not NO_BATCH:
            yield begin, end, chain([first], iterator)
            yield from every
            return
        else:
            break
    yield skip, skip - 1, NO_BATCH
