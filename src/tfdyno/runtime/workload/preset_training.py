"""A preset of KerasHub with its weights, and texts as its training takes them."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import is_text_file
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.step_failure import measured_code
from tfdyno.runtime.workload.fit_call import Call, as_arguments
from tfdyno.runtime.workload.preset_tasks import task_of
from tfdyno.runtime.workload.presets import RATE, made_ready
from tfdyno.runtime.workload.text_samples import TextSamples, read_samples
from tfdyno.runtime.workload.workloads import called

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Instance, Model, Structure, Tensor
    from tfdyno.core.choose.workload import Workload
    from tfdyno.runtime.workload.preset_tasks import Task

CHUNK = 1024
"""Texts that are made tokens at once."""


def preset_call(workload: Workload, data: str) -> Call:
    """Load a preset, and make the call of ``fit`` that trains it.

    Args:
        workload: A preset, and how it is trained.
        data: A file of text, or ``file.py:function`` that returns texts, (texts, labels), or what
            the model itself takes.

    Raises:
        UsageError: KerasHub has no such model, its weights are not to be had, or the data does not
            fit the task.
        Declined: The function of the data fails.
    """
    import keras

    task = task_of(workload)
    if task.name == "text_to_image":
        raise UsageError(
            f"{workload.reference} is not trained by name",
            why="KerasHub has no fit for it",
            remedy="give a script that trains its diffusion transformer",
        )
    samples = read_samples(Path(data)) if is_text_file(data) else None
    given = _of_file(samples) if samples else _of_function(data)
    if samples and task.writes and samples.classes:
        given.pop("y")
    count = _classes_of(task, given) if task.takes_classes else 0
    if task.takes_classes and count < task.fewest_classes:
        raise _no_classes(workload, data, task, count)
    model = _loaded(workload, task, {"num_classes": count} if task.takes_classes else {})
    notes = [f"Assumed AdamW with a learning rate of {RATE:g}."]
    if samples:
        notes.insert(0, _told(samples, task.writes))
    if samples and task.name == "masked_lm":
        notes.append("Which tokens are guessed is drawn once; each epoch guesses the same.")
    if _is_text(given.get("x")):
        given, cut = _tokens(model, given)
        notes += [cut] if cut else []
    if hasattr(model.preprocessor, "tokenizer") and not _holds_text(given.get("x")):
        # KerasHub's own would make tokens of tokens.
        model.__dict__["fit"] = partial(keras.Model.fit, model)
    title = workload.reference.partition(":")[2]
    return Call(model=model, title=title, arguments=given, notes=tuple(notes))


def _loaded(workload: Workload, task: Task, classes: dict[str, int]) -> Model:
    """Load the weights and make the model ready; raises ``UsageError``."""
    assert workload.hub
    name = os.path.expanduser(workload.reference.partition(":")[2])  # noqa: PTH111 - hf://a/b stays
    try:
        model = task.model.from_preset(name, **classes)
    except Exception as error:
        raise UsageError(
            f"the weights of {workload.reference} cannot be loaded",
            why=first_line(error),
            remedy="load it with KerasHub once where there is a network, or name a folder that "
                   "save_to_preset has written: keras_hub:./folder",
        ) from None  # fmt: skip
    chosen = workload.hub.fine_tune
    if model.preprocessor is not None:
        if chosen.sequence_length:
            model.preprocessor.sequence_length = chosen.sequence_length
        _build(model.preprocessor)
    with measured_code(workload.reference, lambda: 0, lambda: 0):
        return made_ready(model, workload, task)


def _build(preprocessor: Instance) -> None:
    """Build its parts, as no call of Keras does: ``quantize`` refuses a model with one that is not.

    Some are made when the whole is built.
    """
    preprocessor.build(None)
    for layer in preprocessor._flatten_layers():
        if not layer.built:
            layer.build(None)


def _of_file(samples: TextSamples) -> dict[str, Any]:
    labels = np.array(samples.labels, "int32")
    return {"x": list(samples.texts), **({"y": labels} if samples.classes else {})}


def _of_function(data: str) -> dict[str, Any]:
    with measured_code(data, lambda: 0, lambda: 0):
        return as_arguments(called(data))


def _classes_of(task: Task, given: dict[str, Any]) -> int:
    """Return how many classes the labels tell; 0: they tell none.

    Of a segmenter they are one of each class for every pixel, of others whole numbers from 0.
    """
    labels = given.get("y")
    if task.name == "detector":
        labels = labels.get("labels") if isinstance(labels, dict) else None
    if not isinstance(labels, list | np.ndarray):
        return 0
    found = np.asarray(labels)
    if task.name == "segmenter":
        return found.shape[-1] if found.ndim == 4 else 0
    return int(found.max()) + 1 if found.size and found.dtype.kind in "iu" else 0


_LABELS = {
    "classifier": "labels as an array of whole numbers from 0",
    "segmenter": "labels as an array (images, height, width, classes) of 0 and 1",
    "detector": 'labels as {"boxes": (images, boxes, 4), "labels": (images, boxes)}, whole numbers '
                "from 0",
}  # fmt: skip
"""What a function has to return of each task."""


def _no_classes(workload: Workload, data: str, task: Task, count: int) -> UsageError:
    found = "all its samples are of one class" if count else "it tells no classes"
    return UsageError(
        f"{data} cannot train {workload.reference} to tell classes apart", why=found,
        remedy="give a table with a column 'label', or --task causal_lm if the model writes"
        if is_text_file(data)
        else f"return (x, labels), with {_LABELS[task.name]}",
    )  # fmt: skip


def _is_text(x: Structure) -> bool:
    first = next(iter(x), None) if isinstance(x, list | tuple | np.ndarray) and len(x) else None
    return isinstance(first, str | bytes)


def _holds_text(x: Structure) -> bool:
    """Return whether a pipeline of TensorFlow's gives text, which KerasHub makes tokens of."""
    import keras

    specs = keras.tree.flatten(getattr(x, "element_spec", None))
    return any(getattr(one, "dtype", None) == "string" for one in specs)


