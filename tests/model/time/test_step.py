from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.steps import Neutral, convolution, kernel, program

from tfdyno.catalog.gpus import all_gpus, find
from tfdyno.catalog.time_model import time_model
from tfdyno.core.base.settings import EXECUTIONS
from tfdyno.model.time.kernel_table import LIBRARY_KINDS, CostClass, KernelTable
from tfdyno.model.time.kernel_time import Rates, rates, targets
from tfdyno.model.time.step import (
    Factors,
    Setting,
    StepTime,
    executed,
    factor_names,
    factors,
    step_time,
    traffic_field,
)

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Program
    from tfdyno.core.choose.time_model import Constants

A100 = find("a100-sxm4-40gb")
HALF = 108 * 2048 * 1.41e9
XLA = Setting(execution="xla", mode="train")
FIELDS = (
    "fusion", "library", "convolution", "launches", "host_s", "host_convolution_s", "layout",
    "overlap", "depthwise", "update",
)  # fmt: skip


def timed(
    made: Program, batch_size: float, constants: Constants, setting: Setting = XLA
) -> StepTime:
    table = KernelTable.of(made)
    priced = rates(table.classes, targets([(A100, True)], {}), constants)
    how = factors(setting, constants)
    return step_time(table.work(batch_size), table.classes, priced, how, constants)


def test_time_is_the_sum_of_compute_memory_and_launches() -> None:
    made = program(
        convolution(flops=HALF * 1e-5, traffic_bytes=1555e9 * 2e-5),
        kernel("loop", traffic_bytes=1555e9 * 3e-5),
    )
    found = timed(made, 100, Neutral(t_launch=1e-4, t_step=5e-4))
    assert found.compute_s[0] == pytest.approx(1e-3)  # 100 samples x 10 us
    assert found.memory_s[0] == pytest.approx(2e-3 + 3e-3)
    assert found.launch_s[0] == pytest.approx(2 * 1e-4 + 5e-4)
    assert found.step_s[0] == pytest.approx(6.7e-3)


def test_a_host_that_is_slower_than_the_gpu_decides() -> None:
    made = program(kernel("loop", traffic_bytes=1555e9 * 1e-6))
    assert timed(made, 1, Neutral(host_xla=1e-2)).step_s[0] == pytest.approx(1e-2, rel=1e-3)


def test_without_fusion_only_fusions_cost_more() -> None:
    constants = Neutral(graph_fusion_train=2.0)
    made = program(
        convolution(flops=0.0, traffic_bytes=1555e9 * 1e-3),
        kernel("loop", traffic_bytes=1555e9 * 1e-3),
    )
    graph = Setting(execution="graph", mode="train")
    assert timed(made, 1, constants).memory_s[0] == pytest.approx(2e-3)
    assert timed(made, 1, constants, graph).memory_s[0] == pytest.approx(3e-3)


@given(st.integers(1, 4096), st.integers(1, 4096))
def test_a_larger_batch_never_takes_less_time(one: int, other: int) -> None:
    made = program(convolution(flops=1e9, traffic_bytes=1e6), kernel("reduce", traffic_bytes=1e6))
    small, large = sorted((one, other))
    model = time_model()
    assert timed(made, small, model).step_s[0] <= timed(made, large, model).step_s[0]


def test_all_cards_at_once_answer_as_each_alone() -> None:
    made = program(convolution(flops=1e9, traffic_bytes=1e6), kernel("loop", traffic_bytes=1e6))
    table, model, cards = KernelTable.of(made), time_model(), all_gpus()[::20]
    together = rates(table.classes, targets([(c, True) for c in cards], {}), model)
    how = factors(XLA, model)
    every = step_time(table.work(32), table.classes, together, how, model).step_s
    for index, card in enumerate(cards):
        alone = rates(table.classes, targets([(card, True)], {}), model)
        one = step_time(table.work(32), table.classes, alone, how, model).step_s
        assert one[0] == pytest.approx(every[index])


