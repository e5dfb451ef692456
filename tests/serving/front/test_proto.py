from __future__ import annotations

from tests.serving.front.test_child import client

ROUND_TRIP = """
import sys
import numpy as np
from tfdyno.serving.front.proto import array_of, proto_of
from tfdyno.serving.front.table import TENSORFLOW_TYPES, TensorSpec, Refused
from tensorflow.core.framework import tensor_pb2, types_pb2

assert "tensorflow.python" not in sys.modules
for dtype, name in TENSORFLOW_TYPES.items():
    face = TensorSpec(name="x", dtype=dtype, shape=(None, 2))
    array = np.array([[1, 0], [1, 1]]).astype(face.numpy)
    if dtype == "string":
        array = np.array([[b"a", b""], [b"\\xff", b"b"]], dtype=object)
    proto = proto_of(array, face)
    assert types_pb2.DataType.Name(proto.dtype) == name
    np.testing.assert_array_equal(array_of(proto, face), array)

def values(dtype, **fields):
    proto = tensor_pb2.TensorProto(dtype=dtype, **fields)
    for size in (2, 2):
        proto.tensor_shape.dim.add().size = size
    return proto

face = TensorSpec(name="x", dtype="float32", shape=(None, 2))
print(array_of(values(1, float_val=[1, 2, 3, 4]), face).tolist())
print(array_of(values(1, float_val=[7]), face).tolist())
for wrong in (values(1, float_val=[1, 2]), values(1), values(1, tensor_content=b"123"),
              values(2, double_val=[1]), values(1, float_val=[float("nan")])):
    try:
        array_of(wrong, face)
    except Refused as refused:
        print(refused.code)
wide = tensor_pb2.TensorProto(dtype=1, float_val=[7])
for size in (2**30, 2**30):
    wide.tensor_shape.dim.add().size = size
print(wide.ByteSize())
try:
    array_of(wide, TensorSpec(name="x", dtype="float32", shape=(None, None)), 2**20)
except Refused as refused:
    print(refused.code, refused.text)
print(array_of(values(1, float_val=[7]), face, 16).nbytes)
"""


def test_protocol_buffers_are_read_and_written_without_tensorflow() -> None:
    assert client(ROUND_TRIP, "") == [
        "[[1.0, 2.0], [3.0, 4.0]]", "[[7.0, 7.0], [7.0, 7.0]]", *["400"] * 5,
        "26", "400 x: [1073741824, 1073741824] is more than 1048576 bytes", "16",
    ]  # fmt: skip
