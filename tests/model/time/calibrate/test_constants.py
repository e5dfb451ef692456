from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.swept import card_file, loop, product

from tfdyno.catalog.gpus import find
from tfdyno.catalog.time_model import time_model
from tfdyno.core.choose.card_file import Pace, SweptKernel
from tfdyno.model.time import kernel_law
from tfdyno.model.time.calibrate.constants import (
    LEAST,
    PRIOR,
    Reference,
    by_name,
    moved_constants,
    program_of,
    shrunk,
    with_constants,
)

MODEL, CARD = time_model("2026"), find("h100-sxm5-80gb")
SHARE = PRIOR**2 / (PRIOR**2 + LEAST**2)


def priced(*kernels: SweptKernel) -> list[SweptKernel]:
    """The same kernels with what the law says that they take."""
    assert MODEL.product_rates is not None
    work = kernel_law.work_of(
        program_of(kernels), 1.0, CARD, tf32_allowed=False, rates=MODEL.product_rates
    )
    seconds = kernel_law.seconds(work, MODEL).total_s
    return [
        replace(one, kernel_s=float(each), execution="xla")
        for one, each in zip(kernels, seconds, strict=True)
    ]


def slower(kernels: list[SweptKernel], factor: float) -> list[SweptKernel]:
    """Kernels whose time beyond the start is multiplied."""
    start = MODEL["t_kernel"]
    return [replace(one, kernel_s=start + (one.kernel_s - start) * factor) for one in kernels]


def test_a_constant_takes_the_share_of_what_was_measured_that_it_is_surer_of() -> None:
    # Two kernels without spread: own = 0.02, share = 0.25^2 / (0.25^2 + 0.02^2) = 0.9936.
    found = shrunk("e_loop", 0.8, 0.4, 0.0, 2)
    assert found.after == pytest.approx(0.8 * 0.5**0.99364, rel=1e-4)
    assert found.deviation == pytest.approx(0.02 * math.sqrt(0.99364), rel=1e-4)


def test_one_kernel_alone_moves_a_constant_by_four_fifths_at_most() -> None:
    found = shrunk("e_loop", 0.8, 0.4, 0.0, 1)
    assert 0.75 < math.log(found.after / 0.8) / math.log(0.5) < 0.85


def test_a_card_as_the_law_says_keeps_its_constants() -> None:
    rows = priced(loop(2**26, 1.0), loop(2**27, 1.0))
    found = by_name(moved_constants(MODEL, CARD, card_file(*rows), same_software=False))
    assert found["e_loop"].after == pytest.approx(MODEL["e_loop"])


def test_slower_traffic_lowers_its_share_of_the_bandwidth() -> None:
    rows = slower(priced(loop(2**26, 1.0), loop(2**27, 1.0)), 1.25)
    moved = moved_constants(MODEL, CARD, card_file(*rows), same_software=False)
    after = with_constants(MODEL, CARD, moved, "a sweep")
    assert after["e_loop"] == pytest.approx(MODEL["e_loop"] * 1.25**-SHARE)
    assert after.parameters["e_loop"].source == "a sweep"
    assert after["e_reduce"] == MODEL["e_reduce"]


def test_slower_products_lower_what_products_reach_on_that_card_alone() -> None:
    rows = slower(priced(*(product(size, 1.0, "bf16") for size in (4096, 8192))), 1.1)
    moved = moved_constants(MODEL, CARD, card_file(*rows), same_software=False)
    after = with_constants(MODEL, CARD, moved, "a sweep")
    name = f"{CARD.rates.compute_capability} {CARD.rates.variant}"
    assert after.product_rates is not None
    (own,) = [r for r in after.product_rates.rates if r.unit == "half" and name in r.cards]
    assert own.source == "a sweep"
    again = kernel_law.work_of(
        program_of(rows), 1.0, CARD, tf32_allowed=False, rates=after.product_rates
    )
    told = kernel_law.seconds(again, after).total_s
    assert told == pytest.approx([one.kernel_s for one in rows], rel=0.01)


