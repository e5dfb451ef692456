from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.steps import convolution, kernel, program
from tests.model.time.test_estimate import NET, estimate

from tfdyno.catalog.time_model import time_model
from tfdyno.core.base.interval import Scaled
from tfdyno.core.base.settings import EXECUTIONS
from tfdyno.model.time.explanation import LISTED_OF_DEVICE, LISTED_SHARE

if TYPE_CHECKING:
    from typing import Any

    from tfdyno.core.choose.explanation import Explanation

SIZES = tuple(
    replace(
        convolution(flops=1e9 / size, traffic_bytes=3e6, window=(3, 3), channels=(size, size)),
        layer=f"conv{size}",
    )
    for size in range(16, 416, 8)
)
MANY = program(*SIZES, *(kernel("loop", traffic_bytes=1e6) for _ in range(40)))


def explained(**named: Any) -> tuple[Explanation, float]:
    found = estimate(explained=True, **named)
    assert found.explanation
    return found.explanation, found.step_s.best


def kernels_s(why: Explanation) -> float:
    return sum(one.time_s for one in why.kernels) + sum(one.time_s for one in why.others)


def total_s(why: Explanation) -> float:
    """What the docstring of ``Explanation`` says that the step is."""
    exposed_s = why.exchange.exposed_s if why.exchange else 0.0
    return kernels_s(why) + why.waiting_s + why.fixed_s + exposed_s


@pytest.mark.parametrize("replicas", [1, 4])
@pytest.mark.parametrize("mode", ["train", "infer"])
@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("gpu", ["t4", "a100-sxm4-40gb", "rtx-3090", "gtx-1080-ti"])
def test_the_parts_add_up_to_the_step(gpu: str, execution: str, mode: str, replicas: int) -> None:
    why, step_s = explained(
        gpu=gpu, made=MANY, execution=execution, mode=mode, replicas=replicas, batch_size=32
    )
    assert total_s(why) == pytest.approx(step_s, rel=1e-12)
    assert kernels_s(why) == pytest.approx(why.device_s)
    assert sum(why.device_by_cause_s.values()) == pytest.approx(why.device_s)
    for one in why.kernels:
        assert sum(term.time_s for term in one.terms) == pytest.approx(one.time_s, rel=1e-9)


@given(st.integers(1, 4096))
def test_the_parts_add_up_at_every_batch(batch_size: int) -> None:
    why, step_s = explained(made=MANY, batch_size=batch_size)
    assert total_s(why) == pytest.approx(step_s, rel=1e-12)
    assert sum(one.share_ratio for one in why.kernels) <= 1.0


def test_the_listed_kernels_make_nine_tenths_of_the_step_and_no_one_is_spare() -> None:
    why, step_s = explained(made=MANY, batch_size=512)
    shares = [one.share_ratio for one in why.kernels]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) >= LISTED_SHARE > sum(shares[:-1])
    assert why.others
    assert sum(shares) == pytest.approx(sum(one.time_s for one in why.kernels) / step_s)


def test_a_step_that_mostly_waits_lists_what_its_kernels_do_all_the_same() -> None:
    tiny = program(*(kernel("loop", traffic_bytes=10.0 * n) for n in range(1, 400)))
    why, step_s = explained(made=tiny, batch_size=1, execution="graph")
    listed_s = sum(one.time_s for one in why.kernels)
    assert why.device_s < LISTED_SHARE * step_s
    assert why.waiting_s > 0.0
    assert listed_s >= LISTED_OF_DEVICE * why.device_s


def test_kernels_that_are_alike_are_one_entry_with_their_layers() -> None:
    why, _ = explained()
    first = {one.kind: one for one in why.kernels}
    assert len(why.kernels) == len(first)  # 50 equal convolutions, 100 equal loops
    assert first["convolution"].count == 50
    assert first["convolution"].layers == ("conv",)
    assert first["convolution"].flops == pytest.approx(4e9 * 64)
    assert first["loop"].count == 100
    assert first["loop"].smallest_bytes == first["loop"].largest_bytes == pytest.approx(2e6 * 64)


def test_other_sizes_phases_and_directions_are_other_entries() -> None:
    base = convolution(flops=1e9, traffic_bytes=1e6)
    others = (
        replace(base, direction="input_gradient", phase="backward"),
        replace(base, phase="backward"),
        replace(base, dtype="f32"),
        convolution(flops=1e9, traffic_bytes=1e6, channels=(64, 128)),
    )
    why, _ = explained(made=program(base, *others, base))
    counts = [one.count for one in why.kernels] + [one.count for one in why.others]
    assert sorted(counts) == [1, 1, 1, 1, 2]


def test_sizes_that_grow_with_the_batch_are_those_of_the_batch_asked() -> None:
    base = convolution(flops=1e9, traffic_bytes=1e6)
    grown = replace(base, dims={**base.dims, "n": (296,)}, dims_scaled=("n",))
    why, _ = explained(made=program(grown), batch_size=32)
    assert why.kernels[0].dims["n"] == (32,)
    assert why.kernels[0].dims["cin"] == (64,)


