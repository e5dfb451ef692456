"""The data of a training loop of the script's own: what its first step was fed from."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NoReturn

import tensorflow as tf

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.runtime.bench.loop import Loop, LoopDone, watched
from tfdyno.runtime.diagnose.waits import Reading, reading_watched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import Function, Value
    from tfdyno.core.choose.workload import Workload

NO_DATA = "there is no input pipeline to measure"
NAME_IT = "name the function that returns the data: file.py:function"


class LoopData(Loop):
    """Finds the step of a loop, and uses what the loop reads in place when it has ended once."""

    def __init__(self, workload: Workload, use: Callable[[Any, str], Any], batch_size: int) -> None:
        """Watch for a step.

        Args:
            workload: The script.
            use: Called with the dataset and a title; ``used`` holds what it returned.
            batch_size: Refused where it is not 0: a loop makes its own batches.
        """
        super().__init__(workload, Recipe(batch_size=batch_size))
        self.reading = Reading(lambda _waited_s: None)
        self.used: tuple[Any, ...] = ()
        self.failed: TfdynoError | None = None
        self._use = use
        self._read: Any = None

    @property
    def is_found(self) -> bool:
        """Whether the data was used, or that it cannot be."""
        return bool(self.used or self.failed or self.error)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch around the script."""
        with watched(self), reading_watched(self.reading):
            yield

    def function_called(
        self,
        function: Function,
        call: Callable[..., Any],
        args: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Value:
        """Run one call of a ``tf.function``; keep what an iterator among its arguments reads."""
        for value in (*args, *named.values()):
            if isinstance(value, tf.data.Iterator):
                self._read = self.reading.dataset_of(value)
        return super().function_called(function, call, args, named)

    def _began(self, result: Value, seconds_s: float) -> None:
        """The next step is looked at."""

    def _timed(self, call: Callable[[], Any]) -> NoReturn:
        call()
        self._passed()

    def _passed(self) -> NoReturn:
        """A step has ended: what it read is the training's data."""
        self.unwatch()
        dataset = self.reading.dataset if self._read is None else self._read
        title = self.outcome.title if self.outcome else "the loop"
        try:
            if not isinstance(dataset, tf.data.Dataset):
                what = f"{title} reads no tf.data.Dataset"
                raise UsageError(what, why=NO_DATA, remedy=NAME_IT)
            self.used = (self._use(dataset, title),)
        except TfdynoError as error:
            self.failed = error
        raise LoopDone