def _tokens(model: Model, given: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the arguments of ``fit`` with tokens for texts, and what was cut as a sentence."""
    preprocessor = getattr(model, "preprocessor", None)
    if preprocessor is None:
        raise UsageError(
            f"{type(model).__name__} came without what makes tokens of text",
            remedy="save its preprocessor with it, or return tokens from file.py:function",
        )
    x, y = given["x"], given.get("y")

    def tokens(chunk: slice) -> Structure:
        return preprocessor(list(x[chunk]), *(() if y is None else (y[chunk],)))

    whole = _joined([tokens(slice(at, at + CHUNK)) for at in range(0, len(x), CHUNK)])
    arguments = as_arguments(whole if isinstance(whole, tuple) else (whole,))
    found = {key: value for key, value in arguments.items() if value is not None}
    return found, _cut(found["x"])


def _joined(parts: list[Structure]) -> Structure:
    """Join the batches of a structure along the first axis, as arrays of numpy."""
    import keras

    def joined(*leaves: Tensor) -> Tensor:
        return np.concatenate([keras.ops.convert_to_numpy(leaf) for leaf in leaves])

    return keras.tree.map_structure(joined, *parts)


def _cut(x: Structure) -> str:
    """Tell how many samples fill all the places that there are; empty: none does."""
    mask = x.get("padding_mask") if isinstance(x, dict) else None
    if mask is None or not (full := int(np.count_nonzero(mask[:, -1]))):
        return ""
    places = mask.shape[1]
    return f"{full:,} of {len(mask):,} samples fill all {places:,} tokens; what is longer is cut."


def _told(samples: TextSamples, writes: bool) -> str:
    count = f"{len(samples.texts):,} texts"
    if not samples.classes or writes:
        return f"{count} in an epoch."
    named = ", ".join(samples.classes[:5]) + (", …" if len(samples.classes) > 5 else "")
    return f"{count} of {len(samples.classes)} classes in an epoch: {named}."
