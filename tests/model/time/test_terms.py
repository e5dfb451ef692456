from __future__ import annotations

from itertools import product as each_with_each
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.model.time.test_parts import CARDS, CLASSES

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import time_model
from tfdyno.core.base.settings import EXECUTIONS
from tfdyno.model.time import step
from tfdyno.model.time.kernel_table import ClassWork, CostClass
from tfdyno.model.time.kernel_time import rates, targets
from tfdyno.model.time.terms import BANDWIDTH, Pricing, Work, peak_of, route_name, terms_of

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu

SETTINGS = (
    *(
        step.Setting(execution=execution, mode=mode)
        for execution, mode in each_with_each(EXECUTIONS, ("train", "infer"))
    ),
    step.Setting(execution="eager-torch", mode="train", fused_optimizer=False),
)
WORK = Work(3.0, 2e9, 4e9, 5e8, 1e8)


def pricing(gpu: Gpu, setting: step.Setting = SETTINGS[0], *, tf32: bool = True) -> Pricing:
    model = time_model()
    return Pricing(
        gpu=gpu,
        tf32_allowed=tf32,
        cards=targets([(gpu, tf32)], model.sustained_clock),
        setting=setting,
        time_model=model,
    )


@pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda one: f"{one.execution}-{one.mode}-{one.fused_optimizer}"
)
def test_the_terms_that_are_shown_add_up_to_what_is_priced(setting: step.Setting) -> None:
    model = time_model()
    how = step.factors(setting, model)
    for gpu, tf32 in CARDS[::7]:
        shown = pricing(gpu, setting, tf32=tf32)
        paid = step.executed(rates(CLASSES, shown.cards, model), CLASSES, how)
        work = ClassWork(
            launches=np.full(len(CLASSES), WORK.launches),
            executed_flops=np.full(len(CLASSES), WORK.executed_flops),
            traffic_bytes=np.full(len(CLASSES), WORK.traffic_bytes),
            extra_bytes=np.full(len(CLASSES), WORK.extra_bytes),
        )
        causes = step.device_seconds(work, paid, how, model)
        for index, cost_class in enumerate(CLASSES):
            terms = terms_of(cost_class, WORK, shown)
            found = {term.cause: term.time_s for term in terms}
            memory = found["memory"] + found.get("overlap", 0.0)
            assert found.get("compute", 0.0) == pytest.approx(causes.compute_s[0, index], rel=1e-9)
            assert memory == pytest.approx(causes.memory_s[0, index], rel=1e-9)
            assert found["launch"] == pytest.approx(causes.launch_s[index], rel=1e-9)


@pytest.mark.parametrize("setting", SETTINGS[::2], ids=lambda one: f"{one.execution}-{one.mode}")
def test_every_term_is_worked_out_from_the_numbers_that_it_shows(setting: step.Setting) -> None:
    for cost_class in CLASSES:
        for term in terms_of(cost_class, WORK, pricing(find("t4"), setting)):
            amount = term.amount
            for factor in term.more:
                amount *= factor.factor_ratio
            if not term.peak:
                assert term.time_s == pytest.approx(amount * term.each_s)
                continue
            rate = term.rate_per_s
            for factor in term.shares:
                rate *= factor.factor_ratio
            assert term.time_s == pytest.approx(amount / rate)


def test_a_peak_is_the_product_that_it_shows_and_the_rate_of_its_terms() -> None:
    for gpu, tf32 in CARDS:
        asked = pricing(gpu, tf32=tf32)
        for cost_class in CLASSES:
            for term in terms_of(cost_class, WORK, asked):
                if not term.peak:
                    continue
                peak = peak_of(term.peak, asked)
                assert peak.rate_per_s == pytest.approx(term.rate_per_s)
                assert peak.source
                if peak.name == BANDWIDTH:
                    continue
                product = peak.sm_count * peak.flops_per_clock * peak.clock_hz * peak.held_ratio
                assert peak.rate_per_s == pytest.approx(product)


def test_a_card_that_does_not_hold_its_clock_says_who_measured_it() -> None:
    peak = peak_of("fp16_tensor", pricing(find("t4")))
    assert peak.held_ratio < 1.0
    assert peak.held_source
    assert peak_of("fp16_tensor", pricing(find("a100-sxm4-40gb"))).held_ratio == 1.0


def test_winograd_is_named_where_it_is_the_faster_way() -> None:
    wide = CostClass("convolution", "f32", "forward", "winograd3")
    assert route_name(wide, pricing(find("gtx-1080-ti"))) == "Winograd"
    assert route_name(wide, pricing(find("a100-sxm4-40gb"))) == "product"
    assert route_name(CostClass("loop"), pricing(find("gtx-1080-ti"))) == ""


@pytest.mark.parametrize("shape", ["", "winograd3", "depthwise"])
def test_float64_is_explained_by_its_own_peak(shape: str) -> None:
    kind = CostClass("convolution", "f64", "forward", shape)
    compute = terms_of(kind, WORK, pricing(find("a100-sxm4-40gb")))[0]
    assert compute.peak == "fp64"
    assert compute.rate_per_s == pytest.approx(108 * 64 * 1.41e9)


def test_wasted_tiles_are_a_factor_of_their_own() -> None:
    grouped = CostClass("convolution", "f16", "forward", "grouped")
    compute = terms_of(grouped, WORK, pricing(find("a100-sxm4-40gb")))[0]
    assert compute.amount == WORK.flops
    assert [(one.name, one.factor_ratio) for one in compute.more] == [("part-filled tiles", 2.0)]


@pytest.mark.parametrize(
    ("cost_class", "setting", "cause", "constant"),
    [
        (CostClass("loop", shape="update"), SETTINGS[-1], "memory", "torch_update"),
        (CostClass("convolution", "f16", "forward"), SETTINGS[-1], "memory", "torch_layout"),
        (
            CostClass("convolution", "f32", "forward", "depthwise"),
            SETTINGS[0],
            "memory",
            "xla_depthwise",
        ),
        (
            CostClass("convolution", "f32", "forward", "depthwise"),
            SETTINGS[0],
            "compute",
            "xla_depthwise",
        ),
        (CostClass("window"), SETTINGS[0], "overlap", "xla_overlap"),
        (CostClass("loop"), SETTINGS[6], "memory", "compiled_fusion"),
        (CostClass("loop"), SETTINGS[2], "memory", "graph_fusion_train"),
    ],
)
def test_what_an_execution_adds_stands_beside_the_amount(
    cost_class: CostClass, setting: step.Setting, cause: str, constant: str
) -> None:
    terms = terms_of(cost_class, WORK, pricing(find("t4"), setting))
    (more,) = (
        one
        for term in terms
        for one in term.more
        if term.cause == cause and one.constant not in ("", "window_overlap")
    )
    assert (more.constant, more.factor_ratio) == (constant, time_model()[constant])
    assert more.name


def test_a_fused_optimizer_and_a_float32_convolution_pay_nothing_more() -> None:
    fused = step.Setting(execution="eager-torch", mode="train")
    for cost_class in (
        CostClass("loop", shape="update"),
        CostClass("convolution", "f32", "forward"),
        CostClass("gemm", "f16"),
    ):
        terms = terms_of(cost_class, WORK, pricing(find("t4"), fused))
        memory = next(term for term in terms if term.cause == "memory")
        assert memory.more == ()


def test_terms_of_nothing_are_left_out() -> None:
    terms = terms_of(CostClass("loop"), Work(1.0, 0.0, 0.0, 8.0, 0.0), pricing(find("t4")))
    assert [term.cause for term in terms] == ["memory", "launch"]
