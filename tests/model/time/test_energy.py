from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.model.steps import convolution, kernel, program

from tfdyno.catalog.time_model import time_model
from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.program import Kernel
from tfdyno.model.time.energy import (
    CompileWork,
    compile_time_s,
    compile_work,
    epoch_energy_kwh,
    step_energy_j,
)

if TYPE_CHECKING:
    from tfdyno.core.choose.time_model import TimeModel

STEP = Interval(low=0.8, best=1.0, high=1.5)


def with_values(**values: float) -> TimeModel:
    model = time_model()
    changed = {n: replace(model.parameters[n], value=v, low=v, high=v) for n, v in values.items()}
    return replace(model, parameters=model.parameters | changed)


def test_energy_weighs_what_the_card_does() -> None:
    model = with_values(power_compute=1.0, power_memory=0.5, power_launch=0.0)
    found = step_energy_j(step_s=STEP, compute_s=0.6, memory_s=0.2, tdp_w=300.0, model=model)
    assert found.best == pytest.approx(0.6 * 300 + 0.2 * 150)
    assert found.high == pytest.approx(1.5 * found.best)


def test_a_card_of_unknown_power_draws_no_number() -> None:
    found = step_energy_j(step_s=STEP, compute_s=1.0, memory_s=0.0, tdp_w=0.0, model=time_model())
    assert found == Interval(low=0.0, best=0.0, high=0.0)


def test_an_epoch_draws_the_energy_of_its_steps() -> None:
    # by hand: 1,000 samples in steps of 64 are 16 steps; 16 x 1,800 J = 28.8 kJ = 0.008 kWh
    step_j = Interval(low=900.0, best=1800.0, high=3600.0)
    found = epoch_energy_kwh(step_j, samples=1000, batch_size=64)
    assert found
    assert (found.low, found.best, found.high) == pytest.approx((0.004, 0.008, 0.016))
    assert epoch_energy_kwh(step_j, samples=0, batch_size=64) is None


def test_the_first_step_compiles_under_xla_only() -> None:
    model = with_values(compile_fixed=4.0, compile_per_kernel=0.01)
    work = CompileWork(
        launches=1000.0, convolutions=5, grouped=2, half_products=3, single_products=4
    )
    assert compile_time_s(work, "xla", model).best == pytest.approx(14.0)
    assert compile_time_s(work, "graph", model).high == 0.0


def test_software_that_tries_kernels_out_compiles_longer_for_each_that_is_different() -> None:
    base = with_values(compile_fixed=4.0, compile_per_kernel=0.01)
    tried = {"compile_convolution": 0.5, "compile_grouped": 3.0, "compile_half_product": 4.0,
             "compile_single_product": 0.1}  # fmt: skip
    one = base.parameters["compile_fixed"]
    more = {n: replace(one, name=n, value=v, low=v, high=v) for n, v in tried.items()}
    model = replace(base, parameters=base.parameters | more)
    work = CompileWork(
        launches=1000.0, convolutions=6, grouped=2, half_products=3, single_products=10
    )
    assert compile_time_s(work, "xla", model).best == pytest.approx(14 + 3 + 6 + 12 + 1)


def test_like_products_and_convolutions_are_tried_once() -> None:
    wide = convolution(flops=1e9, channels=(64, 128))
    product = Kernel(kind="gemm", dtype="f32", dims={"m": (8,), "n": (8,), "k": (8,)})
    made = program(
        wide, wide, replace(wide, direction="input_gradient"), convolution(flops=1e9, groups=64),
        product, product, replace(product, dtype="bf16"), kernel("loop", traffic_bytes=1e6),
    )  # fmt: skip
    assert compile_work(made.kernels) == CompileWork(
        launches=8.0, convolutions=2, grouped=1, half_products=1, single_products=1
    )
