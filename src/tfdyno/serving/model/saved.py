"""A saved model as functions from arrays to arrays, one per signature.

Runs in the serving environment (numpy 1.26). A SavedModel is a program: like a script, it is run.
"""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.core.base.errors import UsageError
from tfdyno.core.messages.serve import Tensor as Tensor
from tfdyno.process.failure import first_line

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Function, Spec, Value

Arrays = dict[str, np.ndarray]

FREE_SIZES = (1, 32, 224)
"""What is tried, one after the other, for sizes that a signature leaves open."""
MEASURE_S = 0.3
"""How long a batch size is measured."""
LEAST_RUNS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """One function of a model."""

    name: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    call: Callable[[Arrays], Arrays]
    unbatched: str = ""
    """Why requests cannot be put together; empty: they can."""
    is_short: bool = False
    """Whether it computes with floats of 16 bits somewhere."""


def load(path: Path, scratch: Path) -> dict[str, Signature]:
    """Return the signatures of a SavedModel folder or of a ``.keras`` file.

    Args:
        path: The model.
        scratch: An empty folder, which a ``.keras`` file is exported to.

    Raises:
        UsageError: It is no such model, is damaged, holds code, needs a class or an operation that
            is not here, or has no signature.
    """
    if path.suffix == ".keras":
        path = _exported(path, scratch / "saved_model")
    import tensorflow as tf

    try:
        loaded = tf.saved_model.load(str(path))
    except Exception as error:
        raise _unloadable(path, error) from None
    functions = dict(loaded.signatures)
    if not functions:
        raise UsageError(
            f"{path} has no signature",
            why="nothing in it says what to call and with which inputs",
            remedy="save it again with model.export(folder), or with "
            "tf.saved_model.save(model, folder, signatures=…)",
        )
    for name, one in functions.items():
        if _calls_python(one):
            raise UsageError(
                f"the signature {name} of {path} calls Python",
                why="tf.py_function and tf.numpy_function are not saved with a model",
                remedy="write that part with operations of TensorFlow",
            )
    # What is loaded has to live as long as its functions.
    return {name: _signature(name, one, loaded) for name, one in functions.items()}


def _calls_python(function: Function) -> bool:
    return any("PyFunc" in node.op for node in _nodes(function))


def _is_short(function: Function) -> bool:
    import tensorflow as tf

    short = {tf.float16.as_datatype_enum, tf.bfloat16.as_datatype_enum}
    return any(node.attr["T"].type in short for node in _nodes(function) if "T" in node.attr)


def _nodes(function: Function) -> Iterator[Any]:
    """Walk every operation, in the functions that it calls as well."""
    graph = function.graph.as_graph_def()
    yield from graph.node
    for one in graph.library.function:
        yield from one.node_def


def _exported(path: Path, folder: Path) -> Path:
    """Return a ``.keras`` file as SavedModel, as Keras itself exports it."""
    import keras

    try:
        model = keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:
        raise _unreadable(path, error) from None
    try:
        model.export(folder, verbose=False)
    except Exception as error:
        remedy = "call it once on real data before it is saved, or export it as SavedModel yourself"
        what = f"{path} cannot be turned into a function"
        raise UsageError(what, why=first_line(error), remedy=remedy) from None
    return folder


def _unreadable(path: Path, error: Exception) -> UsageError:
    try:
        with zipfile.ZipFile(path) as archive:
            parts = list(_parts(json.loads(archive.read("config.json"))))
    except (OSError, zipfile.BadZipFile, KeyError, ValueError):
        remedy = "save the model again with model.save('name.keras')"
        return UsageError(f"{path} is not a Keras 3 model file, or is damaged", remedy=remedy)
    if any(part.get("class_name") == "__lambda__" for part in parts):
        return UsageError(
            f"{path} holds a lambda",
            why="loading it would run code from the file",
            remedy="replace the lambda by a layer of its own, or export it where you trust it with "
            "tfdyno export --to savedmodel",
        )
    own = {str(part["class_name"]) for part in parts if _is_own(part)}
    if own:
        return UsageError(
            f"{path} needs {', '.join(sorted(own))}, which is not here",
            why="a .keras file names its own layers and does not hold them",
            remedy="export it where they are known with tfdyno export --to savedmodel, which needs "
            "no classes",
        )
    remedy = "save the model again with model.save('name.keras')"
    return UsageError(f"{path} cannot be loaded", why=first_line(error), remedy=remedy)


def _parts(config: object) -> Iterator[dict[str, Any]]:
    """Walk every object that the configuration of a model describes."""
    if isinstance(config, dict):
        if "class_name" in config:
            yield config
        for one in config.values():
            yield from _parts(one)
    elif isinstance(config, list):
        for one in config:
            yield from _parts(one)


def _is_own(part: Mapping[str, Any]) -> bool:
    """Return whether it is a class of the user's, by the module that Keras writes down."""
    if "module" not in part or part["class_name"] == "__tensor__":
        return False
    module = str(part["module"] or "")
    return not module.startswith(("keras", "builtins")) or "Custom>" in str(part["registered_name"])


