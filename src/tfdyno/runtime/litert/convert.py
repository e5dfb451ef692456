"""A Keras model as a .tflite file, by TensorFlow's converter: floats, half floats or integers."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.process.failure import first_line
from tfdyno.runtime.base.keras_internals import all_layers
from tfdyno.runtime.base.replaced import replaced
from tfdyno.runtime.litert.calibration import Samples, calibration_of
from tfdyno.runtime.litert.check import Refusal, refused, traced_operations, unknown_operations
from tfdyno.runtime.litert.file import read
from tfdyno.runtime.litert.names import float_operators
from tfdyno.runtime.litert.signature import layer_names, signature_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Model, Value
    from tfdyno.core.deploy.litert_graph import LitertGraph, LitertPort

Kind = Literal["litert", "litert-fp16", "litert-int8"]
_LOOP_OPERATIONS = ("While", "StatelessWhile")
_LOOPS = ("TensorList", "element_shape to be static")
"""What the converter says of a loop that keeps its steps in a list, as recurrent layers do."""


def convert(
    model: Model,
    *,
    kind: Kind,
    samples: Samples | None,
    target: Path,
    integer_ports: bool = False,
) -> dict[str, Any]:
    """Write ``model`` to ``target``; nothing is left there where it fails.

    Args:
        model: A built Keras model on TensorFlow.
        kind: ``litert`` float32; ``litert-fp16`` weights in half precision, computed in float32 or
            float16 as the device does; ``litert-int8`` weights (a scale per channel) and
            intermediate values in 8 bits.
        samples: For ``litert-int8``: real inputs, with or without a batch axis, by the names of the
            inputs. Ranges of all values are taken from at most 500 of them.
        target: The file.
        integer_ports: Whether ``litert-int8`` also takes and gives integers, as microcontrollers
            without floats need; else floats, that the file itself turns into integers.

    Returns:
        ``operations`` (name to count), ``float_layers`` (those that compute in floats in an int8
        file, by layer), ``bytes``, ``inputs`` and ``outputs`` (name, dtype, shape, scale,
        zero_point), ``signature`` (its name), ``batch`` (None: any; a model with a loop over time
        has 1) and ``samples`` (how many were used).

    Raises:
        UsageError: It holds operations that LiteRT does not have, the samples do not fit or are
            missing.
        ToolError: The converter failed in another way.
    """
    calibration = calibration_of(model, samples) if kind == "litert-int8" else None
    data, batch = _converted(model, kind, calibration, integer_ports)
    graph = _write(target, data)
    layers = layer_names(model)
    return {
        "operations": dict(Counter(one.kind for part in graph.subgraphs for one in part.operators)),
        "float_layers": float_operators(graph, layers) if kind == "litert-int8" else [],
        "bytes": len(data),
        "inputs": [_port(graph, port) for port in graph.inputs],
        "outputs": [_port(graph, port) for port in graph.outputs],
        "signature": graph.signature,
        "batch": batch,
        "samples": len(calibration) if calibration else 0,
    }


def check(model: Model) -> list[Refusal]:
    """Return what LiteRT cannot take of a model, found by its operations and not by exporting it.

    The operations of the traced model are looked up in a table of those that are known to convert.
    Only where one is not in it is a conversion tried, for the converter's own judgement.
    """
    with in_float32(model):
        if not unknown_operations(traced_operations(model)):
            return []
        try:
            _converted(model, "litert", None, integer_ports=False)
        except _Refused as error:
            return error.refusals
    return []


class _Refused(UsageError):  # noqa: N818  (an answer of the converter)
    """The converter named operations that it does not take."""

    def __init__(self, refusals: list[Refusal]) -> None:
        self.refusals = refusals
        first, more = refusals[0], len(refusals) - 1
        of_layer = f" of the layer {first.layer}" if first.layer else ""
        rest = f" (and {more} more: {', '.join(r.operation for r in refusals[1:6])})" * bool(more)
        super().__init__(
            f"LiteRT has no operation {first.operation}{of_layer}{rest}",
            why=first.why,
            remedy=first.remedy,
        )


def _converted(
    model: Model,
    kind: Kind,
    calibration: Samples | None,
    integer_ports: bool,
) -> tuple[bytes, int | None]:
    """Return the file, and the batch that it is fixed to.

    A loop over time keeps its steps in a list whose size must be known: such models are converted
    for one sample at a time where any batch fails.
    """
    quantised = kind == "litert-int8"
    with in_float32(model), without_loops(model) if quantised else contextlib.nullcontext():
        try:
            return _attempt(model, kind, calibration, integer_ports, None), None
        except _ConverterSays as first:
            if not any(sign in first.text for sign in _LOOPS):
                raise _judged(model, first) from None
        try:
            return _attempt(model, kind, calibration, integer_ports, 1), 1
        except _ConverterSays as second:
            raise _judged(model, second) from None


class _ConverterSays(Exception):  # noqa: N818  (turned into words at once)
    """What the converter ended with."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def _judged(model: Model, said: _ConverterSays) -> UsageError | ToolError:
    found = refused(said.text, layer_names(model))
    if found:
        return _Refused(found)
    lines = [line.strip() for line in said.text.splitlines() if line.strip()]
    why = next((line for line in lines if "error:" in line), lines[0] if lines else "")
    return ToolError("the LiteRT converter failed", why=why.rpartition("error:")[2].strip()[:300])


