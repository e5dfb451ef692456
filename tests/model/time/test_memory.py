from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.steps import convolution, kernel, program

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import memory_model
from tfdyno.core.base.interval import Scaled
from tfdyno.core.base.settings import MOST_SAMPLES
from tfdyno.model.time.memory import max_batch_size, predict_memory, verdict

if TYPE_CHECKING:
    from tfdyno.core.choose.time_model import MemoryModel

GIB = 2.0**30
V100 = find("v100-sxm2-16gb")
PEAK = Scaled(fixed=1.0 * GIB, per_sample=0.1 * GIB)


def flat(**values: float) -> MemoryModel:
    """The shipped model with some constants set and no ranges: every interval is a point."""
    model = memory_model()
    parameters = {
        name: replace(p, value=v, low=v, high=v)
        for name, p in model.parameters.items()
        for v in [values.get(name, 1.0 if name.startswith("peak_") else 0.0)]
    }
    return replace(model, parameters=parameters)


def test_device_memory_adds_workspace_slack_and_context() -> None:
    model = flat(
        workspace_cudnn=0.5 * GIB, context_7=0.25 * GIB, allocator_slack=0.1, workspace_cublas=9.0
    )
    made = program(convolution(flops=1.0), peak=PEAK)
    found = predict_memory(made, gpu=V100, batch_size=10, execution="xla", model=model)
    assert found.peak_bytes.best == pytest.approx(2.5 * GIB)  # 1 + 10 x 0.1 + 0.5
    assert found.device_bytes.best == pytest.approx((2.5 * 1.1 + 0.25) * GIB)
    assert found.parts_bytes["workspace"] == 0.5 * GIB


def test_parts_add_up_to_the_device_memory() -> None:
    made = program(convolution(flops=1.0), kernel("gemm"), peak=PEAK)
    found = predict_memory(made, gpu=V100, batch_size=7, execution="graph", model=memory_model())
    assert sum(found.parts_bytes.values()) == pytest.approx(found.device_bytes.best)


def test_without_fusion_more_is_alive() -> None:
    made, model = program(kernel("gemm"), peak=PEAK), flat(peak_torch=1.5)
    fused, unfused = (
        predict_memory(made, gpu=V100, batch_size=10, execution=how, model=model).peak_bytes.best
        for how in ("xla", "eager-torch")
    )
    assert unfused == pytest.approx(1.5 * fused)


@given(st.floats(0, 20), st.floats(1e-3, 2))
def test_the_largest_batch_fits_and_one_more_does_not(fixed: float, per_sample: float) -> None:
    made = program(kernel("gemm"), peak=Scaled(fixed=fixed * GIB, per_sample=per_sample * GIB))
    model = memory_model()
    most = max_batch_size(made, gpu=V100, execution="xla", model=model)

    def need(batch_size: int) -> float:
        found = predict_memory(made, gpu=V100, batch_size=batch_size, execution="xla", model=model)
        return found.device_bytes.best

    assert most is not None
    assert need(most + 1) > V100.usable_memory_bytes
    assert most == 0 or need(most) <= V100.usable_memory_bytes * (1 + 1e-9)


def test_a_program_of_one_batch_knows_no_largest_batch() -> None:
    model = memory_model()
    for needed in (1.0, 99.0):
        one = program(kernel("gemm"), peak=Scaled(fixed=needed * GIB), marker=0, batch_size=12)
        assert max_batch_size(one, gpu=V100, execution="xla", model=model) is None


def test_a_plan_that_hardly_grows_ends_at_the_largest_batch_that_is_estimated() -> None:
    one = program(kernel("gemm"), peak=Scaled(fixed=GIB, per_sample=1.0))
    most = max_batch_size(one, gpu=V100, execution="xla", model=memory_model())
    assert most == MOST_SAMPLES


@given(st.floats(1e3, 1e9))
def test_no_step_needs_less_than_the_low_end_of_its_plan(plan_bytes: float) -> None:
    # the workspace of cuDNN alone is uncertain by more than a small plan
    one = program(convolution(flops=1.0), peak=Scaled(fixed=plan_bytes), route="quick")
    found = predict_memory(one, gpu=V100, batch_size=1, execution="xla", model=memory_model())
    assert found.peak_bytes.low >= 0.8 * plan_bytes * (1 - 1e-12)  # peak_quick: 0.8 to 1.25
    assert (
        found.device_bytes.low >= found.peak_bytes.low + memory_model().parameters["context_7"].low
    )


@pytest.mark.parametrize(
    ("route", "peak_gib", "verified", "answer"),
    [
        ("exact", 4.0, False, "yes"),
        ("exact", 30.0, False, "no"),
        ("exact", 14.5, False, "may not"),
        ("exact", 14.5, True, "yes"),
        ("quick", 4.0, False, "yes"),
        ("quick", 14.5, False, "unverified"),
        ("quick", 60.0, False, "no"),
    ],
)
def test_the_verdict_knows_how_sure_the_plan_is(
    route: str, peak_gib: float, verified: bool, answer: str
) -> None:
    made = program(kernel("gemm"), peak=Scaled(fixed=peak_gib * GIB), route=route)
    model = memory_model()
    held = predict_memory(made, gpu=V100, batch_size=1, execution="xla", model=model)
    usable = float(V100.usable_memory_bytes)
    assert verdict(made, held, usable_bytes=usable, verified=verified, model=model) == answer


def test_graph_mode_counts_the_allocators_slack_in_the_peak_xla_does_not() -> None:
    made, model = program(kernel("gemm"), peak=Scaled(fixed=GIB)), flat(allocator_slack=0.1)
    graph, xla = (
        predict_memory(made, gpu=V100, batch_size=1, execution=how, model=model)
        for how in ("graph", "xla")
    )
    assert graph.peak_bytes.best == pytest.approx(1.1 * xla.peak_bytes.best)
    assert graph.device_bytes.best == pytest.approx(xla.device_bytes.best)


def test_a_compiled_plans_scratch_gives_way_to_what_autotuning_keeps() -> None:
    scratch = 32 * 2.0**20
    made = program(kernel("gemm"), peak=Scaled(fixed=48 * 2.0**20), route="exact")
    made = replace(
        made,
        buffers=replace(made.buffers, parts_bytes={"workspace": Scaled(fixed=scratch)}),
    )
    model = flat(workspace_planned=scratch, workspace_cublas=4 * 2.0**20)
    found = predict_memory(made, gpu=V100, batch_size=1, execution="xla", model=model)
    assert found.peak_bytes.best == pytest.approx(20 * 2.0**20)  # 48 - 32 + 4
    assert found.parts_bytes["workspace"] == pytest.approx(4 * 2.0**20)


def test_a_process_takes_what_growth_makes_of_the_peak_and_never_less_than_it_needs() -> None:
    made = program(kernel("gemm"), peak=Scaled(fixed=GIB))
    grown, small = (
        predict_memory(made, gpu=V100, batch_size=1, execution="xla",
                       model=flat(process_growth=growth, context_7=0.5 * GIB))
        for growth in (2.2, 0.1)
    )  # fmt: skip
    assert grown.process_bytes.best == pytest.approx(2.7 * GIB)  # 2.2 + 0.5
    assert grown.process_bytes.low == grown.device_bytes.low
    assert small.process_bytes.best == small.device_bytes.best
