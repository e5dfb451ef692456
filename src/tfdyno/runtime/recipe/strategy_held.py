"""The strategy of the recipe in place of those that the user's code makes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tfdyno.runtime.base.replaced import ignored, replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Strategy, Value

_NAMES = (
    "CentralStorageStrategy", "MirroredStrategy", "MultiWorkerMirroredStrategy",
    "OneDeviceStrategy", "ParameterServerStrategy", "TPUStrategy",
)  # fmt: skip


@contextlib.contextmanager
def strategies_held(strategy: Strategy, name: str, notes: list[str]) -> Iterator[None]:
    """Hand out the recipe's strategy for every one that the user's code makes.

    A scope inside another strategy's scope fails in TensorFlow, and a second multi-worker strategy
    would ask for the same port. With the same one, scope in scope is allowed.

    Args:
        strategy: The recipe's; None: TensorFlow's own for one device.
        name: As the recipe has it; empty: it asks for none, and the code's own are left alone.
        notes: Receives a sentence for each kind of strategy that the code makes.
    """
    if not name:
        yield
        return
    import tensorflow as tf

    held = strategy or tf.distribute.get_strategy()
    places = (tf.distribute, tf.distribute.experimental, tf.compat.v1.distribute)
    known = [(place, each) for place in places for each in _NAMES if hasattr(place, each)]
    with replaced(*((*one, _standing_for(one[1], held, name, notes)) for one in known)):
        yield


def _standing_for(kind: str, held: Value, name: str, notes: list[str]) -> type:
    """Return a class, so that ``isinstance`` and annotations of the user's code still work."""
    note = f"The code makes a {kind}; strategy = {name} of the recipe holds."
    return type(kind, (), {"__new__": ignored(note, notes, held)})
