from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.model.steps import convolution, kernel, program

from tfdyno.core.base.interval import Scaled
from tfdyno.core.base.settings import EXECUTIONS
from tfdyno.core.choose.program import Kernel
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


def product(m: int, n: int, k: int, *, read_bytes: float, write_bytes: float) -> Kernel:
    """Products of one sample with two heads."""
    return Kernel(
        kind="gemm",
        dtype="f16",
        flops=Scaled(per_sample=2.0 * 2 * m * n * k),
        read_bytes=Scaled(per_sample=read_bytes),
        write_bytes=Scaled(per_sample=write_bytes),
        dims={"m": (m,), "n": (n,), "k": (k,), "batch": (2,)},
        dims_scaled=("batch",),
    )


def attention() -> tuple[Kernel, ...]:
    """Ten places and four numbers a head: 2 bytes each, scores as written 4."""
    tensor, scores = 2 * 10 * 4 * 2.0, 2 * 10 * 10 * 2.0
    softmax = replace(kernel("reduce", traffic_bytes=3.0 * scores), dims={"inner": (1,)})
    return (
        product(10, 10, 4, read_bytes=2.0 * tensor, write_bytes=2.0 * scores),
        softmax,
        product(4, 10, 10, read_bytes=tensor + scores, write_bytes=tensor),
    )


def test_fused_attention_moves_queries_keys_values_and_result_alone() -> None:
    other = kernel("loop", traffic_bytes=8.0)
    record = replace(RECORD, per_op=program(other, *attention(), other))
    first, fused, last = program_of(record, "eager-torch", fused_attention=True).kernels
    assert first == last == other
    assert fused.flops == Scaled(per_sample=2 * 2.0 * 2 * 10 * 10 * 4)
    assert fused.read_bytes.per_sample == pytest.approx(3 * 160.0)
    assert fused.write_bytes == Scaled(per_sample=160.0)
    assert fused.count == 1
    assert len(program_of(record, "eager-torch").kernels) == 5


def test_products_without_a_softmax_between_are_not_attention() -> None:
    first, _, second = attention()
    apart = replace(RECORD, program=program(first, kernel("loop", traffic_bytes=8.0), second))
    assert program_of(apart, "xla", fused_attention=True).kernels == apart.program.kernels
