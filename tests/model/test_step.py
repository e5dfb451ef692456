from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.steps import Neutral, convolution, kernel, program

from tfdyno.catalog.gpus import all_gpus, find
from tfdyno.catalog.time_model import time_model
from tfdyno.model.kernel_table import KernelTable
from tfdyno.model.kernel_time import rates, targets
from tfdyno.model.step import Setting, StepTime, factors, step_time

if TYPE_CHECKING:
    from tfdyno.core.program import Program
    from tfdyno.core.time_model import Constants

A100 = find("a100-sxm4-40gb")
HALF = 108 * 2048 * 1.41e9
XLA = Setting(execution="xla", mode="train")


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
