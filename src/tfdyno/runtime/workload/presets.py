"""A preset of KerasHub as a compiled model without weights, and the batch that it is trained on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.process.failure import first_line
from tfdyno.runtime.workload.dataspec import DataSpec, Leaf
from tfdyno.runtime.workload.preset_generation import generation_step, prompt_places
from tfdyno.runtime.workload.preset_tasks import (
    BOXES,
    CLASSES,
    labels_of,
    length_of,
    masked_of,
    task_of,
    unlike,
)

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Model, Tensor, Value
    from tfdyno.core.choose.workload import FineTune, HubModel, Workload
    from tfdyno.runtime.workload.preset_tasks import Task

RATE = 5e-5
_NOT_TRAINED = ("int8", "int4")
"""Modes of ``quantize`` whose kernels have no gradient."""
_ENCODERS = ("clip_l", "clip_g", "t5")
"""Of texts, in a model that makes images."""
_ATTENTION = ("attention_qkv", "attention_qkv2", "attention_proj", "attention_proj2")
"""Layers of a diffusion transformer that adapters are for: KerasHub names none of them itself."""
STEPS = {
    "prefill": "filling the cache",
    "token": "one token",
    "text": "encoding prompts",
    "denoise": "one step of diffusion",
    "image": "making the image",
}


def preset(workload: Workload) -> tuple[Any, str, DataSpec]:
    """Return the compiled model of a preset, its title, and the shapes of a batch.

    Raises:
        UsageError: KerasHub is not installed, has no such model, or cannot build it.
    """
    hub = _hub(workload)
    task = task_of(workload)
    if task.name == "text_to_image" and hub.fine_tune.sequence_length:
        raise UsageError(
            f"--seq has no use for {workload.reference}",
            why="its prompts are cut and padded to one length always",
            remedy="leave --seq out",
        )
    try:
        model = _built(workload, task)
    except UsageError:
        raise
    except Exception as error:
        raise unlike(workload, f"{type(error).__name__}: {first_line(error)}") from None
    title = workload.reference.partition(":")[2] + _how(hub.fine_tune)
    step = _step_of(workload, task)
    if step:
        made, data = generation_step(model, workload, step)
        return made, f"{title}, {STEPS[step]}", data
    return model, title, _batch(model, hub, task)


def preset_notes(workload: Workload, data: DataSpec | None) -> list[str]:
    """Return what was assumed of the training of a preset, as sentences."""
    hub, task = _hub(workload), task_of(workload)
    chosen = hub.fine_tune
    notes: list[str] = []
    if hub.generation:
        return notes
    if task.name == "text_to_image":
        notes.append(_PREPARED if workload.mode == "train" else _ONE_STEP)
    elif not chosen.sequence_length and _reads_text(data):
        length = f"{length_of(hub, task):,} tokens, as KerasHub cuts them"
        notes.append(f"Assumed samples of {length}; --seq names another length.")
    if task.name in ("segmenter", "detector"):
        boxes = f" and {BOXES} places for boxes in an image" if task.name == "detector" else ""
        places = boxes if workload.mode == "train" else ""
        notes.append(f"Assumed {CLASSES[task.name]} classes{places}.")
    if workload.mode == "infer":
        if task.name == "detector":
            notes.append("Choosing among boxes, which KerasHub's predict does after, is not in it.")
        return notes
    notes.append("Assumed AdamW.")
    if chosen.quantize in _NOT_TRAINED and not chosen.lora_rank:
        what = f"Weights in {chosen.quantize} are not trained"
        notes.append(f"{what}: --lora trains adapters beside them.")
    return notes


_PREPARED = (
    "KerasHub has no fit for it: the step is that of its diffusion transformer alone, on latents "
    "and embedded prompts that were made before, as the usual scripts do."
)
_ONE_STEP = "This is one step of diffusion; estimate tells a whole image."


def _hub(workload: Workload) -> HubModel:
    assert workload.hub
    return workload.hub


def _step_of(workload: Workload, task: Task) -> str:
    """Return the step of generating that is meant; empty: none is."""
    makes_images = task.name == "text_to_image" and workload.mode == "infer"
    return _hub(workload).generation or ("denoise" if makes_images else "")


def _built(workload: Workload, task: Task) -> Value:
    hub = _hub(workload)
    backbone_class = getattr(task.model, "backbone_cls", task.model)
    config = json.loads(hub.config)
    if task.name == "text_to_image":
        _hold_texts_as_on_a_card(config)
    backbone = backbone_class.from_config(config)
    if task.name == "backbone" or (task.name == "text_to_image" and workload.mode == "infer"):
        return made_ready(backbone, workload, task)
    if task.name == "text_to_image":
        return made_ready(_diffuser(workload, backbone), workload, task)
    classes = {"num_classes": CLASSES[task.name]} if task.takes_classes else {}
    model = task.model(backbone=backbone, preprocessor=None, **classes)
    return made_ready(model, workload, task)


def _hold_texts_as_on_a_card(config: dict[str, Any]) -> None:
    """Let encoders of texts have half precision: KerasHub's choice but for JAX on a CPU."""
    for name in _ENCODERS:
        encoder = config.get(name)
        if encoder and "dtype" not in encoder["config"]:
            encoder["config"]["dtype"] = "float16"