def test_utilisation_and_what_holds_a_kernel_are_worked_by_hand() -> None:
    why, _ = explained(made=program(convolution(flops=1e10, traffic_bytes=1e6)), batch_size=100)
    (one,) = why.kernels
    assert one.bound_by == "compute"
    assert one.peak_ratio == pytest.approx(1e12 / one.time_s / (108 * 2048 * 1.41e9))
    assert one.bandwidth_ratio == pytest.approx(1e8 / one.time_s / 1555e9)
    moved, _ = explained(made=program(kernel("loop", traffic_bytes=1e9)), batch_size=100)
    assert moved.kernels[0].bound_by == "memory"
    assert moved.kernels[0].peak_ratio is None


def test_the_parts_of_the_host_add_up() -> None:
    made = program(convolution(flops=1e9), kernel("loop", traffic_bytes=1e6))
    why, _ = explained(made=made, batch_size=1)
    assert [(one.count, one.constant) for one in why.host] == [
        (2, "host_xla"),
        (1, "host_xla_convolution"),
    ]
    assert sum(one.count * one.each_s for one in why.host) == pytest.approx(why.host_s)


def test_every_constant_that_a_formula_names_is_listed_with_its_source() -> None:
    why, _ = explained(replicas=4, gpu="rtx-3090")
    model = time_model()
    named = {why.fixed_constant, *(cost.constant for cost in why.host)}
    for one in why.kernels:
        for term in one.terms:
            named |= {each.constant for each in (*term.more, *term.shares)} | {term.each}
    assert why.exchange
    named |= {share.constant for share in why.exchange.shares} | set(why.exchange.constants)
    assert {one.name for one in why.constants} == named - {""}
    for constant in why.constants:
        stored = model.parameters[constant.name]
        assert (constant.value, constant.source) == (stored.value, stored.source)
        assert constant.identified == stored.identified
    assert {one.name for one in why.peaks} >= {"bandwidth", "fp16_tensor"}


def test_the_largest_layers_of_an_entry_come_first() -> None:
    small = replace(kernel("loop", traffic_bytes=1e6), layer="small")
    large = replace(kernel("loop", traffic_bytes=9e6), layer="large")
    why, _ = explained(made=program(small, large))
    assert why.kernels[0].layers == ("large", "small")
    assert why.kernels[0].smallest_bytes == pytest.approx(64e6)
    assert why.kernels[0].largest_bytes == pytest.approx(9 * 64e6)


def test_a_loop_is_counted_as_often_as_it_runs() -> None:
    looped = replace(kernel("loop", traffic_bytes=1e8), count=12, repeats=12)
    why, step_s = explained(made=program(looped))
    assert why.count == why.kernels[0].count == 12
    assert why.kernels[0].largest_bytes == pytest.approx(64 * 1e8 / 12)
    assert total_s(why) == pytest.approx(step_s)


def test_a_program_that_does_nothing_is_explained_too() -> None:
    nothing = replace(kernel("loop"), flops=Scaled(), write_bytes=Scaled(), count=0)
    why, step_s = explained(made=program(nothing), batch_size=1)
    assert why.kernels == ()
    assert total_s(why) == pytest.approx(step_s)


def test_nothing_is_explained_unasked() -> None:
    assert estimate(made=NET).explanation is None


def test_reductions_are_told_apart_by_rows_and_batches_not_by_how_many_channels() -> None:
    base = kernel("reduce", traffic_bytes=1e7)
    sizes = (1, 1, 64, 128, 256)
    made = program(*(replace(base, dims={"inner": (size,)}) for size in sizes))
    why, _ = explained(made=made)
    found = {one.shape: one for one in why.kernels}
    assert {shape: one.count for shape, one in found.items()} == {"rows": 2, "": 3}
    assert len(why.kernels) == 2
    constants = {
        shape: next(term.shares[0].constant for term in one.terms if term.cause == "memory")
        for shape, one in found.items()
    }
    assert constants == {"rows": "e_rows", "": "e_reduce"}
    assert all(one.dims == {} for one in why.kernels)


def test_the_optimizer_and_what_an_execution_makes_of_it_are_an_entry_of_their_own() -> None:
    update = replace(kernel("loop", traffic_bytes=1e7), phase="update")
    why, _ = explained(
        made=program(kernel("loop", traffic_bytes=1e7), update, update),
        execution="eager-torch",
        precision="float32",
        policy="float32",
    )
    found = {one.phase: one for one in why.kernels}
    assert {phase: one.count for phase, one in found.items()} == {"update": 2, "forward": 1}
    factors = {
        phase: [more.constant for term in one.terms for more in term.more if term.cause == "memory"]
        for phase, one in found.items()
    }
    assert factors == {"update": ["torch_update"], "forward": ["torch_fusion_cnn_train"]}


def test_mixed_precision_has_its_optimizer_in_one_kernel() -> None:
    update = replace(kernel("loop", traffic_bytes=1e7), phase="update")
    why, _ = explained(made=program(update), execution="eager-torch")  # mixed_float16
    (one,) = why.kernels
    assert [more for term in one.terms for more in term.more if term.cause == "memory"] == []
