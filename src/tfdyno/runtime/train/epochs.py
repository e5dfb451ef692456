"""The epochs of a training: where in the data it stands, and how a later session gets there.

Keras makes a new iterator of the same dataset for every epoch. With the same seed a new process
that makes as many iterators as there were epochs draws the same order, without reading what lies
between. Data whose order depends on what was read (Python generators) are read again instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.runtime.base.keras_internals import (
    epoch_iterator_changed,
    epoch_iterator_type,
    shuffles_arrays,
)
from tfdyno.runtime.base.replaced import replaced
from tfdyno.runtime.base.tensorflow_internals import global_seed
from tfdyno.runtime.train.session import Cursor
from tfdyno.runtime.workload.input_stages import (
    PLAIN,
    SOURCES,
    effects,
    kind,
    order_is_free,
    reshuffles,
    times,
    title,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import DataIterator, Dataset, Strategy, Value

KerasEpochs: Any = epoch_iterator_type()
_LATER = {"shuffle", "repeat", "concatenate", "cache"}
"""Stages that make an iterator of (one of) their inputs only when they need its elements."""
_KNOWN = SOURCES | PLAIN | {"shuffle", "random", "repeat"}


@dataclass(slots=True, kw_only=True)
class Hooks:
    """What the loop does at certain moments of the data."""

    made: Callable[[Any], None]
    """The dataset is there, with its ``element_spec``; nothing is built yet."""
    change: Callable[[Any], Any]
    """Another dataset for the same elements."""
    change_test: Callable[[Any], Any]
    """The same for the data of validation."""
    begun: Callable[[], None]
    """The first epoch of this session stands at its place; its metrics are reset."""
    progress: Callable[[str], None]
    drawn_seed: int | None = None
    """That tfdyno has set because nobody else has; None: the user's holds."""
    notes: list[str] = field(default_factory=list)
    dataset: Any = None
    """The batches of an epoch, shared by the replicas."""
    place: Cursor = field(default_factory=Cursor)
    reads_again: bool = False
    """Whether the data of the epochs before are read again: Python's code in them draws anew."""
    calling: int = 0
    """Batches of the epoch that are done when the train function returns."""
    whole: Callable[[Any], Any] | None = None
    """Marks an iterator that has batches enough for a whole execution; None: nobody asks."""
    start: Cursor | None = None
    """Where an earlier session ended; None: this is the first."""


class Epochs(KerasEpochs):
    """Keras' iterator over epochs that knows its place, and can begin at another."""

    _num_batches: int | None

    def __init__(self, hooks: Hooks, distribute_strategy: Strategy, **options: Any) -> None:
        """Make the dataset of Keras' ``fit``, whose arguments these are."""
        super(KerasEpochs, self).__init__(**options)
        self._distribute_strategy, self._hooks = distribute_strategy, hooks
        self._has_begun = False
        self._order = order_for(self.data_adapter, hooks.drawn_seed)
        if not self._order and repeats(self.data_adapter):
            hooks.notes.append("Keras gives arrays the same order in each epoch: a seed is set.")
        with tf.device("CPU:0"):  # weights of classes and copies of arrays are no work for a card
            made = self._order.dataset(self.data_adapter) if self._order else None
            made = made or self.data_adapter.get_tf_dataset()
        dataset = hooks.change(made)
        hooks.made(dataset)
        self._why_again = "" if self._order else why_full_replay(dataset)
        hooks.reads_again = bool(self._why_again)
        if hooks.start:
            hooks.notes += not_repeatable(dataset)
        self._distributed_dataset = distribute_strategy.experimental_distribute_dataset(dataset)
        hooks.dataset = self._distributed_dataset
        hooks.place.batch_count = self._num_batches

    def _enumerate_iterator(self) -> Iterator[tuple[int, int, Any]]:
        hooks = self._hooks
        if self._order:
            self._order.begin(hooks.place.epoch)
        start, hooks.start = hooks.start, None
        if start:
            self._go_to(start)
        done = start.step if start else 0
        place, whole = hooks.place, hooks.whole
        place.step = done
        for begin, end, iterator in super()._enumerate_iterator():
            if begin < done:
                _read(iterator, min(end + 1, done) - begin)
                continue
            if not self._has_begun:
                self._begin()
            count = self.steps_per_epoch or self._num_batches
            place.batch_count, place.step = count, begin
            hooks.calling = count if count and end >= count else end + 1
            if whole and self._num_batches and end < count:
                iterator = whole(iterator)  # noqa: PLW2901
            yield begin, end, iterator
        self._begin()  # where an epoch had ended but for its validation

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._hooks.begun()

    def _go_to(self, start: Cursor) -> None:
        """Pass the epochs before: their iterators are made, and read where that matters."""
        reads = bool(self._why_again or self.steps_per_epoch)
        why = f": {self._why_again}" if self._why_again else ""
        for epoch in range(start.epoch):
            if reads:
                self._hooks.progress(f"reading the data of epoch {epoch + 1} again{why}")
            for _, _, iterator in super()._enumerate_iterator():
                if reads and not _read(iterator, self.steps_per_execution):
                    break
                if not reads and self._num_batches is None:
                    break
            if self._num_batches is None and not self.steps_per_epoch:
                self._num_batches = start.batch_count


