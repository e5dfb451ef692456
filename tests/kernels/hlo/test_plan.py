"""The plan of a stored program: five convolutions, mixed_float16, Adam with loss scale, batch 296.

Compiled for compute capability 8.0 by jax-cuda12-pjrt 0.10.2; the totals are the compiler's own.
"""

import gzip
from pathlib import Path

import pytest

from tfdyno.core.choose.program import BufferPlan
from tfdyno.core.choose.workload import TensorSpec
from tfdyno.kernels.hlo.buffers import BufferReader
from tfdyno.kernels.hlo.kernels import KernelReader
from tfdyno.kernels.hlo.plan import MemoryTotals, plan_of
from tfdyno.kernels.hlo.text import HloModule, leaves, parse
from tfdyno.kernels.memory.buffer_parts import PARTS
from tfdyno.kernels.memory.live_bytes import live_bytes
from tfdyno.kernels.records import Sizes

STORED = Path(__file__).parents[2] / "data/hlo/cnn_sm80.hlo.gz"
SIZES = Sizes(296, 37)
TOTALS = MemoryTotals(
    argument_bytes=6_995_376,
    output_bytes=3_357_492,
    aliased_bytes=3_356_944,
    temporary_bytes=118_392_120,
)
ROLES = ("weight",) * 17 + ("state",) * 10 + ("optimizer",) * 40 + ("input", "target")


@pytest.fixture(scope="module")
def module() -> HloModule:
    return parse(gzip.decompress(STORED.read_bytes()).decode())


@pytest.fixture(scope="module")
def plan(module: HloModule) -> BufferPlan:
    tensors = []
    for role, parameter in zip(ROLES, module.entry.parameters(), strict=True):
        (shape,) = leaves(parameter.type)
        spec = TensorSpec(
            name=f"{role}/{parameter.name}",
            role=role,  # type: ignore[arg-type]
            shape=shape.dims,
            dtype=shape.dtype,
            bytes=shape.bytes,
        )
        tensors.append(spec)
    return plan_of(module, SIZES, TOTALS, tuple(tensors), train=True)


def test_the_own_liveness_is_within_two_percent_of_the_compilers_plan(module: HloModule) -> None:
    reader = BufferReader(module, SIZES)
    peak = max(each.at(296) for each in live_bytes(reader.temporaries, reader.steps))
    assert peak == pytest.approx(TOTALS.temporary_bytes, rel=0.02)


def test_the_plan_gives_the_compilers_totals_at_its_batch(plan: BufferPlan) -> None:
    assert plan.argument_bytes.at(296) == pytest.approx(TOTALS.argument_bytes)
    assert plan.output_bytes.at(296) == pytest.approx(TOTALS.output_bytes)
    assert plan.temporary_bytes.at(296) == pytest.approx(TOTALS.temporary_bytes)
    peak = 6_995_376 + 3_357_492 - 3_356_944 + 118_392_120
    assert plan.peak_bytes.at(296) == plan.peak_at(296) == pytest.approx(peak)


def test_the_parts_add_up_to_the_peak(plan: BufferPlan) -> None:
    assert tuple(plan.parts_bytes) == PARTS
    for batch in (1, 64, 296):
        parts = sum(part.at(batch) for part in plan.parts_bytes.values())
        assert parts == pytest.approx(plan.peak_bytes.at(batch))


def test_weights_and_optimizer_do_not_grow_with_the_batch(plan: BufferPlan) -> None:
    # 277,194 trainable values and 832 moving statistics in float32; two Adam slots of each value
    parameters = 3 * 3 * (3 * 32 + 32 * 64 + 64 * 64 + 64 * 128 + 128 * 128) + 2 * 416 + 1290
    assert plan.parts_bytes["weights"].fixed >= 4 * (parameters + 2 * 416)
    assert plan.parts_bytes["optimizer"].fixed == pytest.approx(4 * 2 * parameters, rel=0.01)
    assert plan.parts_bytes["weights"].per_sample == 0
    assert plan.parts_bytes["optimizer"].per_sample == 0


def test_inputs_hold_the_images_and_labels_of_a_batch(plan: BufferPlan) -> None:
    assert plan.parts_bytes["inputs"].per_sample == 32 * 32 * 3 * 4 + 4


def test_the_ten_largest_buffers_are_activations_of_named_layers(plan: BufferPlan) -> None:
    assert len(plan.largest) == 10
    sizes = [each.bytes.at(296) for each in plan.largest]
    assert sizes == sorted(sizes, reverse=True)
    assert plan.largest[0].layer in {"relu0", "bn0", "conv0"}
    assert {each.part for each in plan.largest} <= {"activations", "workspace"}


def test_the_curve_peaks_at_the_peak(plan: BufferPlan) -> None:
    assert len(plan.live_curve) <= 200
    assert max(live.at(296) for _, live in plan.live_curve) == pytest.approx(
        plan.peak_bytes.at(296)
    )


def test_every_convolution_is_found_in_its_three_directions(module: HloModule) -> None:
    found = KernelReader(module, SIZES, train=True).kernels()
    convolutions = [each for each in found if each.kind == "convolution"]
    per_layer = {f"conv{k}": 3 for k in range(1, 5)} | {"conv0": 2}  # none needs d loss / d image
    assert {n: sum(c.layer == n for c in convolutions) for n in per_layer} == per_layer
    # 32x32x32x27, then 16x16x64x288, 16x16x64x576, 8x8x128x576, 8x8x128x1152 multiply-adds
    steps = [32 * 32 * 32 * 9 * 3, 16 * 16 * 64 * 9 * 32, 16 * 16 * 64 * 9 * 64]
    steps += [8 * 8 * 128 * 9 * 64, 8 * 8 * 128 * 9 * 128]
    exact = 2 * (3 * sum(steps[1:]) + 2 * steps[0] * 4 / 3)  # 3 image channels are padded to 4
    assert sum(each.flops.per_sample for each in convolutions) == pytest.approx(exact)
    assert sum(each.flops.fixed for each in convolutions) == 0