@pytest.mark.parametrize("execution", EXECUTIONS)
@pytest.mark.parametrize("mode", ["train", "infer"])
@pytest.mark.parametrize("fused_optimizer", [True, False])
def test_every_framework_factor_is_the_constant_that_is_named(
    execution: str, mode: str, fused_optimizer: bool
) -> None:
    setting = Setting(execution=execution, mode=mode, fused_optimizer=fused_optimizer)
    model = time_model()
    how, names = factors(setting, model), factor_names(setting)
    assert set(names) <= set(FIELDS) == set(Factors.__slots__)
    for field in FIELDS:
        neutral = 0.0 if field == "host_convolution_s" else 1.0
        assert getattr(how, field) == (model[names[field]] if field in names else neutral)
    assert "host_s" in names  # every execution waits for its host


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        (
            XLA,
            {
                "depthwise": "xla_depthwise",
                "overlap": "xla_overlap",
                "convolution": "xla_convolution",
                "host_s": "host_xla",
                "host_convolution_s": "host_xla_convolution",
            },
        ),
        (
            Setting(execution="xla", mode="infer"),
            {
                "fusion": "xla_fusion_infer",
                "library": "xla_library_infer",
                "depthwise": "xla_depthwise",
                "overlap": "xla_overlap",
                "convolution": "xla_convolution",
                "host_s": "host_xla",
                "host_convolution_s": "host_xla_convolution",
            },
        ),
        (
            Setting(execution="graph", mode="train"),
            {
                "fusion": "graph_fusion_train",
                "library": "graph_library_train",
                "launches": "graph_launches",
                "layout": "graph_layout",
                "host_s": "host_graph_train",
            },
        ),
        (
            Setting(execution="eager-torch", mode="infer", transformer=True),
            {
                "fusion": "torch_fusion_transformer_infer",
                "library": "torch_library_infer",
                "launches": "torch_launches",
                "host_s": "host_torch",
                "layout": "torch_layout",
                "depthwise": "torch_depthwise",
            },
        ),
        (
            Setting(execution="eager-torch", mode="train", fused_optimizer=False),
            {
                "fusion": "torch_fusion_cnn_train",
                "library": "torch_library_train",
                "launches": "torch_launches",
                "host_s": "host_torch",
                "layout": "torch_layout",
                "depthwise": "torch_depthwise",
                "update": "torch_update",
            },
        ),
        (
            Setting(execution="eager-torch", mode="infer", channels_last=True),
            {
                "fusion": "torch_fusion_cnn_infer",
                "library": "torch_library_infer",
                "launches": "torch_launches",
                "host_s": "host_torch",
                "convolution": "xla_convolution",
                "depthwise": "torch_depthwise",
            },
        ),
        (
            Setting(execution="compiled-torch", mode="train", fused_optimizer=False),
            {"fusion": "compiled_fusion", "library": "compiled_library", "host_s": "host_xla"},
        ),
    ],
    ids=[
        "xla",
        "xla-infer",
        "graph",
        "torch-fused",
        "torch-single",
        "torch-nhwc",
        "torch-compiled",
    ],
)
def test_an_execution_has_these_factors(setting: Setting, names: dict[str, str]) -> None:
    assert factor_names(setting) == names


@pytest.mark.parametrize(
    ("cost_class", "field"),
    [
        (CostClass("loop"), "fusion"),
        (CostClass("reduce", shape="rows"), "fusion"),
        (CostClass("loop", shape="update"), "update"),
        (CostClass("gemm", "f16"), ""),
        (CostClass("convolution", "f16", "forward"), "layout"),
        (CostClass("convolution", "f16", "forward", "pointwise"), ""),  # a product like any other
        (CostClass("convolution", "bf16", "input_gradient", "winograd3"), "layout"),
        (CostClass("convolution", "f16", "forward", "depthwise"), "depthwise"),
    ],
)
def test_what_an_execution_moves_more_of_depends_on_the_kernel(
    cost_class: CostClass, field: str
) -> None:
    assert traffic_field(cost_class) == field


def everywhere(classes: tuple[CostClass, ...], targets: int = 1) -> Rates:
    """Rates of 1; library kernels on tensor cores."""
    one = np.ones((targets, len(classes)))
    library = np.array([c.kind in LIBRARY_KINDS for c in classes])
    return Rates(
        s_per_flop=one, s_per_byte=one, s_per_extra_byte=one, tensor_cores=one * library > 0
    )


