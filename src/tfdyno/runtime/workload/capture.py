"""Run a training script unmodified up to its ``fit`` and take the model and the data's shapes."""

from __future__ import annotations

import ast
import contextlib
import inspect
import runpy
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import NO_FIT
from tfdyno.process.failure import Declined, user_code
from tfdyno.runtime.workload.dataspec import DataSpec, of_batch, of_fit, savings_of, validation_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tfdyno.core.base.untyped import Instance, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Caught:
    """The model and the data of the call of ``fit`` that was asked for."""

    model: Any
    data: DataSpec


class _Reached(BaseException):
    """Leaves the script; no ``except Exception`` of the user stops it."""


class _Held:
    """The calls that were intercepted, and what was caught of the one that counts."""

    def __init__(self) -> None:
        self.calls = 0
        self.caught: Caught | None = None


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
    held = hold_training(fit_number=fit_number, predict=predict)
    with contextlib.suppress(_Reached), user_code(str(script)):
        run_as_main(script, arguments, is_enough=lambda: False)
    if held.caught:  # also where the script went on behind a bare ``except``
        return held.caught
    found = f"it calls fit {held.calls} times" if held.calls else "it ended without calling fit"
    remedy = "name the function that builds the model: file.py:function"
    what = f"{script} {NO_FIT.format(number=fit_number)}"
    raise UsageError(what, why=found, remedy=remedy)


def _check_loop(script: Path) -> None:
    """Leave a loop of one's own to the other path: it would train here without end."""
    import keras

    if keras.backend.backend() == "jax" and "GradientTape" in names_in(script):
        raise Declined(f"{script} trains with tf.GradientTape", why="only TensorFlow runs that")


def names_in(script: Path) -> frozenset[str]:
    """Return every name and attribute in the code of a script; none where it does not parse."""
    try:
        tree = ast.parse(script.read_bytes())
    except (SyntaxError, ValueError):
        return frozenset()  # running it will tell
    return frozenset(
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute | ast.Name)
    )


def fit_lines(script: Path) -> tuple[int, ...]:
    """Return the lines of a script that call ``fit`` with arguments that only training has."""
    try:
        tree = ast.parse(script.read_bytes())
    except (SyntaxError, ValueError):
        return ()
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return tuple(
        sorted(
            call.lineno
            for call in calls
            if isinstance(call.func, ast.Attribute)
            and call.func.attr == "fit"
            and any(keyword.arg in _OF_TRAINING for keyword in call.keywords)
        )
    )


def hold_training(*, fit_number: int, predict: bool = False) -> _Held:
    """Replace what trains, evaluates and saves; returns what collects the calls.

    Call ``fit_number`` (counted from 1) leaves the script; 0: none does.
    """
    import keras

    held = _Held()
    caught_names = [name for name in _CAUGHT if name != "predict" or predict]
    signatures = {name: inspect.signature(getattr(keras.Model, name)) for name in caught_names}

    def replacement(name: str) -> Value:
        def caught(self: Instance, *args: Any, **options: Any) -> Value:
            bound = dict(signatures[name].bind(self, *args, **options).arguments)
            held.calls += 1
            if held.calls == fit_number:
                held.caught = Caught(model=self, data=_CAUGHT[name](bound))
            if held.caught:
                raise _Reached
            return History(bound) if name == "fit" else [0.0, 0.0]

        return caught

    for name in caught_names:
        setattr(keras.Model, name, replacement(name))
    for name in ("save", "save_weights", "export"):
        setattr(keras.Model, name, _nothing)
    keras.Model.evaluate = evaluated
    return held


def _of_fit(bound: dict[str, Any]) -> DataSpec:
    return replace(of_fit(bound), validation=validation_of(bound), savings=savings_of(bound))


def _of_train_on_batch(bound: dict[str, Any]) -> DataSpec:
    return of_batch(bound.get("x"), bound.get("y"), bound.get("sample_weight"))


_OF_TRAINING = {
    "epochs", "batch_size", "callbacks", "initial_epoch", "steps_per_epoch",
    "validation_data", "validation_split",
}  # fmt: skip
_CAUGHT = {"fit": _of_fit, "train_on_batch": _of_train_on_batch, "predict": of_fit}


class History:
    """Stands for the result of an earlier ``fit``: every metric is zero in every epoch."""

    def __init__(self, bound: dict[str, Any]) -> None:
        """Take the number of epochs from the bound arguments of ``fit``."""
        epochs = int(bound.get("epochs") or 1)
        self.history: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * epochs)
        self.epoch = list(range(epochs))


def _nothing(_self: Instance, *_args: Any, **_options: Any) -> None:
    """Write nothing: untrained weights must not replace files of the user."""


def evaluated(self: Instance, *_args: Any, **options: Any) -> Value:
    """Stand for ``evaluate``: every metric is zero."""
    names = ["loss", *(name for name in self.metrics_names if name != "loss")]
    return dict.fromkeys(names, 0.0) if options.get("return_dict") else [0.0] * len(names)


def run_as_main(script: Path, arguments: Sequence[str], *, is_enough: Callable[[], bool]) -> None:
    """Run the script to its end, with its folder first on the path and its own ``sys.argv``.

    Args:
        script: The file.
        arguments: Its words of the command line.
        is_enough: Whether all that is wanted was found when the script calls ``sys.exit``, so
            that this is only its end.

    Raises:
        SystemExit: The script calls ``sys.exit`` before that.
    """
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit:
        if not is_enough():
            raise