class Validation(KerasEpochs):
    """Keras' iterator over the data of validation."""

    def __init__(self, hooks: Hooks, distribute_strategy: Strategy, **options: Any) -> None:
        """Make the dataset of Keras' ``evaluate``, whose arguments these are."""
        super(KerasEpochs, self).__init__(**options)
        self._distribute_strategy = distribute_strategy
        dataset = hooks.change_test(self.data_adapter.get_tf_dataset())
        self._distributed_dataset = distribute_strategy.experimental_distribute_dataset(dataset)


def _read(iterator: DataIterator, count: int) -> bool:
    """Take batches and let them go; False where there were fewer."""
    for _ in range(count):
        try:
            next(iterator)
        except (StopIteration, tf.errors.OutOfRangeError):
            return False
    return True


def epochs_of(hooks: Hooks) -> AbstractContextManager[None]:
    """Let the next call of Keras' ``fit`` take its epochs from here, not its validation."""
    made: list[Epochs] = []

    def make(**options: Any) -> Value:
        if made:
            return Validation(hooks, **options)
        made.append(Epochs(hooks, **options))
        return made[0]

    return epoch_iterator_changed(lambda _own: make)


class ArrayOrder:
    """Orders of arrays that depend on the seed and the epoch alone.

    With a seed Keras draws the same order in every epoch: the random operation begins anew with
    each iterator (Keras 3.15, seen in ``ArrayDataAdapter.get_tf_dataset``). Whoever has set no
    seed shall not get that from the one that tfdyno sets to be able to go on after a kill.
    """

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


def why_full_replay(dataset: Dataset) -> str:
    """Return why the earlier epochs have to be run through, with the stage; empty: they need not.

    Taking nothing from their iterators is enough where all that differs between epochs is decided
    when an iterator is made: ``shuffle`` takes its next seed then, and random operations inside of
    a function begin anew with each iterator.

    Args:
        dataset: A ``tf.data.Dataset`` before it is distributed.
    """
    for stage in walk(dataset):
        reason = _own_reason(stage) or _reason_below(stage)
        if reason:
            return f"{title(stage)} {reason}"
    return ""


def _own_reason(stage: Dataset) -> str:
    if kind(stage) not in _KNOWN:
        return "cannot be looked into"
    found = effects(stage)
    if found.python:
        return "runs Python code, which may keep a state of its own"
    if found.keeps:
        return f"keeps a state from epoch to epoch ({found.keeps})"
    if found.captures:
        return f"uses {found.captures}"
    return ""


def _reason_below(stage: Dataset) -> str:
    if kind(stage) not in _LATER or (kind(stage) == "repeat" and times(stage) == 1):
        return ""
    below = stage._inputs()[1:] if kind(stage) == "concatenate" else stage._inputs()
    for each in (found for dataset in below for found in walk(dataset)):
        if reshuffles(each):
            return f"starts the {title(each)} before it only when it needs elements"
    return ""


def not_repeatable(dataset: Dataset) -> tuple[str, ...]:
    """Return sentences on stages whose elements a seed does not repeat, whatever is replayed."""
    free = dataset.options().deterministic is False
    found = []
    for stage in walk(dataset):
        if "Parallel" in type(stage).__name__ and effects(stage).draws:
            found.append(
                f"{title(stage)} draws random numbers on several threads: a seed does not repeat "
                "them; use the tf.random.stateless_ functions."
            )
        elif order_is_free(stage, free=free):
            found.append(
                f"{title(stage)} gives its elements in the order they get ready "
                "(deterministic=False): a seed does not repeat it."
            )
    return tuple(found)
