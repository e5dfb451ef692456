"""The step of a loop as it was called last, with a batch that is held where it reads its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.runtime.diagnose.held import held_dataset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.base.untyped import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCall:
    """One call of a ``tf.function``."""

    function: Any
    run: Callable[..., Any]
    """Calls it unwatched."""
    args: tuple[Any, ...]
    named: Mapping[str, Any]

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by name, those without one by their number."""
        return {str(number): value for number, value in enumerate(self.args)} | dict(self.named)

    @property
    def is_distributed(self) -> bool:
        """Whether it reads what a strategy has split."""
        return any(
            isinstance(one, tf.distribute.DistributedIterator) for one in self.arguments.values()
        )

    @property
    def iterator(self) -> Value:
        """What it reads its data from; None: it is given its data."""
        values = self.arguments.values()
        return next((one for one in values if isinstance(one, tf.data.Iterator)), None)

    def held(self, compiled: Value = None) -> Callable[[], Any]:
        """Return the same with a batch that is held in each of its iterators.

        Args:
            compiled: Called instead of the function; None: it itself.
        """
        args = [_held(value) for value in self.args]
        named = {name: _held(value) for name, value in self.named.items()}
        return lambda: self.run(compiled or self.function, *args, **named)


def in_turns(step: Callable[[], Any], others: Sequence[Callable[[], Any]]) -> Callable[[], None]:
    """Return what calls each once, one after the other."""

    def every() -> None:
        step()
        for one in others:
            one()

    return every


def _held(value: Value) -> Value:
    if not isinstance(value, tf.data.Iterator):
        return value
    return iter(held_dataset(next(value), value.element_spec))
