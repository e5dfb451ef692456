"""Keras' methods that train, evaluate and save, held back while the user's code runs."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tfdyno.core.base.errors import TfdynoError
    from tfdyno.core.base.untyped import Instance, Model, Value
    from tfdyno.core.choose.workload import Workload

_TRAINING = ("fit", "train_on_batch")
_RUN = ("predict", "predict_on_batch", "test_on_batch")
"""Harmless: they run where they are not what is measured."""


class Held:
    """Calls that are not the measured one: counted, answered with zeros, and named."""

    def __init__(self) -> None:
        """Begin with nothing called."""
        self.calls = 0
        self.names: list[str] = []
        self.outcome: Any = None
        self.error: TfdynoError | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the script called that was left out, as a sentence."""
        names = ", ".join(dict.fromkeys(self.names))
        return (f"Left out of the script: {names}.",) if names else ()


def held_calls(
    held: Held,
    workload: Workload | None = None,
    reached: Callable[[Any, dict[str, Any]], Any] | None = None,
    loop: Value = None,
) -> AbstractContextManager[None]:
    """Replace what trains, evaluates and saves; the call that counts is handed to ``reached``.

    What that returns is the answer of the call, and later calls are handed to it as well; where
    it raises the script is left. Keras' own methods stand again while that one is measured, and no
    longer: what the script does on its way out (``finally: model.save(...)``) must not write over
    the user's files. A ``loop`` that is timed with all that it does (``is_timing``) is given what
    is no training (``beside``).
    """
    import keras

    kind = keras.Model
    names = ("fit", "train_on_batch", "evaluate", "save", "save_weights", "export", *_RUN)
    originals = {name: getattr(kind, name) for name in names}
    signatures = {name: inspect.signature(original) for name, original in originals.items()}
    counted = "predict" if workload and workload.mode == "infer" else "fit"
    number = workload.fit_number if workload else 0

    def replacement(name: str) -> Value:
        def call(self: Instance, *args: Any, **options: Any) -> Value:
            bound = dict(signatures[name].bind(self, *args, **options).arguments)
            original = partial(originals[name], self, *args, **options)
            if name == "train_on_batch" and counted == "fit" and loop and number == held.calls + 1:
                return loop.batch_trained(self, original, bound)
            if name not in _TRAINING and getattr(loop, "is_timing", False):
                return loop.beside(name, original)
            if name in _RUN and name != counted:
                return original()
            if name in (counted, "train_on_batch"):
                held.calls += 1
                if name == counted and held.calls >= number and reached:
                    with replaced(*((kind, each, own) for each, own in originals.items())):
                        return reached(self, _named(bound))
            held.names.append(name)
            return _answer(name, self, bound)

        return call

    return replaced(*((kind, name, replacement(name)) for name in names))


def _named(bound: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in bound.items() if name != "self"}


def _answer(name: str, model: Model, bound: dict[str, Any]) -> Value:
    from tfdyno.runtime.workload import capture

    if name == "fit":
        return capture.History(bound)
    if name == "evaluate":
        return capture.evaluated(model, **_named(bound))
    return [0.0, 0.0] if name == "train_on_batch" else None
