"""Run a training script unmodified up to its ``fit`` and take the model and the data's shapes."""

from __future__ import annotations

import inspect
import runpy
import sys
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tfdyno.core.errors import UsageError
from tfdyno.runtime.dataspec import DataSpec, of_batch, of_fit
from tfdyno.runtime.failure import Declined, user_code

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Caught:
    """The model and the data of the call of ``fit`` that was asked for."""

    model: Any
    data: DataSpec


class _Reached(BaseException):
    """Leaves the script; no ``except Exception`` of the user stops it."""

    def __init__(self, caught: Caught) -> None:
        super().__init__()
        self.caught = caught


def first_fit(
    script: Path, arguments: tuple[str, ...], *, fit_number: int, predict: bool = False
) -> Caught:
    """Run ``script`` as ``python script arguments`` would, up to call ``fit_number`` of ``fit``.

    Earlier calls of ``fit`` return a history of zeros; nothing is trained, saved or evaluated.
    With ``predict`` a call of ``predict`` counts as well.

    Raises:
        UsageError: The script ends before that call, or fails for a reason of its own.
        Declined: It fails in a way that the other backend may not.
    """
    _check_loop(script)
    calls = hold_training(fit_number=fit_number, predict=predict)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        with user_code(str(script)):
            runpy.run_path(str(script), run_name="__main__")
    except _Reached as reached:
        return reached.caught
    found = f"it calls fit {len(calls)} times" if calls else "it ended without calling fit"
    remedy = "name the function that builds the model: file.py:function"
    raise UsageError(f"{script} has no call {fit_number} of fit", why=found, remedy=remedy)


def _check_loop(script: Path) -> None:
    """A loop of one's own would train here without end: leave it to the other path."""
    import keras

    if keras.backend.backend() == "jax" and b"GradientTape" in script.read_bytes():
        raise Declined(f"{script} trains with tf.GradientTape", why="only TensorFlow runs that")


def hold_training(*, fit_number: int, predict: bool = False) -> list[Any]:
    """Replace what trains, evaluates and saves; returns the list that collects the calls.

    Call ``fit_number`` (counted from 1) leaves the script; 0: none does.
    """
    import keras

    calls: list[Any] = []
    caught_names = [name for name in _CAUGHT if name != "predict" or predict]
    signatures = {name: inspect.signature(getattr(keras.Model, name)) for name in caught_names}

    def replacement(name: str) -> Any:  # noqa: ANN401
        def caught(self: Any, *args: Any, **options: Any) -> Any:  # noqa: ANN401
            bound = dict(signatures[name].bind(self, *args, **options).arguments)
            calls.append(self)
            if len(calls) == fit_number:
                raise _Reached(Caught(model=self, data=_CAUGHT[name](bound)))
            return _History(bound) if name == "fit" else [0.0, 0.0]

        return caught

    for name in caught_names:
        setattr(keras.Model, name, replacement(name))
    for name in ("save", "save_weights", "export"):
        setattr(keras.Model, name, _nothing)
    keras.Model.evaluate = _evaluate
    return calls


def _of_train_on_batch(bound: dict[str, Any]) -> DataSpec:
    return of_batch(bound.get("x"), bound.get("y"), bound.get("sample_weight"))


_CAUGHT = {"fit": of_fit, "train_on_batch": _of_train_on_batch, "predict": of_fit}


class _History:
    """Stands for the result of an earlier ``fit``: every metric is zero in every epoch."""

    def __init__(self, bound: dict[str, Any]) -> None:
        epochs = int(bound.get("epochs") or 1)
        self.history: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * epochs)
        self.epoch = list(range(epochs))


def _nothing(_self: Any, *_args: Any, **_options: Any) -> None:  # noqa: ANN401
    """Untrained weights must not replace files of the user."""


def _evaluate(self: Any, *_args: Any, **options: Any) -> Any:  # noqa: ANN401
    names = ["loss", *(name for name in self.metrics_names if name != "loss")]
    return dict.fromkeys(names, 0.0) if options.get("return_dict") else [0.0] * len(names)
