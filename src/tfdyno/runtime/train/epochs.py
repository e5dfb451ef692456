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

from tfdyno.runtime.base.keras_internals import epoch_iterator_changed, epoch_iterator_type
from tfdyno.runtime.train.array_order import order_for, repeats
from tfdyno.runtime.train.replay import not_repeatable, why_full_replay
from tfdyno.runtime.train.session import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import DataIterator, Strategy, Value

KerasEpochs: Any = epoch_iterator_type()


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
