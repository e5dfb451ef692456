"""A workload led to its training: models with their data, or a script whose ``fit`` is taken over.

A script runs to its end as ``__main__``. Each call of ``fit`` is trained under the recipe; what
follows it (evaluate, save, print) runs for real. The first fit is kept in the folder of the run,
the following ones in ``fit-2``, ``fit-3``, ... in it, each with its own checkpoints.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import RunSettings, TrainOutcome
from tfdyno.runtime.base.replicas import replicas
from tfdyno.runtime.base.step_failure import measured_code
from tfdyno.runtime.base.written_files import written_aside
from tfdyno.runtime.train.finished_fit import trained_once
from tfdyno.runtime.workload.dataspec import DEFAULT_BATCH, of_fit
from tfdyno.runtime.workload.fit_call import Call, as_arguments, built
from tfdyno.runtime.workload.rebatch import is_arrays, rebatched

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Spec, Structure, Tensor, Value

Train = Callable[[Any, dict[str, Any], RunSettings], TrainOutcome]
"""Model, arguments of ``fit`` and settings to what came out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """What is trained, and by what."""

    workload: Workload
    recipe: Recipe
    settings: RunSettings
    train: Train
    data: str = ""
    """``file.py:function`` that returns the data; empty: the workload brings its own."""
    notes: list[str] = field(default_factory=list)
    """What is to be told of the loading, in sentences."""


def run_workload(loading: Loading) -> TrainOutcome:
    """Load the workload and train it; for a script that is its whole run.

    Raises:
        UsageError: The workload or its data is wrong, there is nothing to train, or the user's
            code fails.
        ToolError: There is not enough memory, or a checkpoint cannot be written.
    """
    if loading.workload.kind == "script":
        from tfdyno.runtime.train.script import run_script

        outcome = run_script(loading)
    else:
        outcome = trained(_call(loading), loading, loading.settings)
    return replace(outcome, notes=(*loading.notes, *outcome.notes))


def trained(call: Call, loading: Loading, settings: RunSettings) -> TrainOutcome:
    """Train one call of ``fit``, or bring back what it had learned where an earlier run ended it.

    Args:
        call: The model and the arguments of its ``fit``.
        loading: The recipe, and what trains.
        settings: Of this fit.

    Raises:
        UsageError: The data is missing, empty or cannot be batched so, or the code fails in it.
        ToolError: There is not enough memory, or a checkpoint cannot be written.
    """
    arguments = _arguments(call, loading, settings)
    size = int(arguments.get("batch_size") or 0)

    def train(arguments: dict[str, Any], settings: RunSettings) -> TrainOutcome:
        aside = _aside(arguments) if settings.only_losses else contextlib.nullcontext()
        with measured_code(loading.workload.reference, lambda: 0, lambda: size), aside:
            outcome = loading.train(call.model, arguments, settings)
        if not (outcome.steps or outcome.stopped):
            raise _empty(call)
        return outcome

    return trained_once(call.model, arguments, settings, train)


def _aside(arguments: dict[str, Any]) -> contextlib.AbstractContextManager[Any]:
    """Change the paths of its callbacks in place: they are theirs already."""
    import keras

    given = arguments.get("callbacks") or []
    kept = given.callbacks if isinstance(given, keras.callbacks.CallbackList) else given
    return written_aside(keras.tree.flatten(kept))


def _arguments(call: Call, loading: Loading, settings: RunSettings) -> dict[str, Any]:
    """Return the arguments of ``fit`` with what the recipe and the command line set over them."""
    arguments = _checked(call)
    arguments, notes = rebatched(arguments, call.batch_size(loading.recipe), whole_only=False)
    new = [note for note in (*call.notes, *notes) if note not in loading.notes]
    loading.notes.extend(new)
    _check_batch(call, arguments)
    given = {"epochs": settings.epochs, "steps_per_epoch": settings.steps_per_epoch}
    asked = {name: value for name, value in given.items() if value}
    return {**arguments, **asked}


