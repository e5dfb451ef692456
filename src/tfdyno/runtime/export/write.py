"""One file or folder for each format, written by Keras' own exporters and the usual converters."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any, Literal, cast

import keras
import numpy as np
import tensorflow as tf

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.tensorflow_internals import with_constants
from tfdyno.runtime.export import huggingface
from tfdyno.runtime.export.check import tf2onnx_module
from tfdyno.runtime.export.source import Source, weights_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tfdyno.core.base.untyped import Value
    from tfdyno.runtime.export.data import Data

Details = dict[str, Any]
Litert = Literal["litert", "litert-fp16", "litert-int8"]
MOST_ONNX_BYTES = 2**31 - 2**20
"""A protobuf message holds no more than 2 GiB."""


def write(source: Source, kind: str, target: Path, data: Data) -> Details:
    """Write the model in one format.

    Args:
        source: The model.
        kind: The format.
        target: File or folder that is not there yet; of ``tensorrt`` the folder of its ONNX file.
        data: Rows to calibrate integers with.

    Returns:
        What the converter tells of its work.

    Raises:
        UsageError: The converter does not take the model.
        ToolError: What it wrote is damaged.
    """
    if kind.startswith("litert"):
        return _litert(source, cast("Litert", kind), target, data)
    return _WRITERS[kind](source, target)


def _saved_model(source: Source, target: Path) -> Details:
    with _converter("SavedModel"):
        if source.model is None:
            module = tf.Module()
            module.loaded = source.tracked
            function = source.function()
            module.serve = function
            concrete = function.get_concrete_function()
            tf.saved_model.save(module, str(target), signatures={"serving_default": concrete})
            return {}
        archive = keras.export.ExportArchive()
        for part in source.tracked:
            archive.track(part)
        archive.add_endpoint("serving_default", source.flat, input_signature=list(source.specs))
        archive.write_out(str(target), verbose=False)
    return {}


def _keras(source: Source, target: Path) -> Details:
    with _converter("Keras"):
        source.model.save(target)
    return {}


def _onnx(source: Source, target: Path) -> Details:
    """Write the ONNX file and check it; its inputs and outputs have the names of the signature."""
    held = weights_bytes(source)
    if held > MOST_ONNX_BYTES:
        raise UsageError(
            f"{source.title} is too large for one ONNX file",
            why=f"its weights take {held:,} bytes, and a file holds 2 GiB",
            remedy="export to savedmodel",
        )
    converter = tf2onnx_module()
    import onnx

    with _converter("tf2onnx"):
        proto, _ = converter.convert.from_function(
            _with_constants(source), input_signature=list(source.specs), output_path=str(target)
        )
        onnx.checker.check_model(str(target), full_check=True)
    wanted, got = list(source.outputs), [one.name for one in proto.graph.output]
    if sorted(wanted) != sorted(got):  # dictionaries come by the alphabet; they go by their names
        raise ToolError("the ONNX file has other outputs", why=f"{got} in place of {wanted}")
    opset = next((one.version for one in proto.opset_import if one.domain in ("", "ai.onnx")), 0)
    counts: dict[str, int] = {}
    for node in proto.graph.node:
        counts[node.op_type] = counts.get(node.op_type, 0) + 1
    return {"opset": int(opset), "operations": dict(sorted(counts.items()))}


def _with_constants(source: Source) -> Value:
    """Return the model's function; plain tensors that it took from outside are in it as constants.

    A Normalization layer holds its mean and variance so; tf2onnx would make inputs of them.
    """
    function = source.function()
    concrete = function.get_concrete_function()
    if all(one.dtype == tf.resource for one in concrete.captured_inputs):
        return function
    frozen = with_constants(concrete)
    names = list(concrete.structured_outputs)

    def call(*tensors: Any) -> dict[str, Any]:
        found = dict(zip(sorted(names), tf.nest.flatten(frozen(*tensors)), strict=True))
        return {name: found[name] for name in names}  # TensorFlow flattens by the alphabet

    return tf.function(call, input_signature=list(source.specs), autograph=False)


def _tensorrt(source: Source, target: Path) -> Details:
    target.mkdir()
    return _onnx(source, target / "model.onnx")


def _torch(source: Source, target: Path) -> Details:
    """Write the ``.keras`` file; the child that has PyTorch reads it and writes the rest."""
    target.mkdir()
    return _keras(source, target / "model.keras")


def _huggingface(source: Source, target: Path) -> Details:
    with _converter("KerasHub"):
        return huggingface.write(source, target)


def _litert(source: Source, kind: Litert, target: Path, data: Data) -> Details:
    from tfdyno.runtime.litert import convert as export_litert

    rows = len(next(iter(data.calibration.values())))
    samples = [{n: a[i : i + 1] for n, a in data.calibration.items()} for i in range(rows)]
    with _converter("LiteRT"):
        found = export_litert.convert(
            source.model,
            kind=kind,
            samples=samples if kind == "litert-int8" else None,
            target=target,
        )
    calibrated = {"calibration": data.calibration_words} if kind == "litert-int8" else {}
    return {**found, **calibrated}


@contextlib.contextmanager
def _converter(name: str) -> Iterator[None]:
    """Run a converter: its prints are not the answer, what it raises is told in one sentence."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            yield
    except (UsageError, ToolError):
        raise
    except OSError as error:
        raise UsageError(
            f"{name} could not write", why=error.strerror or first_line(error)
        ) from None
    except Exception as error:
        why = f"{type(error).__name__}: {first_line(error)}"
        raise UsageError(f"{name} does not convert this model", why=why) from None


_WRITERS: dict[str, Callable[[Source, Path], Details]] = {
    "savedmodel": _saved_model,
    "keras": _keras,
    "onnx": _onnx,
    "tensorrt": _tensorrt,
    "torch": _torch,
    "huggingface": _huggingface,
}


def texts_of(value: Value) -> Value:
    """Return a converter's details as JSON; numbers of numpy become Python's."""
    if isinstance(value, dict):
        return {str(key): texts_of(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [texts_of(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int | float | bool | None) else str(value)
