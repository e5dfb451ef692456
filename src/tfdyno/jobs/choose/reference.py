"""What a user types for a workload, read into a ``Workload``."""

from __future__ import annotations

from pathlib import Path

from tfdyno.catalog.generations import software_from
from tfdyno.catalog.tasks import find_task
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import Mode, Workload, WorkloadKind
from tfdyno.probe.base.near import meant

FORMS = (
    "script.py, file.py:function, package.module:function, model.keras, keras:ResNet50 "
    "or task:resnet18-cifar10"
)


def parse_reference(
    text: str,
    *,
    mode: Mode = "train",
    precision: str = "",
    input_shapes: tuple[tuple[int, ...], ...] = (),
    input_spec: tuple[str, ...] = (),
    script_arguments: tuple[str, ...] = (),
    fit_number: int = 1,
    python: str = "",
    allow_unsafe: bool = False,
    software: str = "",
) -> Workload:
    """Read the workload that ``text`` names; whether a function or model exists shows in the trace.

    Raises:
        UsageError: The text has no known form, or its file does not exist.
    """
    kind = _kind(text)
    if input_spec:
        if kind != "function":
            raise UsageError("--input-spec goes with a step function", remedy="give file.py:step")
        kind = "step_function"
    if precision:
        settings.one_of(precision, settings.PRECISIONS, "precision")
    if any(size < 1 for shape in input_shapes for size in shape):
        raise UsageError("an input shape has a size below 1")
    if fit_number < 1:
        raise UsageError(f"there is no call {fit_number} of fit", remedy="count from 1")
    software_from(software)
    return Workload(
        reference=text,
        kind=kind,
        mode=mode,
        precision=precision,
        input_shapes=input_shapes,
        input_spec=input_spec,
        script_arguments=script_arguments,
        fit_number=fit_number,
        python=python,
        allow_unsafe=allow_unsafe,
        software=software,
    )


def option_words(workload: Workload) -> list[str]:
    """Write what is typed behind the reference for this workload, less the script's own words."""
    words: list[str] = []
    for shape in workload.input_shapes:
        words += ["--input-shape", ",".join(map(str, shape)) or "()"]
    words += ["--python", workload.python] if workload.python else []
    return [*words, *(["--unsafe"] if workload.allow_unsafe else [])]


def script_words(workload: Workload) -> list[str]:
    """Return the script's own words, which stand last."""
    return ["--", *workload.script_arguments] if workload.script_arguments else []


def _kind(text: str) -> WorkloadKind:
    place, colon, name = text.partition(":")
    if place == "keras" and name:
        return "application"
    if place == "task" and name:
        find_task(name)
        return "task"
    if place.endswith(".py"):
        _check_file(Path(place))
        return "function" if colon else "script"
    if text.endswith(".keras"):
        _check_file(Path(text))
        return "keras_file"
    if text.endswith((".h5", ".hdf5")):
        remedy = "save the model again with model.save('name.keras')"
        raise UsageError(f"{text} is in the old HDF5 format", remedy=remedy)
    if colon and name and all(part.isidentifier() for part in place.split(".")):
        return "function"
    raise UsageError(f"{text!r} names no workload", remedy=f"give {FORMS}")


def _check_file(path: Path) -> None:
    if path.is_file():
        return
    raise UsageError(f"there is no file {path}", remedy=meant(path, ending=path.suffix))