def _call(loading: Loading) -> Call:
    if loading.workload.kind == "preset":
        from tfdyno.runtime.workload.preset_training import preset_call

        return preset_call(loading.workload, loading.data)
    call = _standard_task(loading) if loading.workload.task else built(loading.workload)
    if not loading.data:
        return call
    from tfdyno.runtime.workload.workloads import function_of

    with measured_code(loading.data, lambda: 0, lambda: 0):
        made = as_arguments(function_of(loading.data)())
    return replace(call, arguments=made, is_batched=False)


def _standard_task(loading: Loading) -> Call:
    """Return a task on its real data; its batches are made with the task."""
    import tensorflow as tf

    from tfdyno.runtime.workload.tasks import build

    name, recipe = loading.workload.task, loading.recipe
    count = int(tf.distribute.get_strategy().num_replicas_in_sync)
    task = build(name, batch_size=recipe.batch_size * count, real=True, seed=recipe.seed or 0)
    return Call(
        model=task.model,
        title=name,
        arguments={"x": task.data, "validation_data": task.evaluation},
        notes=(f"{task.samples_per_epoch:,} images of {task.data_set} in an epoch.",),
        data_set=task.data_set,
        is_batched=True,
    )


def _checked(call: Call) -> dict[str, Any]:
    """Return the arguments, where there is data in them that can be trained on."""
    x = call.arguments.get("x")
    if x is None:
        raise UsageError(
            f"{call.title} brings no data, and train needs data",
            remedy="return (model, data) from the function, add :data_function behind it, or name "
                   "one with --data file.py:function",
        )  # fmt: skip
    if _length(x) == 0:
        raise _empty(call)
    if hasattr(x, "element_spec") and _is_unbatched(call.model, x.element_spec):
        what = f"the dataset of {call.title} is not batched"
        raise UsageError(what, why="its elements are single samples", remedy="add .batch(N) to it")
    return dict(call.arguments)


def _is_unbatched(model: Model, spec: Spec) -> bool:
    """Return whether a dataset's element visibly lacks the dimension of the batch."""
    first = spec[0] if isinstance(spec, tuple) else spec
    rank = getattr(getattr(first, "shape", None), "rank", None)
    inputs: list[Any] = list(getattr(model, "inputs", None) or [])
    return rank is not None and (
        rank == 0 or (len(inputs) == 1 and rank == len(inputs[0].shape) - 1)
    )


def _length(x: Tensor) -> int | None:
    """Return samples or batches; None where nobody knows before the end."""
    if hasattr(x, "cardinality"):
        count = int(x.cardinality())
        return count if count >= 0 else None
    if hasattr(x, "num_batches"):
        return None if x.num_batches is None else int(x.num_batches)
    first = _first(x) if is_arrays(x) else None
    shape = getattr(first, "shape", ())
    return int(shape[0]) if shape and shape[0] is not None else None


def _first(structure: Structure) -> Value:
    while isinstance(structure, dict | list | tuple) and len(structure):
        structure = next(iter(structure.values() if isinstance(structure, dict) else structure))
        if structure is None:
            return None
    return structure


def _check_batch(call: Call, arguments: dict[str, Any]) -> None:
    """Check that each replica gets a sample of every batch."""
    count, x = replicas(call.model), arguments.get("x")
    if count == 1 or not (is_arrays(x) or hasattr(x, "element_spec")):
        return
    size = of_fit(arguments).batch_size or (DEFAULT_BATCH if is_arrays(x) else 0)
    if 0 < size < count:
        raise UsageError(
            f"a batch of {size} cannot be shared by {count} replicas",
            why="each needs a sample of it",
            remedy=f"give a batch of {count} or more in the script, or --set batch_size=1 (each)",
        )


def _empty(call: Call) -> UsageError:
    return UsageError(
        f"the data of {call.title} is empty",
        why="it ended before the first batch",
        remedy="look at its filters and paths",
    )
