"""TensorFlow's protocol buffers <-> arrays and signatures, without TensorFlow itself."""

from __future__ import annotations

import importlib.util
import math
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.serving.front.status import METHOD_NAME
from tfdyno.serving.front.table import TENSORFLOW_TYPES, Refused, Signature, TensorSpec
from tfdyno.serving.front.tensor import Array, check_shape


def _only_messages() -> None:
    """Make ``tensorflow.core`` importable without ``import tensorflow`` (3 s, 400 MB)."""
    found = importlib.util.find_spec("tensorflow")
    if "tensorflow" not in sys.modules and found and found.submodule_search_locations:
        package = ModuleType("tensorflow")
        package.__path__ = list(found.submodule_search_locations)
        sys.modules["tensorflow"] = package


_only_messages()
from tensorflow.core.framework import (  # noqa: E402
    tensor_pb2,
    tensor_shape_pb2,
    types_pb2,
)
from tensorflow.core.protobuf import meta_graph_pb2  # noqa: E402

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Tensor, Value

_FIELDS = {
    "DT_FLOAT": "float_val", "DT_DOUBLE": "double_val", "DT_INT64": "int64_val",
    "DT_UINT32": "uint32_val", "DT_UINT64": "uint64_val", "DT_BOOL": "bool_val",
    "DT_STRING": "string_val",
}  # fmt: skip


def array_of(
    tensor: Tensor,
    face: TensorSpec,
    max_bytes: float = math.inf,
) -> Array:
    """Read a TensorProto that must fit the signature, without TensorFlow itself.

    Args:
        tensor: What a client sent; one value in it may stand for all that its shape says.
        face: What the signature says of it.
        max_bytes: Longest array that may be made of it.

    Raises:
        Refused: 400 for another dtype or shape, another number of values, or too many.
    """
    given = types_pb2.DataType.Name(tensor.dtype)
    wanted = TENSORFLOW_TYPES[face.dtype]
    if given != wanted:
        raise Refused(400, f"{face.name} has the dtype {given}; the signature says {wanted}")
    shape = tuple(int(dim.size) for dim in tensor.tensor_shape.dim)
    check_shape(shape, face)
    if any(size < 1 for size in shape):
        raise Refused(400, f"{face.name}: {list(shape)} is no shape")
    count = math.prod(shape)
    if count * face.numpy.itemsize > max_bytes:
        raise Refused(400, f"{face.name}: {list(shape)} is more than {max_bytes} bytes")
    if tensor.tensor_content and face.dtype != "string":
        if len(tensor.tensor_content) != count * face.numpy.itemsize:
            raise Refused(400, f"{face.name}: tensor_content has not the length of {list(shape)}")
        array = np.frombuffer(tensor.tensor_content, dtype=face.numpy)
    else:
        array = _of_values(tensor, given, count, face)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise Refused(400, f"{face.name} has a value that is not finite")
    return array.reshape(shape)


def _of_values(tensor: Tensor, given: str, count: int, face: TensorSpec) -> Array:
    if given == "DT_HALF":
        values: Any = np.array(tensor.half_val, dtype=np.uint16).view(np.float16)
    else:
        values = list(getattr(tensor, _FIELDS.get(given, "int_val")))
    if len(values) not in (1, count):
        raise Refused(400, f"{face.name} has {len(values)} values; its shape says {count}")
    array = np.empty(count, dtype=face.numpy)
    array[:] = values if len(values) == count else values[0]
    return array


def proto_of(array: Array, face: TensorSpec) -> Value:
    """Write an array as a TensorProto."""
    dims = [tensor_shape_pb2.TensorShapeProto.Dim(size=size) for size in array.shape]
    proto = tensor_pb2.TensorProto(
        dtype=types_pb2.DataType.Value(TENSORFLOW_TYPES[face.dtype]),
        tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=dims),
    )
    if face.dtype == "string":
        items = array.ravel().tolist()
        proto.string_val.extend(item.encode() if isinstance(item, str) else item for item in items)
    else:
        proto.tensor_content = np.ascontiguousarray(array).tobytes()
    return proto


def describe(told: Value, signature: Signature) -> None:
    """Write a signature into a SignatureDef."""
    told.method_name = METHOD_NAME
    for where, faces in ((told.inputs, signature.inputs), (told.outputs, signature.outputs)):
        for face in faces:
            info = meta_graph_pb2.TensorInfo(name=face.name)
            info.dtype = types_pb2.DataType.Value(TENSORFLOW_TYPES[face.dtype])
            for size in face.shape:
                info.tensor_shape.dim.add().size = -1 if size is None else size
            where[face.name].CopyFrom(info)