def test_products_that_take_a_few_starts_say_nothing_of_their_rate() -> None:
    small = [replace(one, kernel_s=3.0 * MODEL["t_kernel"])
             for one in priced(product(512, 1.0, "bf16"))]  # fmt: skip
    large = priced(*(product(size, 1.0, "bf16") for size in (4096, 8192)))
    found = by_name(moved_constants(MODEL, CARD, card_file(*large, *small), same_software=False))
    assert found["products half"].kernels == 2
    assert found["products half"].after == pytest.approx(found["products half"].before)


def test_what_belongs_to_the_software_waits_for_the_same_software() -> None:
    rows = [loop(1, 5e-6, execution="xla"), *priced(loop(2**26, 1.0), loop(2**27, 1.0))]
    card = card_file(*rows, pace=Pace(call_s=5e-5))
    same = by_name(moved_constants(MODEL, CARD, card, same_software=True))
    other = by_name(moved_constants(MODEL, CARD, card, same_software=False))
    assert {"t_step", "t_kernel", "e_loop"} <= set(same)
    assert set(other) == {"e_loop"}


def test_the_smallest_operation_of_a_graph_tells_the_pace_of_the_host() -> None:
    rows = [loop(1, 9e-6), *priced(loop(2**26, 1.0), loop(2**27, 1.0))]
    found = by_name(moved_constants(MODEL, CARD, card_file(*rows), same_software=True))
    assert found["host_primitive"].measured == 9e-6


def test_a_value_outside_its_range_widens_the_range() -> None:
    rows = slower(priced(loop(2**26, 1.0), loop(2**27, 1.0)), 4.0)
    moved = moved_constants(MODEL, CARD, card_file(*rows), same_software=False)
    held = with_constants(MODEL, CARD, moved, "").parameters["e_loop"]
    assert held.low == held.value < MODEL.parameters["e_loop"].low


def referenced(*kernels: SweptKernel) -> Reference:
    return Reference(card=card_file(*kernels, pace=Pace(call_s=4e-5)), gpu=CARD)


def test_what_the_law_is_off_on_its_own_card_is_no_property_of_another() -> None:
    rows = slower(priced(loop(2**26, 1.0), loop(2**27, 1.0)), 1.3)
    alike = moved_constants(
        MODEL, CARD, card_file(*rows), same_software=False, reference=referenced(*rows)
    )
    assert by_name(alike)["e_loop"].after == pytest.approx(MODEL["e_loop"])
    worse = moved_constants(
        MODEL, CARD, card_file(*slower(rows, 1.25)), same_software=False,
        reference=referenced(*rows),
    )  # fmt: skip
    assert by_name(worse)["e_loop"].after == pytest.approx(MODEL["e_loop"] * 1.25**-SHARE)


def test_a_kernel_that_the_reference_lacks_moves_nothing() -> None:
    rows = slower(priced(loop(2**26, 1.0)), 2.0)
    others = priced(loop(2**27, 1.0))
    moved = moved_constants(
        MODEL, CARD, card_file(*rows), same_software=True, reference=referenced(*others)
    )
    assert moved == ()


def test_a_host_twice_as_slow_as_that_of_the_reference_doubles_its_constants() -> None:
    known = referenced(loop(1, 7e-6))
    card = card_file(loop(1, 1.4e-5), pace=Pace(call_s=8e-5))
    found = by_name(moved_constants(MODEL, CARD, card, same_software=True, reference=known))
    assert found["host_primitive"].measured == pytest.approx(2 * MODEL["host_primitive"])
    assert found["t_step"].measured == pytest.approx(2 * MODEL["t_step"])
    assert "t_kernel" not in found
    of_jax = replace(card, framework="jax")
    assert moved_constants(MODEL, CARD, of_jax, same_software=True, reference=known) == ()
