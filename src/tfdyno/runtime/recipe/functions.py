"""What Keras' ``fit`` calls for a step during a training: the recipe's functions."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.base.untyped import DataIterator, Model, Value
    from tfdyno.runtime.recipe.composed_step import ComposedStep


@contextlib.contextmanager
def functions_of(
    model: Model,
    composed: Callable[[], ComposedStep | None],
    *,
    is_composed: bool,
    around_train: Callable[[Any], Any],
    after_train: Callable[[Any], None],
    before_test: Callable[[], None],
) -> Iterator[None]:
    """Let Keras call other functions for a step of this model, until the block ends.

    Args:
        model: A compiled Keras model.
        composed: Gives the step of a strategy, once it is built; None: Keras' own stays.
        is_composed: Whether there will be one.
        around_train: Makes the train function that is called of the one that trains.
        after_train: Takes the logs of each call of the train function.
        before_test: Called before each call of the test function.
    """

    def maker(kind: str) -> Callable[..., None]:
        name, own = f"{kind}_function", getattr(model, f"make_{kind}_function")

        def make(force: bool = False) -> None:
            if step := composed():
                setattr(model, name, getattr(step, name)())
            else:
                own(force)

        return make

    changes: dict[str, Any] = {f"make_{kind}_function": maker(kind) for kind in ("train", "test")}
    of_logs = model._get_metrics_result_or_logs
    # An epoch that an earlier session had trained to its end has no logs here.
    changes["_get_metrics_result_or_logs"] = lambda logs: of_logs(
        logs or model.get_metrics_result()
    )
    if is_composed:  # it is built already, and Keras would take a batch of the data for that
        changes["_maybe_symbolic_build"] = lambda **_given: None
    with replaced(*((model, name, change) for name, change in changes.items())):
        watch_calls(model, "train", lambda run: _followed(around_train(run), by=after_train))
        watch_calls(model, "test", partial(_led, by=before_test))
        try:
            yield
        finally:
            model.train_function = model.test_function = None


def watch_calls(model: Model, kind: str, watched: Callable[[Any], Any]) -> None:
    """Let Keras call another function in place of the one that it makes for a step.

    Args:
        model: A compiled Keras model.
        kind: Of the function: ``train`` or ``test``.
        watched: Makes the other one of Keras' own, each time that this is made anew.
    """
    name, make = f"{kind}_function", getattr(model, f"make_{kind}_function")

    def make_watched(force: bool = False) -> None:
        if hasattr(getattr(model, name), "of_tfdyno") and not force:
            return
        make(force)
        function = watched(getattr(model, name))
        function.of_tfdyno = True
        setattr(model, name, function)

    setattr(model, f"make_{kind}_function", make_watched)


def _followed(run: Value, by: Callable[[Any], None]) -> Value:
    def train(iterator: DataIterator) -> Value:
        logs = run(iterator)
        by(logs)
        return logs

    return train


def _led(run: Value, by: Callable[[], None]) -> Value:
    def test(iterator: DataIterator) -> Value:
        by()
        return run(iterator)

    return test
