"""KServe's inference protocol, version 2: JSON and binary tensors -> arrays, and back.

https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/inference_rest.md
and Triton's extension "binary_tensor_data".
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tfdyno.serving.front.predict import Arrays, check_rows
from tfdyno.serving.front.table import Refused, Signature, TensorSpec, Version
from tfdyno.serving.front.tensor import Array, check_shape, read_flat, read_tensor, told_shape
from tfdyno.serving.front.wire import strings_of, wire_bytes

if TYPE_CHECKING:
    from tfdyno.serving.front.answer import Answer


class _Parameters(msgspec.Struct):
    binary_data_size: int | None = None
    binary_data: bool = False
    binary_data_output: bool = False
    signature_name: str | None = None


class _Input(msgspec.Struct):
    name: str
    shape: list[int]
    datatype: str
    parameters: _Parameters = msgspec.field(default_factory=_Parameters)
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Output(msgspec.Struct):
    name: str
    parameters: _Parameters = msgspec.field(default_factory=_Parameters)


class V2Body(msgspec.Struct):
    """The JSON of an inference request."""

    inputs: list[_Input]
    id: str | None = None
    parameters: _Parameters = msgspec.field(default_factory=_Parameters)
    outputs: list[_Output] | None = None


_BODY = msgspec.json.Decoder(V2Body)
_ANY = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class V2Request:
    """What was asked: the JSON, and the binary tensors after it."""

    body: V2Body
    binary: bytes


def read_v2(data: bytes, head_bytes: int | None) -> V2Request:
    """Split and read a body; ``head_bytes`` is the header Inference-Header-Content-Length.

    Raises:
        Refused: 400 for what is not such a request.
    """
    if head_bytes is not None and head_bytes > len(data):
        raise Refused(400, "Inference-Header-Content-Length is longer than the body")
    end = len(data) if head_bytes is None else head_bytes
    try:
        return V2Request(body=_BODY.decode(data[:end]), binary=data[end:])
    except (ValueError, RecursionError) as error:
        told = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Refused(400, f"failed to parse the request JSON buffer: {told[:300]}") from None


def v2_inputs(request: V2Request, signature: Signature) -> Arrays:
    """Return the array of every input of the signature.

    Raises:
        Refused: 400 for names, datatypes, shapes or data that do not fit.
    """
    given = {tensor.name: tensor for tensor in request.body.inputs}
    names = [face.name for face in signature.inputs]
    if set(given) != set(names) or len(given) != len(request.body.inputs):
        raise Refused(400, f"The inputs must be {', '.join(names)}, each once")
    arrays, at = {}, 0
    faces = {face.name: face for face in signature.inputs}
    for tensor in request.body.inputs:
        size = tensor.parameters.binary_data_size
        face = faces[tensor.name]
        _check(tensor, face)
        if size is None:
            arrays[face.name] = _from_json(tensor, face)
        else:
            if size < 0 or at + size > len(request.binary):
                raise Refused(400, f"{face.name}: binary_data_size goes beyond the body")
            arrays[face.name] = _from_bytes(request.binary[at : at + size], tensor, face)
            at += size
    if at != len(request.binary):
        raise Refused(400, f"{len(request.binary) - at} bytes of the body belong to no input")
    check_rows(arrays, signature)
    return {name: arrays[name] for name in names}


def _check(tensor: _Input, face: TensorSpec) -> None:
    if tensor.datatype != face.datatype:
        told = f"{face.name} has the datatype {tensor.datatype[:20]}, not {face.datatype}"
        raise Refused(400, told)
    if any(size < 1 for size in tensor.shape):
        raise Refused(400, f"{face.name}: {tensor.shape} is no shape")
    check_shape(tuple(tensor.shape), face)


def _from_json(tensor: _Input, face: TensorSpec) -> Array:
    if tensor.data is msgspec.UNSET:
        raise Refused(400, f"{face.name} has neither data nor binary_data_size")
    assert isinstance(tensor.data, msgspec.Raw)
    text, shape = bytes(tensor.data), tuple(tensor.shape)
    flat = read_flat(text, face, shape)
    if flat is not None:
        return flat
    try:
        array = _nested(text, face, shape)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"{face.name}: {str(error)[:300]}") from None
    if array.shape != shape:
        raise Refused(400, f"{face.name}: the data has not the shape {tensor.shape}")
    return array


def _nested(text: bytes, face: TensorSpec, shape: tuple[int, ...]) -> Array:
    value = _ANY.decode(text)
    is_flat = isinstance(value, list) and not (value and isinstance(value[0], list))
    if is_flat and len(shape) != 1:
        count = math.prod(shape)
        flat = read_tensor(text, TensorSpec(name=face.name, dtype=face.dtype, shape=(count,)))
        return flat.reshape(shape)
    return read_tensor(text, face)


def _from_bytes(data: bytes, tensor: _Input, face: TensorSpec) -> Array:
    shape = tuple(tensor.shape)
    if face.dtype == "string":
        try:
            return strings_of(data, shape)
        except ValueError as error:
            raise Refused(400, f"{face.name}: {error}") from None
    if len(data) != math.prod(shape) * face.numpy.itemsize:
        told = f"{face.name}: {len(data)} bytes are not {tensor.shape} of {face.datatype}"
        raise Refused(400, f"{told}; the signature says {told_shape(face)}")
    array = np.frombuffer(data, dtype=face.numpy)
    if array.dtype.kind == "b":
        return (np.frombuffer(data, dtype=np.uint8) != 0).reshape(shape)
    return array.reshape(shape)


def v2_reply(
    request: V2Request, answer: Answer, version: Version, signature: Signature
) -> tuple[bytes, int | None]:
    """Return the body of a reply, and the length of its JSON where binary tensors follow it.

    Raises:
        Refused: 400 where an output is asked for that there is not.
    """
    binary: list[bytes] = []
    outputs = []
    for face, is_binary in _asked(request.body, signature):
        array = answer.array(face.name)
        told: dict[str, Any] = {"name": face.name, "datatype": face.datatype}
        told["shape"] = list(array.shape)
        if is_binary:
            blob = wire_bytes(array, face)
            told["parameters"] = {"binary_data_size": len(blob)}
            binary.append(blob)
        else:
            told["data"] = answer.flat(face)
        outputs.append(told)
    head: dict[str, Any] = {"model_name": version.model, "model_version": version.number}
    if request.body.id is not None:
        head["id"] = request.body.id
    text = _json({**head, "outputs": outputs}, finite=answer.outputs.finite())
    return (text + b"".join(binary), len(text)) if binary else (text, None)


def _asked(body: V2Body, signature: Signature) -> list[tuple[TensorSpec, bool]]:
    every = body.parameters.binary_data_output
    faces = {face.name: face for face in signature.outputs}
    if not body.outputs:
        return [(face, every) for face in signature.outputs]
    unknown = [asked.name for asked in body.outputs if asked.name not in faces]
    if unknown:
        raise Refused(400, f"There is no output {unknown[0][:100]!r}; there is {', '.join(faces)}")
    return [(faces[asked.name], asked.parameters.binary_data or every) for asked in body.outputs]


def check_outputs(request: V2Request, signature: Signature) -> None:
    """Refuse unknown outputs before anything is computed."""
    _asked(request.body, signature)


def _json(value: dict[str, Any], *, finite: bool) -> bytes:
    return msgspec.json.encode(value) if finite else json.dumps(value).encode()


def v2_metadata(version: Version, signature: Signature, numbers: list[str]) -> dict[str, Any]:
    """Return what ``GET /v2/models/NAME`` answers."""
    return {
        "name": version.model,
        "versions": numbers,
        "platform": "tensorflow",
        "inputs": [_face(face) for face in signature.inputs],
        "outputs": [_face(face) for face in signature.outputs],
    }


def _face(face: TensorSpec) -> dict[str, Any]:
    shape = [-1 if size is None else size for size in face.shape]
    return {"name": face.name, "datatype": face.datatype, "shape": shape}
