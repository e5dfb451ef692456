"""Every price of today's law can be worked out again from what is shown of it."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import pytest
from tests.model.steps import convolution, kernel, program, trace

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import memory_model, time_model
from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.program import Kernel
from tfdyno.model.time.estimate import StepCase, estimate_step
from tfdyno.model.time.law_terms import LANES, lanes

if TYPE_CHECKING:
    from tfdyno.core.choose.explanation import Explanation, Term
    from tfdyno.core.choose.program import Program

PRODUCT = Kernel(
    kind="gemm", dtype="f32", flops=Scaled(fixed=2.0 * 1024 * 1001 * 1024),
    read_bytes=Scaled(fixed=8e6), dims={"m": (1024,), "n": (1001,), "k": (1024,), "batch": (1,)},
)  # fmt: skip
NET = program(
    *[convolution(flops=4e8 / n, traffic_bytes=4e5, window=(3, 3), dtype="f32",
                  channels=(8 * n, 64)) for n in range(1, 20)],
    convolution(flops=1e7, traffic_bytes=1e5, groups=64),
    PRODUCT,
    replace(kernel("window", traffic_bytes=1e6), dims={"window": (3, 3), "stride": (2, 2)}),
    replace(kernel("random", traffic_bytes=1e6), flops=Scaled(per_sample=3e8)),
    *[kernel("loop", traffic_bytes=1e6 * n) for n in range(1, 30)],
    replace(kernel("reduce", traffic_bytes=1e6), dims={"inner": (64,)}),
)  # fmt: skip


def explained(
    gpu: str, execution: str = "xla", generation: str = "2026", made: Program = NET
) -> Explanation:
    case = StepCase(
        trace=trace(policy="float32"), gpu=find(gpu), batch_size=64, precision="", mode="train",
        execution=execution, time_model=time_model(generation), memory_model=memory_model(),
    )  # fmt: skip
    found = estimate_step(case, time_program=made, memory_program=made, explained=True)
    assert found.explanation
    return found.explanation


def again_s(term: Term) -> float:
    """The docstring of ``core/choose/explanation.py``, in code."""
    amount = term.amount * prod(one.factor_ratio for one in term.more)
    if not term.peak:
        return amount * term.each_s
    return amount / (term.rate_per_s * prod(one.factor_ratio for one in term.shares))


CARDS = ["t4", "a100-sxm4-40gb", "rtx-4090", "h200-sxm-141gb", "gtx-1080-ti"]


@pytest.mark.parametrize("gpu", CARDS)
@pytest.mark.parametrize(
    ("execution", "generation"), [("xla", "2026"), ("xla", "2023"), ("graph", "2026")]
)
def test_every_term_is_what_its_numbers_say(gpu: str, execution: str, generation: str) -> None:
    why = explained(gpu, execution, generation)
    for one in why.kernels:
        for term in one.terms:
            assert again_s(term) == pytest.approx(term.time_s, rel=1e-9)
        assert sum(term.time_s for term in one.terms) == pytest.approx(one.time_s, rel=1e-9)
    parts_s = sum(one.time_s for one in why.kernels) + sum(one.time_s for one in why.others)
    assert parts_s + why.waiting_s + why.fixed_s == pytest.approx(why.step_s, rel=1e-9)


@pytest.mark.parametrize("execution", ["xla", "graph"])
def test_constants_and_peaks_that_formulas_name_are_listed(execution: str) -> None:
    why = explained("a100-sxm4-40gb", execution)
    terms = [term for one in why.kernels for term in one.terms]
    named = {each.constant for term in terms for each in (*term.more, *term.shares)}
    named |= {term.each for term in terms} | {cost.constant for cost in why.host}
    assert {one.name for one in why.constants} == (named | {why.fixed_constant}) - {""}
    assert {term.peak for term in terms} - {""} == {one.name for one in why.peaks}


def test_the_rate_for_elements_is_the_cards_integer_lanes() -> None:
    card = find("h200-sxm-141gb")
    peak = lanes(card, time_model("2026"))
    assert peak.name == LANES
    assert peak.rate_per_s == pytest.approx(132 * 64 * 1.98e9)


def test_a_float32_product_with_odd_rows_says_why_it_is_slow() -> None:
    one = explained("h200-sxm-141gb", made=program(PRODUCT)).kernels[0]
    compute = next(term for term in one.terms if term.cause == "compute")
    assert "u_unaligned" in {share.constant for share in compute.shares}
