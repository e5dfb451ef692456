from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.model.steps import convolution, kernel, program

from tfdyno.core.interval import Scaled
from tfdyno.core.program import Kernel
from tfdyno.core.settings import EXECUTIONS
from tfdyno_truth.records import Record, program_of, read_record, write_record

if TYPE_CHECKING:
    from pathlib import Path

KEY = ("net", "train", "mixed_float16")
UPDATE = Kernel(
    kind="loop",
    dtype="f16",
    phase="update",
    flops=Scaled(fixed=40.0),
    read_bytes=Scaled(fixed=80.0),
    write_bytes=Scaled(fixed=20.0),
    count=1,
)
RECORD = Record(
    program=program(convolution(flops=1e9, traffic_bytes=1e6), kernel("loop", traffic_bytes=8.0)),
    per_op=program(
        convolution(flops=1e9, traffic_bytes=1e6),
        kernel("loop", traffic_bytes=8.0),
        kernel("reduce", traffic_bytes=2.0),
        UPDATE,
    ),
    policy="mixed_float16",
    trainable_parameter_count=10,
)


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_an_execution_takes_the_program_that_it_runs(execution: str) -> None:
    fused = execution in ("xla", "compiled-torch")
    assert program_of(RECORD, execution) is (RECORD.program if fused else RECORD.per_op)


def test_of_accumulated_steps_each_pays_its_share_of_the_optimizer() -> None:
    updates = replace(UPDATE, count=8)
    record = replace(RECORD, program=program(kernel("loop", traffic_bytes=8.0), updates))
    step, shared = program_of(record, "xla", accumulation=4).kernels
    assert step == record.program.kernels[0]  # forward and backward run in every step
    assert shared.count == 2
    assert shared.flops == Scaled(fixed=10.0)
    assert (shared.read_bytes, shared.write_bytes) == (Scaled(fixed=20.0), Scaled(fixed=5.0))
    assert program_of(record, "xla", accumulation=1) is record.program


def test_an_optimizer_that_hardly_ever_runs_is_left_out() -> None:
    kept = program_of(RECORD, "graph", accumulation=32)
    assert [one.phase for one in kept.kernels] == ["forward"] * 3
    assert len(program_of(RECORD, "graph").kernels) == 4


def test_a_record_keeps_both_programs_without_names(tmp_path: Path) -> None:
    write_record(tmp_path, KEY, RECORD)
    found = read_record(tmp_path, KEY)
    assert found
    assert {one.layer for made in (found.program, found.per_op) for one in made.kernels} == {""}
    for made, stored in ((RECORD.program, found.program), (RECORD.per_op, found.per_op)):
        assert [(one.kind, one.flops) for one in stored.kernels] == [
            (one.kind, one.flops) for one in made.kernels
        ]
    assert (found.policy, found.trainable_parameter_count) == ("mixed_float16", 10)


def test_the_measured_half_type_replaces_the_traced_one_in_both_programs(tmp_path: Path) -> None:
    write_record(tmp_path, KEY, RECORD)
    for precision, dtype in (("mixed_bfloat16", "bf16"), ("float16", "f16"), ("tf32", "f16")):
        found = read_record(tmp_path, KEY, precision)
        assert found
        for made in (found.program, found.per_op):
            assert {one.dtype for one in made.kernels} == {dtype}


def test_a_model_that_was_never_traced_has_no_record(tmp_path: Path) -> None:
    assert read_record(tmp_path, KEY) is None


def test_equal_primitive_kernels_are_stored_as_one_with_their_number(tmp_path: Path) -> None:
    small = replace(kernel("loop", traffic_bytes=8.0), dims={"elements": (2,), "per_thread": (1,)})
    other = replace(small, dims={"elements": (4,), "per_thread": (1,)})
    named = [replace(small, layer=f"layer_{number}") for number in range(3)]
    stored = replace(RECORD, per_primitive=program(*named, other))
    write_record(tmp_path, KEY, stored)
    found = read_record(tmp_path, KEY, "mixed_bfloat16")
    assert found
    assert found.per_primitive
    three, one = found.per_primitive.kernels
    assert (three.count, three.write_bytes) == (3, Scaled(per_sample=24.0))
    assert (one.count, one.dims["elements"]) == (1, (4,))
    assert {each.dtype for each in found.per_primitive.kernels} == {"bf16"}
    write_record(tmp_path, KEY, RECORD)
    older = read_record(tmp_path, KEY)
    assert older
    assert older.per_primitive is None
