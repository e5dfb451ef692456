"""Keras' methods that train, evaluate and save, held back while the user's code runs."""

from __future__ import annotations

import contextlib
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.errors import TfdynoError
    from tfdyno.core.workload import Workload


class Held:
    """Calls that are not the measured one: counted, answered with zeros, and named."""

    def __init__(self) -> None:
        """Nothing was called yet."""
        self.calls = 0
        self.names: list[str] = []
        self.outcome: Any = None
        self.error: TfdynoError | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the script called that was left out, as a sentence."""
        names = ", ".join(dict.fromkeys(self.names))
        return (f"Left out of the script: {names}.",) if names else ()


@contextlib.contextmanager
def held_calls(
    held: Held,
    workload: Workload | None = None,
    reached: Callable[[Any, dict[str, Any]], None] | None = None,
    loop: Any = None,  # noqa: ANN401
) -> Iterator[None]:
    """Replace what trains, evaluates and saves; the call that counts is handed to ``reached``.

    Keras' own methods stand again while that one is measured.
    """
    import keras

    kind = keras.Model
    names = ("fit", "train_on_batch", "predict", "evaluate", "save", "save_weights", "export")
    originals = {name: getattr(kind, name) for name in names}
    signatures = {name: inspect.signature(original) for name, original in originals.items()}
    counted = "predict" if workload and workload.mode == "infer" else "fit"
    number = workload.fit_number if workload else 0

    def restore() -> None:
        for name, original in originals.items():
            setattr(kind, name, original)

    def replacement(name: str) -> Any:  # noqa: ANN401
        def call(self: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
            bound = dict(signatures[name].bind(self, *args, **options).arguments)
            if name == "train_on_batch" and counted == "fit" and loop and number == held.calls + 1:
                original = originals[name]
                return loop.batch_trained(self, lambda: original(self, *args, **options), bound)
            if name == counted or name == "train_on_batch":
                held.calls += 1
                if name == counted and held.calls == number and reached:
                    restore()
                    reached(self, _named(bound))
            if name == "predict" and counted == "fit":
                return originals[name](self, *args, **options)
            held.names.append(name)
            return _answer(name, self, bound)

        return call

    for name in names:
        setattr(kind, name, replacement(name))
    try:
        yield
    finally:
        restore()


def _named(bound: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in bound.items() if name != "self"}


def _answer(name: str, model: Any, bound: dict[str, Any]) -> Any:  # noqa: ANN401
    from tfdyno.runtime import capture

    if name == "fit":
        return capture.History(bound)
    if name == "evaluate":
        return capture.evaluated(model, **_named(bound))
    return [0.0, 0.0] if name == "train_on_batch" else None
