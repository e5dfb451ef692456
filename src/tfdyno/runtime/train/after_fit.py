"""``evaluate``, ``predict`` and ``save`` of the user's code where several workers run it.

Keras 3 reads what each replica returns as one tensor, which several workers do not give. What is
evaluated is shared by all workers, as in training; each predicts everything by itself; and only
what the chief saves is kept, for all would write the same file at once.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.runtime.base.replaced import replaced
from tfdyno.runtime.recipe.settle import is_composed
from tfdyno.runtime.recipe.strategy import is_chief

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Instance, Model, Value


def evaluation_composed(is_training: Callable[[], bool]) -> AbstractContextManager[None]:
    """Let ``evaluate`` and ``predict`` of every model work under the strategy of the recipe.

    Args:
        is_training: Whether a ``fit`` runs, whose validation is its own matter.
    """
    import keras

    evaluate, predict = keras.Model.evaluate, keras.Model.predict

    def own_evaluate(self: Instance, *args: Any, **options: Any) -> Value:
        if is_training() or not self.built or not (is_composed(self) or _is_served()):
            return evaluate(self, *args, **options)
        if _is_served():
            return _without_strategy(self, lambda: evaluate(self, *args, **options))
        with _composed(self):
            return evaluate(self, *args, **options)

    def own_predict(self: Instance, *args: Any, **options: Any) -> Value:
        if is_training() or not (is_composed(self) or _is_served()):
            return predict(self, *args, **options)
        return _without_strategy(self, lambda: predict(self, *args, **options))

    return replaced((keras.Model, "evaluate", own_evaluate), (keras.Model, "predict", own_predict))


def saved_by_chief() -> AbstractContextManager[None]:
    """Let one of several workers that run the same code write the files of the model.

    The others write elsewhere and let it go: some variables are read by all workers together.
    """
    import keras

    names = () if is_chief() else ("save", "save_weights", "export")
    return replaced(
        *((keras.Model, name, _elsewhere(getattr(keras.Model, name))) for name in names)
    )


def _elsewhere(save: Callable[..., Any]) -> Callable[..., Any]:
    def saved(self: Instance, filepath: Value, *args: Any, **options: Any) -> Value:
        with tempfile.TemporaryDirectory(prefix="tfdyno-") as folder:
            return save(self, str(Path(folder) / Path(filepath).name), *args, **options)

    return saved


@contextlib.contextmanager
def _composed(model: Model) -> Iterator[None]:
    """Evaluate with the training loop's test function, and no batch to build what is built."""
    from tfdyno.runtime.recipe.composed_step import ComposedStep

    with model.distribute_strategy.scope():
        composed = ComposedStep(model, compiled=False)
    composed.give_back()  # a later fit, or a loop of the script's own, needs the optimizer whole

    def make(force: bool = False) -> None:
        model.test_function = composed.test_function()

    with replaced(
        (model, "make_test_function", make),
        (model, "_maybe_symbolic_build", lambda **_given: None),
    ):
        try:
            yield
        finally:
            model.test_function = None


def _is_served() -> bool:
    """Return whether the weights are on parameter servers: the chief reads them there by itself."""
    import tensorflow as tf

    return "ParameterServer" in type(tf.distribute.get_strategy()).__name__


def _without_strategy(model: Model, run: Callable[[], Any]) -> Value:
    """Run as on one device, on this process' own data."""
    from tfdyno.runtime.base.tensorflow_internals import outside_scope

    strategy, model._distribute_strategy = model._distribute_strategy, None
    model.predict_function = model.test_function = None
    try:
        with outside_scope():
            return run()
    finally:
        model._distribute_strategy = strategy
        model.predict_function = model.test_function = None