def _unloadable(path: Path, error: Exception) -> UsageError:
    text = first_line(error)
    remedy = "export the model again"
    if "Op type not registered" in text:
        remedy = "only operations of TensorFlow itself can be served"
    return UsageError(f"{path} cannot be loaded", why=text, remedy=remedy)


def _signature(name: str, function: Function, keeper: object) -> Signature:
    inputs = tuple(
        _tensor(key, spec) for key, spec in function.structured_input_signature[1].items()
    )
    outputs = tuple(_tensor(key, spec) for key, spec in function.structured_outputs.items())

    def call(arrays: Arrays, _keeper: object = keeper) -> Arrays:
        return {
            key: _to_array(value) for key, value in function(**_tensors(arrays, dtypes)).items()
        }

    dtypes = {one.name: one.dtype for one in inputs}
    return Signature(
        name=name, inputs=inputs, outputs=outputs, call=call, unbatched=_fixed(inputs),
        is_short=_is_short(function),
    )  # fmt: skip


def check_sizes(signature: Signature) -> Signature:
    """Return the signature with every rank known, as Triton wants them.

    Raises:
        UsageError: A tensor is a single number, or nobody knows how many sizes an input has.
    """
    for one in signature.inputs:
        if one.shape is None:
            raise UsageError(
                f"the signature {signature.name} does not say the shape of its input {one.name}",
                remedy="export the model with a tf.TensorSpec that has one",
            )
    if any(one.shape is None for one in signature.outputs):
        signature = _with_tried_ranks(signature)
    for one in (*signature.inputs, *signature.outputs):
        if not one.shape:
            raise UsageError(
                f"{one.name} of the signature {signature.name} is a single number",
                why="Triton takes no tensor without sizes",
                remedy="export the model with a size of 1 there, shape (1,)",
            )
    return signature


def _with_tried_ranks(signature: Signature) -> Signature:
    free, why = fitting_free_size(signature)
    if not free:
        what = f"the signature {signature.name} does not say the shape of its outputs"
        raise UsageError(what, why=f"and a call on made-up input fails: {why}",
                         remedy="export the model with fixed sizes")  # fmt: skip
    found = signature.call(made_up(signature.inputs, 1, free))
    outputs = tuple(
        replace(one, shape=(None,) * found[one.name].ndim) if one.shape is None else one
        for one in signature.outputs
    )
    return replace(signature, outputs=outputs)


def _tensors(arrays: Mapping[str, np.ndarray], dtypes: Mapping[str, str]) -> dict[str, Any]:
    import tensorflow as tf

    return {
        key: tf.constant(value, dtype=tf.string if dtypes[key] == "bytes" else dtypes[key])
        for key, value in arrays.items()
    }


def _to_array(value: Value) -> np.ndarray:
    array = value.numpy()
    # Neither numpy nor JSON has it; every bfloat16 is a float32.
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _tensor(name: str, spec: Spec) -> Tensor:
    dtype = {"string": "bytes", "bfloat16": "float32"}.get(spec.dtype.name, spec.dtype.name)
    shape = None if spec.shape.rank is None else tuple(spec.shape.as_list())
    return Tensor(name=name, dtype=dtype, shape=shape)


def _fixed(inputs: Sequence[Tensor]) -> str:
    """Return why the inputs do not let samples be put together; empty: they do."""
    if not inputs:
        return "the signature takes no input"
    for one in inputs:
        if one.shape is None:
            return f"the signature does not say the shape of {one.name}"
        if one.shape and one.shape[0] is not None:
            return f"{one.name} is fixed to a batch of {one.shape[0]}"
    return ""


def made_up(inputs: Sequence[Tensor], batch: int, free: int) -> Arrays:
    """Make zeros for every input, with ``free`` for each size that is open."""
    arrays = {}
    for one in inputs:
        shape = one.shape if one.shape is not None else (batch,)
        sizes = [batch if i == 0 and size is None else size or free for i, size in enumerate(shape)]
        dtype = object if one.dtype == "bytes" else one.dtype
        zeros = np.zeros(sizes, dtype)
        arrays[one.name] = np.full(sizes, b"", object) if one.dtype == "bytes" else zeros
    return arrays


def fitting_free_size(signature: Signature) -> tuple[int, str]:
    """Find a size for what the signature leaves open that the model takes; 0 and why: none."""
    why = ""
    for free in FREE_SIZES:
        try:
            signature.call(made_up(signature.inputs, 1, free))
        except Exception as error:
            why = first_line(error)
        else:
            return free, ""
    return 0, why


def powers_of_two(most: int) -> Iterator[int]:
    """Yield 1, 2, 4, … below ``most``, and ``most`` itself."""
    size = 1
    while size < most:
        yield size
        size *= 2
    yield most


def latency_s(signature: Signature, free: int, batch: int) -> float:
    """Return median seconds of a call on so many samples, after one that is not counted."""
    arrays = made_up(signature.inputs, batch, free)
    signature.call(arrays)
    taken: list[float] = []
    until_s = time.perf_counter() + MEASURE_S
    while len(taken) < LEAST_RUNS or time.perf_counter() < until_s:
        began_s = time.perf_counter()
        signature.call(arrays)
        taken.append(time.perf_counter() - began_s)
    return float(np.median(taken))