def test_an_execution_makes_each_kernel_as_much_slower_as_its_factor_says() -> None:
    classes = (
        CostClass("loop"),
        CostClass("loop", shape="update"),
        CostClass("gemm", "f16"),
        CostClass("convolution", "f16", "forward"),
        CostClass("convolution", "f16", "forward", "pointwise"),
        CostClass("convolution", "f16", "forward", "winograd3"),
        CostClass("convolution", "f16", "forward", "depthwise"),
    )
    how = Factors(
        fusion=2.0, library=0.5, convolution=4.0, launches=1.0, host_s=0.0, host_convolution_s=0.0,
        layout=3.0, overlap=11.0, depthwise=5.0, update=7.0,
    )  # fmt: skip
    paid = executed(everywhere(classes), classes, how)
    # a library at half its rate takes twice as long over bytes and FLOPs alike, and 1x1 and 3x3
    # at four times that rate half as long
    assert paid.s_per_byte.tolist() == [[2.0, 7.0, 2.0, 6.0, 0.5, 1.5, 10.0]]
    assert (paid.s_per_extra_byte / paid.s_per_byte).tolist() == [[11.0] * len(classes)]
    assert paid.s_per_flop[0, 2:].tolist() == [2.0, 2.0, 0.5, 0.5, 10.0]


def test_order_of_dimensions_matters_to_tensor_cores_alone() -> None:
    classes = (
        CostClass("convolution", "f16", "forward"),
        CostClass("convolution", "f16", "forward", "pointwise"),
    )
    how = factors(XLA, Neutral(xla_convolution=2.0))
    graph = Setting(execution="graph", mode="train")
    ordered = factors(graph, Neutral(graph_layout=3.0))
    cards = targets([(find("gtx-1080-ti"), True), (A100, True)], {})
    made = rates(classes, cards, Neutral())
    assert made.tensor_cores.tolist() == [[False, False], [True, True]]
    faster = executed(made, classes, how).s_per_flop / made.s_per_flop
    assert faster.tolist() == [[1.0, 1.0], [1.0, 0.5]]
    moved = executed(made, classes, ordered).s_per_byte / made.s_per_byte
    assert moved.tolist() == [[1.0, 1.0], [3.0, 1.0]]


def test_factors_of_many_rows_are_those_of_each() -> None:
    classes = (CostClass("loop"), CostClass("convolution", "f16", "forward", "depthwise"))
    values = np.array([1.0, 4.0])
    how = Factors(
        fusion=values, library=1.0 / values, convolution=1.0 / values, launches=values,
        host_s=values, host_convolution_s=values,
        layout=values, overlap=values, depthwise=values, update=values,
    )  # fmt: skip
    paid = executed(everywhere(classes, 2), classes, how)
    assert paid.s_per_byte.tolist() == [[1.0, 1.0], [4.0, 16.0]]


def test_an_unfused_optimizer_costs_eager_pytorch_its_traffic_alone() -> None:
    update = replace(kernel("loop", traffic_bytes=1555e9 * 1e-3), phase="update")
    made, constants = program(update, update), Neutral(torch_update=2.5)
    fused = Setting(execution="eager-torch", mode="train")
    single = replace(fused, fused_optimizer=False)
    assert timed(made, 1, constants, fused).step_s[0] == pytest.approx(2e-3)
    assert timed(made, 1, constants, single).step_s[0] == pytest.approx(5e-3)


def test_a_convolution_under_xla_costs_the_host_more_than_another_kernel() -> None:
    made = program(convolution(flops=1.0), convolution(flops=1.0), kernel("loop"))
    constants = Neutral(host_xla=1e-3, host_xla_convolution=5e-3, host_graph_train=1e-3)
    assert timed(made, 1, constants).host_s[0] == pytest.approx(3 * 1e-3 + 2 * 5e-3)
    graph = Setting(execution="graph", mode="train")
    assert timed(made, 1, constants, graph).host_s[0] == pytest.approx(3 * 1e-3)


def test_a_step_says_what_device_and_host_take_alone() -> None:
    made = program(kernel("loop", traffic_bytes=1555e9 * 1e-6))
    found = timed(made, 1, Neutral(host_xla=1e-2, t_launch=1e-4, t_step=5e-4))
    assert found.host_s[0] == pytest.approx(1e-2)
    assert found.device_s[0] == pytest.approx(1e-6 + 1e-4)
    both = (found.device_s[0] ** 4 + found.host_s[0] ** 4) ** 0.25
    assert found.step_s[0] == pytest.approx(both + 5e-4)
