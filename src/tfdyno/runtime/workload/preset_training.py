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
from tfdyno.runtime.workload.presets import RATE, is_causal, made_ready, task_class
from tfdyno.runtime.workload.text_samples import TextSamples, read_samples
from tfdyno.runtime.workload.workloads import called

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Instance, Model, Structure, Tensor, Value
    from tfdyno.core.choose.workload import Workload

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

    task = task_class(workload)
    samples = read_samples(Path(data)) if is_text_file(data) else None
    given = _of_file(samples) if samples else _of_function(data)
    count = len(samples.classes) if samples else _classes_of(given.get("y"))
    if not is_causal(task):
        _check_classes(workload, data, count)
    elif samples and samples.classes:
        given.pop("y")
    model = _loaded(workload, task, {} if is_causal(task) else {"num_classes": count})
    notes = [f"Assumed AdamW with a learning rate of {RATE:g}."]
    if samples:
        notes.insert(0, _told(samples, is_causal(task)))
    if _is_text(given.get("x")):
        given, cut = _tokens(model, given)
        notes += [cut] if cut else []
    if hasattr(model.preprocessor, "tokenizer") and not _holds_text(given.get("x")):
        # KerasHub's own would make tokens of tokens.
        model.__dict__["fit"] = partial(keras.Model.fit, model)
    title = workload.reference.partition(":")[2]
    return Call(model=model, title=title, arguments=given, notes=tuple(notes))


def _loaded(workload: Workload, task: Value, classes: dict[str, int]) -> Model:
    """Load the weights and make the model ready; raises ``UsageError``."""
    assert workload.hub
    name = os.path.expanduser(workload.reference.partition(":")[2])  # noqa: PTH111 - hf://a/b stays
    try:
        model = task.from_preset(name, **classes)
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
        return made_ready(model, chosen)


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


def _classes_of(labels: Structure) -> int:
    """Return how many classes whole numbers from 0 name; 0: they are none."""
    found = np.asarray(labels) if isinstance(labels, list | np.ndarray) else np.zeros(0)
    return int(found.max()) + 1 if found.size and found.dtype.kind in "iu" else 0


def _check_classes(workload: Workload, data: str, count: int) -> None:
    if count < 2:
        found = "all its samples are of one class" if count else "it tells no classes"
        raise UsageError(
            f"{data} cannot train {workload.reference} to tell classes apart", why=found,
            remedy="give a table with a column 'label', or --task causal_lm if the model writes"
            if is_text_file(data)
            else "return (x, labels), with labels as an array of whole numbers from 0",
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
