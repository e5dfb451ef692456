"""What a user types for a workload, read into a ``Workload``."""

from __future__ import annotations

import json
from pathlib import Path

from tfdyno.catalog.generations import software_from
from tfdyno.catalog.tasks import find_task
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import (
    HUB_PREFIX,
    HUB_TASKS,
    FineTune,
    HubModel,
    Mode,
    Workload,
    WorkloadKind,
    quantize_mode,
)
from tfdyno.jobs.choose.hub_preset import hub_preset
from tfdyno.probe.base.near import meant

FORMS = (
    "script.py, file.py:function, package.module:function, model.keras, keras:ResNet50, "
    "task:resnet18-cifar10 or keras_hub:gpt2_base_en"
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
    fine_tune: FineTune | None = None,
) -> Workload:
    """Read the workload that ``text`` names; whether a function or model exists shows in the trace.

    Args:
        text: As typed.
        mode: Train or infer.
        precision: As the other arguments a field of ``Workload``.
        input_shapes: As ``precision``.
        input_spec: As ``precision``.
        script_arguments: As ``precision``.
        fit_number: As ``precision``.
        python: As ``precision``.
        allow_unsafe: As ``precision``.
        software: As ``precision``.
        fine_tune: How a preset of KerasHub is trained; None: presets are refused.

    Raises:
        UsageError: The text has no known form, or its file does not exist.
    """
    kind = _kind(text)
    hub = _hub_model(text, fine_tune) if kind == "preset" else None
    if kind != "preset" and fine_tune not in (None, FineTune()):
        raise UsageError(
            f"{text} is trained as its own code says",
            why="--task, --seq, --lora and --quantize go with keras_hub:PRESET",
            remedy="leave them out, or name a preset: keras_hub:gpt2_base_en",
        )
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
        hub=hub,
        software=software,
    )


def option_words(workload: Workload) -> list[str]:
    """Write what is typed behind the reference for this workload, less the script's own words."""
    words: list[str] = []
    for shape in workload.input_shapes:
        words += ["--input-shape", ",".join(map(str, shape)) or "()"]
    words += ["--python", workload.python] if workload.python else []
    words += fine_tune_words(workload.hub.fine_tune) if workload.hub else []
    return [*words, *(["--unsafe"] if workload.allow_unsafe else [])]


def fine_tune_words(chosen: FineTune) -> list[str]:
    """Write how a preset is trained as it is typed."""
    typed = {
        "--task": chosen.task,
        "--seq": chosen.sequence_length,
        "--lora": chosen.lora_rank,
        "--quantize": chosen.quantize,
    }
    return [word for name, value in typed.items() if value for word in (name, str(value))]


def script_words(workload: Workload) -> list[str]:
    """Return the script's own words, which stand last."""
    return ["--", *workload.script_arguments] if workload.script_arguments else []


def _kind(text: str) -> WorkloadKind:
    place, colon, name = text.partition(":")
    if place == "keras" and name:
        return "application"
    if text.startswith(HUB_PREFIX) and name:
        return "preset"
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


def _hub_model(text: str, fine_tune: FineTune | None) -> HubModel:
    """Return the model of a preset, and how it is trained; raises ``UsageError``."""
    preset = hub_preset(text)
    if fine_tune is None:
        raise UsageError(
            f"{text} is no workload of this command",
            why="estimate, advise, memory, recipe auto, train and launch alone take a preset",
            remedy="give a script that loads it and calls fit",
        )
    settings.whole(fine_tune.sequence_length, "sequence length", least=0)
    settings.whole(fine_tune.lora_rank, "LoRA rank", least=0)
    if fine_tune.task:
        settings.one_of(fine_tune.task, HUB_TASKS, "task")
    if fine_tune.quantize:
        quantize_mode(fine_tune.quantize)
    if fine_tune.sequence_length and not preset.sequence_length:
        raise UsageError(f"{text} reads no text", remedy="leave --seq out")
    if fine_tune.sequence_length > preset.sequence_length:
        raise UsageError(
            f"{text} takes no {fine_tune.sequence_length} tokens",
            why=f"its samples have {preset.sequence_length} tokens at most",
            remedy=f"give --seq {preset.sequence_length} or less",
        )
    return HubModel(
        backbone=preset.backbone,
        config=json.dumps(preset.config, sort_keys=True),
        longest=preset.sequence_length,
        fine_tune=fine_tune,
    )


def _check_file(path: Path) -> None:
    if path.is_file():
        return
    raise UsageError(f"there is no file {path}", remedy=meant(path, ending=path.suffix))
