"""What is inside of the instructions of XLA's programs, by the bytes of ``HloProto``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profile.test_operations import RECORDED
from tests.runtime.benches import in_tensorflow
from tests.runtime.planted_profiles import message

from tfdyno.profile.files import load_profile
from tfdyno.profile.programs import Instruction, instructions


def instruction(name: str, opcode: str, *more: bytes) -> bytes:
    return message(2, message(1, name.encode()) + message(2, opcode.encode()) + b"".join(more))


def program(*computations: bytes) -> memoryview:
    return memoryview(message(1, b"".join(message(3, body) for body in computations)))


FUSED = instruction("dot.1", "dot") + instruction("add.2", "add", message(3, b"\x10\x0c"))
CALLS_FUSED = message(38, b"\x07")  # one number, packed
SCOPE = message(7, message(1, b"MatMul") + message(2, b"m/dense/MatMul"))
WHOLE = program(
    FUSED + b"\x28\x07",  # number 7
    instruction("ynn_fusion", "fusion", CALLS_FUSED, SCOPE)
    + instruction("call.3", "custom-call", message(28, b"__cublas$lt$matmul"))
    + instruction("while.4", "while", CALLS_FUSED)
    + b"\x28\x08",
)


def test_a_fusion_has_the_opcodes_of_what_it_calls() -> None:
    found = instructions([("jit_step(12)", WHOLE)])
    assert found["jit_step", "ynn_fusion"] == Instruction(
        opcodes=("fusion", "dot", "add"), type="MatMul", scope="m/dense/MatMul", is_float64=True
    )
    assert found["jit_step", "dot.1"] == Instruction(opcodes=("dot",))


def test_a_call_of_a_library_is_known_by_its_target_and_a_loop_by_itself() -> None:
    found = instructions([("jit_step", WHOLE)])
    assert found["jit_step", "call.3"].opcodes == ("custom-call:__cublas$lt$matmul",)
    assert found["jit_step", "while.4"] == Instruction(opcodes=("while",))


@given(st.binary(max_size=60), st.integers(0, len(WHOLE)))
def test_a_damaged_program_is_left_out(noise: bytes, cut: int) -> None:
    damaged = memoryview(bytes(WHOLE[:cut]) + noise)
    found = instructions([("bad", damaged), ("good", WHOLE)])
    assert ("good", "ynn_fusion") in found


THEIRS = """
import gzip
from tensorflow.compiler.xla.service.hlo_pb2 import HloProto
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace
space = XSpace.FromString(gzip.open(PATH).read())
result = {}
for plane in space.planes:
    for kind in plane.event_metadata.values() if plane.name == "/host:metadata" else ():
        for stat in kind.stats:
            module = HloProto.FromString(stat.bytes_value).hlo_module
            for computation in module.computations:
                for one in computation.instructions:
                    said = [one.opcode, one.metadata.op_type, one.metadata.op_name]
                    result[kind.name.partition("(")[0] + " " + one.name] = said
"""


@pytest.mark.tf
@pytest.mark.parametrize("name", ["conv_xla", "float64_xla"])
def test_tensorflow_reads_the_same(name: str) -> None:
    path = RECORDED / f"{name}.xplane.pb.gz"
    theirs: dict[str, Any] = in_tensorflow(f"PATH = {str(path)!r}\n{THEIRS}")
    found = instructions(load_profile(path).programs)
    ours = {f"{module} {key}": [one.opcodes[0], one.type, one.scope]
            for (module, key), one in found.items()}  # fmt: skip
    assert ours == theirs
    assert len(ours) > 2