def _attempt(
    model: Model,
    kind: Kind,
    calibration: Samples | None,
    integer_ports: bool,
    batch: int | None,
) -> bytes:
    import tensorflow as tf

    with tempfile.TemporaryDirectory(prefix="tfdyno-litert-") as folder:
        _save(model, Path(folder) / "saved", batch)
        converter = tf.lite.TFLiteConverter.from_saved_model(str(Path(folder) / "saved"))
        _set(converter, kind, calibration, integer_ports)
        try:
            return bytes(converter.convert())
        except Exception as error:
            raise _ConverterSays(str(error)) from None


def _save(model: Model, folder: Path, batch: int | None) -> None:
    """Save a SavedModel of one signature, which keeps the names of inputs and outputs."""
    import keras

    signature = signature_of(model, batch)
    archive = keras.export.ExportArchive()
    try:
        archive.track(model)
        archive.add_endpoint("serving_default", model.__call__, signature)
        archive.write_out(str(folder), verbose=False)
    except Exception as error:
        raise UsageError("the model cannot be traced for LiteRT", why=first_line(error)) from None


def _set(converter: Value, kind: Kind, calibration: Samples | None, integer_ports: bool) -> None:
    import tensorflow as tf

    if kind == "litert":
        return
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "litert-fp16":
        converter.target_spec.supported_types = [tf.float16]
        return
    assert calibration is not None
    converter.representative_dataset = lambda: iter(calibration)
    # With the builtins beside them, what has no integer form stays float instead of failing.
    builtins = tf.lite.OpsSet
    converter.target_spec.supported_ops = [
        builtins.TFLITE_BUILTINS_INT8, builtins.TFLITE_BUILTINS,
    ]  # fmt: skip
    if integer_ports:
        converter.inference_input_type = tf.int8
        converter.inference_output_type = tf.int8


def _write(target: Path, data: bytes) -> LitertGraph:
    """Write in place at once, and read again from there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        graph = read(part)
        part.replace(target)
    except OSError as error:
        raise ToolError(f"{target} cannot be written", why=error.strerror or str(error)) from None
    finally:
        part.unlink(missing_ok=True)
    return graph


def _port(graph: LitertGraph, port: LitertPort) -> dict[str, Any]:
    tensor = graph.tensor(port)
    shape = [None if i in tensor.open_axes else size for i, size in enumerate(tensor.shape)]
    found: dict[str, Any] = {"name": port.name, "dtype": tensor.dtype, "shape": shape}
    if tensor.scale:
        found |= {"scale": tensor.scale, "zero_point": tensor.zero_point}
    return found


@contextlib.contextmanager
def in_float32(model: Model) -> Iterator[bool]:
    """Compute in float32 within the block; tells whether that changed anything.

    LiteRT has no convolution over half floats; a device that computes in them does so by itself.
    The weights are float32 already, so that only the arithmetic between them changes.
    """
    import keras

    layers = all_layers(model)
    mixed = [
        (layer, layer.dtype_policy)
        for layer in layers
        if getattr(layer, "compute_dtype", "float32") in {"float16", "bfloat16"}
    ]
    try:
        for layer, _ in mixed:
            layer.dtype_policy = keras.DTypePolicy("float32")
        yield bool(mixed)
    finally:
        for layer, policy in mixed:
            layer.dtype_policy = policy


@contextlib.contextmanager
def without_loops(model: Model) -> Iterator[None]:
    """Write the loops of its recurrent layers out within the block.

    TensorFlow's calibrator (2.21) crashes the process on a graph with a loop. A recurrent layer of
    Keras can be written out as one operation after the other where its number of steps is known.

    Raises:
        UsageError: A loop remains, or the number of its steps is open.
    """
    if not _loops(model):
        yield
        return
    import keras

    layers = all_layers(model)
    rolled = [one for one in layers if isinstance(one, keras.layers.RNN) and not one.unroll]
    with replaced(*((layer, "unroll", True) for layer in rolled)):
        _check(model)
        yield


def _loops(model: Model) -> list[str]:
    found = traced_operations(model)
    return [found[name] for name in _LOOP_OPERATIONS if name in found]


def _check(model: Model) -> None:
    remedy = "export with --to litert or litert-fp16, which keep loops"
    try:
        left = _loops(model)
    except ValueError as error:
        raise UsageError(
            "the loop of a recurrent layer cannot be written out for int8",
            why=first_line(error),
            remedy=f"give the model a fixed number of steps, or {remedy}",
        ) from None
    if left:
        raise UsageError(
            f"int8 is not possible with the loop at {left[0]}",
            why="the calibrator of TensorFlow fails on loops",
            remedy=remedy,
        )
