"""What goes to the model process and comes back: KServe's protocol with binary tensors."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tfdyno.serving.front.table import TensorSpec
from tfdyno.serving.front.tensor import Array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.serving.front.table import Signature

Arrays = dict[str, Array]


FAULT = "tfdyno_fault"
"""Output with the reason why the model failed on a request; otherwise it is not there."""
_REASONS = TensorSpec(name=FAULT, dtype="string", shape=(None, 1))
LONGEST_REASON = 300
"""The longest reason, in characters: one sentence for a client."""
_TRACEBACK = "Traceback (most recent call last):\n"
_OF_TRITON = re.compile(r"^Failed to process the request\(s\) for model '[^']*', message: ")
_OF_PYTHON = re.compile(r"^(?:\w+\.)*(?=\w+: )")


class ModelError(Exception):
    """The model process answered with an error.

    Attributes:
        code: The HTTP status it gave.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


def encode(parts: Sequence[Arrays], signature: Signature) -> tuple[bytes, list[bytes]]:
    """Write the JSON head and the tensors of one call, all ``parts`` one after another."""
    heads, blobs = [], []
    for face in signature.inputs:
        arrays = [part[face.name] for part in parts]
        blob = b"".join(wire_bytes(array, face) for array in arrays)
        shape = list(arrays[0].shape)
        if signature.rows:
            shape[0] = sum(len(array) for array in arrays)
        heads.append(
            {
                "name": face.name,
                "datatype": face.datatype,
                "shape": shape,
                "parameters": {"binary_data_size": len(blob)},
            }
        )
        blobs.append(blob)
    return json.dumps({"inputs": heads, "parameters": {"binary_data_output": True}}).encode(), blobs


def decode(body: bytes, head_bytes: int, signature: Signature) -> Arrays:
    """Return the outputs of an answer; what is not binary is read from the head.

    Raises:
        ModelError: The model failed on this request.
    """
    head = msgspec.json.decode(body[:head_bytes])
    faces = {face.name: face for face in signature.outputs}
    arrays, start = {}, head_bytes
    for output in head["outputs"]:
        face = faces.get(output["name"])
        size = output.get("parameters", {}).get("binary_data_size", 0)
        if face is not None:
            arrays[face.name] = _array(body[start : start + size], output, face)
        elif output["name"] == FAULT:
            reason = _array(body[start : start + size], output, _REASONS).flat[0]
            raise ModelError(500, reason.decode(errors="replace") if size else reason)
        start += size
    return {name: arrays[name] for name in faces}


def _array(data: bytes, output: Mapping[str, Any], face: TensorSpec) -> Array:
    shape = tuple(output["shape"])
    if "data" in output:
        return np.array(output["data"], dtype=face.numpy).reshape(shape)
    if face.dtype == "string":
        return strings_of(data, shape)
    return np.frombuffer(data, dtype=face.numpy).reshape(shape)


def wire_bytes(array: Array, face: TensorSpec) -> bytes:
    """Return the tensor as the protocol has it: row by row; strings each after their length."""
    if face.dtype != "string":
        return np.ascontiguousarray(array).tobytes()
    items = [item.encode() if isinstance(item, str) else item for item in array.ravel().tolist()]
    return b"".join(len(item).to_bytes(4, "little") + item for item in items)


def strings_of(data: bytes, shape: tuple[int, ...]) -> Array:
    """Read BYTES: each item after its length in four bytes, lowest first.

    Raises:
        ValueError: The lengths do not add up.
    """
    items, at = [], 0
    while at < len(data):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        if end > len(data) or at + 4 > len(data):
            raise ValueError("a string is cut off")
        items.append(data[at + 4 : end])
        at = end
    if len(items) != math.prod(shape):
        raise ValueError(f"{len(items)} strings for the shape {list(shape)}")
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


def error_text(body: bytes) -> str:
    """Return the reason in an answer that is an error, in one line.

    Triton sends the traceback of what failed, with files of this machine: they are in the log.
    """
    try:
        text = str(msgspec.json.decode(body)["error"])
    except (ValueError, KeyError, TypeError):
        text = body.decode(errors="replace")
    _, traceback, raised = text.rpartition(_TRACEBACK)
    lines = [line for line in raised.splitlines() if line.strip()]
    if traceback:  # lines of code are indented, the error itself is not
        lines = [line for line in lines if not line.startswith(" ")]
    line = _OF_PYTHON.sub("", _OF_TRITON.sub("", lines[0])) if lines else ""
    return line[:LONGEST_REASON] or "the model gave no reason"