def _diffuser(workload: Workload, backbone: Model) -> Model:
    if hasattr(backbone, "diffuser"):
        return backbone.diffuser
    raise UsageError(
        f"how {workload.reference} is trained is not known",
        why="it has no diffusion transformer as Stable Diffusion 3 has",
        remedy="give a script that trains it",
    )


def made_ready(model: Model, workload: Workload, task: Task) -> Model:
    """Quantize, add adapters and compile, in the order in which KerasHub's guides do.

    Raises:
        UsageError: Nothing of the model is quantized, or adapted.
    """
    import keras

    chosen = _hub(workload).fine_tune
    if chosen.quantize:
        _quantize(model, chosen.quantize, workload.reference)
    if chosen.lora_rank:
        layers = list(_ATTENTION) if task.name == "text_to_image" else None
        _adapt(getattr(model, "backbone", model), chosen.lora_rank, layers, workload.reference)
    loss = {"loss": "mse"} if task.name == "text_to_image" else {}
    model.compile(optimizer=keras.optimizers.AdamW(RATE), **loss)
    return model


def _quantize(model: Model, mode: str, reference: str) -> None:
    """Round the weights; raises ``UsageError`` where Keras does not, or has none to round."""
    try:
        model.quantize(mode)
    except ValueError as error:
        raise UsageError(
            f"Keras cannot quantize {reference}",
            why=first_line(error), remedy="leave --quantize out",
        ) from None  # fmt: skip
    if not any(getattr(one, "quantization_mode", None) for one in model._flatten_layers()):
        raise UsageError(
            f"--quantize {mode} changes nothing of {reference}",
            why="Keras rounds the weights of Dense, EinsumDense and Embedding only",
            remedy="leave --quantize out",
        )


def _adapt(backbone: Model, rank: int, layers: list[str] | None, reference: str) -> None:
    """Add adapters to layers, or to KerasHub's own choice; raises ``UsageError`` of none."""
    backbone.enable_lora(rank, layers)
    if not backbone.trainable_variables:
        raise UsageError(
            f"--lora trains nothing of {reference}",
            why="KerasHub finds no layer of it that it adapts",
            remedy="leave --lora out, or give a script that names layers to enable_lora",
        )


def _how(chosen: FineTune) -> str:
    """Return what makes the model another than the preset's own, for its title."""
    parts = [f"LoRA {chosen.lora_rank}"] if chosen.lora_rank else []
    parts += [chosen.quantize] if chosen.quantize else []
    return f" ({', '.join(parts)})" if parts else ""


def _batch(model: Model, hub: HubModel, task: Task) -> DataSpec:
    """Return what KerasHub's preprocessing gives ``fit``: samples, labels and their weights."""

    def leaf(tensor: Tensor) -> Leaf:
        return Leaf(shape=_sizes(tensor, hub, task), dtype=str(tensor.dtype), name=tensor.name)

    given = model.input
    x = {key: leaf(one) for key, one in given.items()} if isinstance(given, dict) else leaf(given)
    y, weights = labels_of(model, hub, task)
    return DataSpec(x=x, y=y, sample_weight=weights)


def _sizes(tensor: Tensor, hub: HubModel, task: Task) -> tuple[int, ...]:
    """Return the shape of an argument without the batch; raises ``UsageError``."""
    sizes: tuple[int | None, ...] = tuple(tensor.shape[1:])
    if task.name == "text_to_image":
        length = prompt_places(json.loads(hub.config))
    elif "float" not in str(tensor.dtype):
        length = masked_of(hub, task) if tensor.name == "mask_positions" else length_of(hub, task)
    elif None in sizes:
        raise UsageError(
            f"{task.model.__name__} takes {tensor.name} of any number",
            why="KerasHub does not tell how many a sample has",
            remedy="name its preset for text alone, or give a script that trains it",
        )
    return tuple(length if size is None else size for size in sizes)


def _reads_text(data: DataSpec | None) -> bool:
    parts = data.x.values() if data and isinstance(data.x, dict) else [data.x] if data else []
    return any("float" not in leaf.dtype and leaf.shape for leaf in parts)
