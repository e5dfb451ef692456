"""A workload that is no script, as the call of ``fit`` that it stands for: model and arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.process.failure import Declined, first_line
from tfdyno.runtime.base.replicas import replicas
from tfdyno.runtime.base.step_failure import measured_code
from tfdyno.runtime.workload.held_calls import Held, held_calls
from tfdyno.runtime.workload.workloads import application, default_compile, model_and_data

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Dataset, Value
    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.recipe.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of ``fit`` or ``predict`` that was kept: the model and the arguments by name."""

    model: Any
    title: str
    arguments: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    data_set: str = ""
    """Name of real data."""
    is_batched: bool = False
    """Whether the recipe's batch size is in the data already."""

    def batch_size(self, recipe: Recipe) -> int:
        """Return the batch size over all replicas, where the data is batched anew; else 0."""
        return 0 if self.is_batched else recipe.batch_size * replicas(self.model)


def built(workload: Workload) -> Call:
    """Return the model (and data) of everything that is not a script."""
    notes: tuple[str, ...] = ()
    arguments: dict[str, Any] = {}
    with measured_code(workload.reference, lambda: 0, lambda: 0):
        if workload.kind == "application":
            model, title, _ = application(workload)
        elif workload.kind == "keras_file":
            model, title = keras_file(workload), Path(workload.reference).stem
        else:
            held = Held()
            with held_calls(held):
                model, title, data = model_and_data(workload.reference)
            arguments, notes = as_arguments(data), held.notes
    if workload.mode == "train" and not getattr(model, "compiled", False):
        notes += (default_compile(model, named=workload.kind != "application"),)
    return Call(model=model, title=title, arguments=arguments, notes=notes)


def as_arguments(data: Dataset) -> dict[str, Any]:
    """Read a function's data as ``fit``'s arguments: (x, y, sample_weight) or one."""
    if data is None:
        return {}
    if isinstance(data, tuple):
        return dict(zip(("x", "y", "sample_weight"), data, strict=False))
    return {"x": data}


def keras_file(workload: Workload) -> Value:
    """Load the model with its weights; its configuration alone first tells what is wrong."""
    import keras

    from tfdyno.runtime.workload.kerasfile import load_config

    path = Path(workload.reference)
    load_config(path, allow_unsafe=workload.allow_unsafe)
    try:
        return keras.saving.load_model(path, safe_mode=not workload.allow_unsafe)
    except Exception as error:
        raise Declined(f"{path} cannot be loaded", why=first_line(error)) from None
