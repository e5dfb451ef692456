"""A training script, unmodified: each of its calls of ``fit`` is taken over by the recipe."""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.base.units import significant
from tfdyno.core.train.training import TrainOutcome
from tfdyno.process.stop_asked import StopAsked
from tfdyno.runtime.base.replaced import replaced
from tfdyno.runtime.base.step_failure import measured_code
from tfdyno.runtime.train.after_fit import evaluation_composed
from tfdyno.runtime.train.load import trained
from tfdyno.runtime.workload.capture import names_in, run_as_main
from tfdyno.runtime.workload.fit_call import Call
from tfdyno.runtime.workload.workloads import title_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tfdyno.core.base.untyped import Instance, Model, Value
    from tfdyno.core.train.training import RunSettings
    from tfdyno.runtime.train.load import Loading

OWN_LOOP = frozenset({"GradientTape", "train_on_batch"})
FOR_FIT = frozenset({"fit", "train_step"})
REMEDY = "call model.fit, or name a function that returns (model, data): file.py:function"


class _Left(BaseException):
    """Leaves the script; no ``except Exception`` of the user stops it."""


@dataclass(slots=True, kw_only=True)
class _Taken:
    """The calls of ``fit`` so far."""

    outcomes: list[TrainOutcome] = field(default_factory=list)
    error: TfdynoError | None = None
    is_inside: bool = False
    """Whether one is being trained: then ``fit`` is Keras' own."""

    @property
    def has_stopped(self) -> bool:
        return bool(self.outcomes and self.outcomes[-1].stopped)


def run_script(loading: Loading) -> TrainOutcome:
    """Run a script to its end, or until a fit of it stops early; returns what its last fit did.

    Raises:
        UsageError: The script never calls ``fit``, or fails.
        ToolError: There is not enough memory, or a checkpoint cannot be written.
    """
    script, taken = Path(loading.workload.reference), _Taken()
    _refuse_own_loop(script)
    try:
        with (
            measured_code(str(script), lambda: 0, lambda: 0),
            contextlib.suppress(_Left),
            _taken_over(taken, loading),
            evaluation_composed(lambda: taken.is_inside),
        ):
            run_as_main(
                script,
                loading.workload.script_arguments,
                is_enough=lambda: bool(taken.outcomes),
            )
    except TfdynoError as error:
        raise taken.error or _with_kept(error, taken, loading.settings) from None
    except StopAsked as stop:
        if not taken.outcomes:
            raise
        count = len(taken.outcomes)
        note = f"The script was stopped after fit {count}; what is trained is not trained again."
        last = taken.outcomes[-1]
        stopped = replace(last, stopped=stop.signal_name, notes=(*last.notes, note))
        taken.outcomes[-1] = stopped
    if taken.error:
        raise taken.error
    if not taken.outcomes:
        raise UsageError(f"{script} never calls fit, which is what train takes over", remedy=REMEDY)
    last = taken.outcomes[-1]
    return replace(last, notes=(*last.notes, *_of_earlier(taken.outcomes, loading.settings)))


def _refuse_own_loop(script: Path) -> None:
    """Refuse a loop of one's own, which would train to its end without the recipe."""
    names = names_in(script)
    found = sorted(OWN_LOOP & names)
    if found and not FOR_FIT & names:
        what = f"{script} trains by a loop of its own ({found[0]}), which train cannot take over"
        raise UsageError(what, remedy=REMEDY)


def _taken_over(taken: _Taken, loading: Loading) -> AbstractContextManager[None]:
    """Let every call of ``Model.fit`` train under the recipe."""
    import keras

    script = Path(loading.workload.reference)
    original = keras.Model.fit
    signature = inspect.signature(original)

    def fit(self: Instance, *args: Any, **options: Any) -> Value:
        if taken.is_inside:
            return original(self, *args, **options)
        bound = dict(signature.bind(self, *args, **options).arguments)
        del bound["self"]
        settings = _settings_of(len(taken.outcomes) + 1, loading.settings)
        call = Call(model=self, title=title_of(self, script.stem), arguments=bound)
        taken.is_inside = True
        # A class with a fit of its own is in the middle of it: what it changed stays changed once.
        of_model = {name: value for name, value in vars(self).items() if name == "fit"}
        self.__dict__["fit"] = partial(original, self)
        try:
            taken.outcomes.append(trained(call, loading, settings))
        except TfdynoError as error:
            taken.error = error
            raise _Left from None
        finally:
            taken.is_inside = False
            del self.__dict__["fit"]
            self.__dict__.update(of_model)
        is_last = len(taken.outcomes) >= loading.workload.fit_number
        if taken.has_stopped or (loading.settings.only_losses and is_last):
            raise _Left
        return _history(self, taken.outcomes[-1])

    return replaced((keras.Model, "fit", fit))


def _settings_of(number: int, settings: RunSettings) -> RunSettings:
    if number == 1:
        return settings
    output, first = settings.output, settings.first_weights
    return replace(
        settings,
        output=str(Path(output) / f"fit-{number}") if output else "",
        # A second fit of a model goes on with what the first one has learned.
        first_weights=str(Path(first).with_name(f"fit-{number}-{Path(first).name}"))
        if first
        else "",
    )


def _history(model: Model, outcome: TrainOutcome) -> Value:
    """Return Keras' own object, with the epochs of earlier sessions in front."""
    import keras

    history = getattr(model, "history", None)
    if not isinstance(history, keras.callbacks.History):
        history = keras.callbacks.History()
        history.set_model(model)
    history.history = {name: list(values) for name, values in outcome.history.items()}
    history.epoch = list(range(max(map(len, history.history.values()), default=0)))
    return history


def _of_earlier(outcomes: list[TrainOutcome], settings: RunSettings) -> tuple[str, ...]:
    """Return what the fits before the last one did."""
    notes = []
    for number, one in enumerate(outcomes[:-1], start=1):
        loss = one.history.get("loss") or []
        end = f", loss {significant(loss[-1])}" if loss else ""
        place = f", in {_settings_of(number, settings).output}" if settings.output else ""
        epochs = f"{one.epochs} epoch{'s' * (one.epochs != 1)}"
        notes.append(f"Fit {number} of {len(outcomes)}: {epochs}{end}{place}.")
    return tuple(notes)


def _with_kept(error: TfdynoError, taken: _Taken, settings: RunSettings) -> TfdynoError:
    """Return the error, with what the training before it has left."""
    if not taken.outcomes:
        return error
    paths = [one.model_path for one in taken.outcomes if one.model_path]
    kept = f"what was trained is kept in {paths[-1] if paths else settings.output}"
    what = error.what.replace("stopped before there was a model", "failed after its training")
    remedy = "; ".join(filter(None, (error.remedy, kept if paths or settings.output else "")))
    return type(error)(what, why=error.why, remedy=remedy)
