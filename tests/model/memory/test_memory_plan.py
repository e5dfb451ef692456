"""model/memory_plan: what is listed is never beaten and always fits; ratios worked by hand."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.choices import option

from tfdyno.core.choose.workload import FineTune
from tfdyno.model.memory.memory_plan import (
    change_log_width,
    chosen_of,
    closest_of,
    departure,
    safe_of,
    time_ratio,
    undominated,
)

if TYPE_CHECKING:
    from tfdyno.core.choose.auto_recipe import Option

OPTIONS = st.lists(
    st.builds(
        lambda ms, gib, changes, other: option(
            ms, gib, changes=changes + other, optimizer="sgd" if other else ""
        ),
        st.integers(1, 40),
        st.integers(1, 16).map(lambda eighths: eighths / 4),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=30,
)
"""On a card of 2 GiB: of half a gigabyte to four, half of them too large."""


def beats(one: Option, other: Option) -> bool:
    """No slower and no larger, better in one, and no other learning."""
    if one.optimizer and not other.optimizer:
        return False
    time, memory = one.update_s.best, one.device_memory_bytes.best
    alike = time <= other.update_s.best and memory <= other.device_memory_bytes.best
    return alike and (time < other.update_s.best or memory < other.device_memory_bytes.best)


def test_a_faster_and_smaller_one_leaves_no_room_for_another() -> None:
    fast, small, worse = option(10, 1.5), option(20, 0.5), option(21, 0.75)
    too_large = option(5, 3.0)
    assert undominated([worse, small, too_large, fast]) == (fast, small)


def test_another_optimizer_does_not_push_out_what_learns_as_the_script_does() -> None:
    own, other = option(10, 1.0), option(9, 0.5, optimizer="sgd")
    assert undominated([own, other]) == (other, own)
    slower = option(11, 0.5, optimizer="sgd")
    dear = option(12, 1.5, optimizer="sgd")
    assert undominated([own, slower, dear]) == (own, slower)


@given(OPTIONS)
def test_nothing_that_is_listed_is_beaten_or_does_not_fit(options: list[Option]) -> None:
    listed = undominated(options)
    fitting = [one for one in options if one.fits]
    assert all(one.fits for one in listed)
    assert not [one for one in listed for other in fitting if beats(other, one)]
    left = [one for one in fitting if one not in listed]
    assert all(any(beats(other, one) or _same(other, one) for other in listed) for one in left)


def _same(one: Option, other: Option) -> bool:
    return (one.update_s, one.device_memory_bytes) == (other.update_s, other.device_memory_bytes)


@given(OPTIONS, st.floats(0.0, 0.2))
def test_the_chosen_one_fits_and_keeps_its_learning_where_it_can(
    options: list[Option], gain: float
) -> None:
    chosen = chosen_of(options, gain)
    alike = [one for one in options if one.fits and not one.optimizer]
    if chosen is None:
        assert not any(one.fits for one in options)
        return
    assert chosen.fits
    assert bool(chosen.optimizer) == (not alike)
    cheaper = [one for one in options if one.changes <= chosen.changes and beats(one, chosen)]
    assert all(one.update_s == chosen.update_s for one in cheaper if one.fits)


LORA = FineTune(lora_rank=8)
INT8, INT4 = replace(LORA, quantize="int8"), replace(LORA, quantize="int4")
SHORT = replace(INT4, sequence_length=256)


def test_ways_to_train_a_preset_are_taken_in_the_order_of_what_they_change() -> None:
    whole = option(10, 9.0, fine_tune=FineTune())
    again = option(14, 9.0, fine_tune=FineTune(), remat="blocks")
    ways = [option(5, 1.0, fine_tune=one) for one in (LORA, INT8, INT4)]
    other = option(5, 1.0, fine_tune=FineTune(), optimizer="sgd")
    short = option(1, 0.5, fine_tune=SHORT)
    assert [departure(one, whole) for one in (whole, again, *ways, other, short)] == [
        0, 0, 1, 2, 3, 4, 5,
    ]  # fmt: skip
    assert chosen_of([whole, short, other, *reversed(ways)], 0.05) == ways[0]
    assert chosen_of([whole, short, other, ways[2]], 0.05) == ways[2]
    assert chosen_of([replace(whole, fits=True), *ways], 0.05) == replace(whole, fits=True)


def test_adapters_push_out_no_way_that_trains_every_weight() -> None:
    whole, adapters = option(10, 1.5, fine_tune=FineTune()), option(5, 0.5, fine_tune=LORA)
    assert undominated([whole, adapters]) == (adapters, whole)
    rounded = option(6, 0.75, fine_tune=INT8)
    assert undominated([whole, adapters, rounded]) == (adapters, whole)


def test_the_safe_one_trains_as_the_chosen_one() -> None:
    whole, near = option(10, 9.0, fine_tune=FineTune()), option(5, 1.8, fine_tune=LORA)
    rounded, split = option(4, 0.5, fine_tune=INT8), option(7, 1.0, fine_tune=LORA)
    assert safe_of([whole, near, rounded], near) is None
    assert safe_of([whole, near, rounded, split], near) == split


def test_every_change_has_to_pay() -> None:
    own, quick = option(10.0, 1.0), option(9.6, 1.0, changes=1)
    assert chosen_of([own, quick], 0.05) == own
    assert chosen_of([own, quick], 0.01) == quick


def test_the_safe_one_is_the_fastest_whose_whole_range_fits() -> None:
    # 1.2 x 1.8 GiB is more than 2; 1.2 x 1.5 is not
    chosen, sure, surer = option(10, 1.8), option(12, 1.5), option(13, 0.5)
    assert safe_of([surer, chosen, sure], chosen) == sure
    assert safe_of([surer, chosen, sure], sure) is None
    compiled = option(10, 1.8, verified=True)
    assert safe_of([surer, compiled, sure], compiled) is None
    assert safe_of([chosen, option(11, 0.5, optimizer="sgd")], chosen) is None


def test_the_closest_is_the_one_that_needs_the_least_of_its_card() -> None:
    slow, fast, large = option(12, 3.0), option(10, 3.0), option(1, 4.0)
    assert closest_of([large, slow, fast]) == fast


def test_an_option_is_known_exactly_to_take_as_long_as_itself() -> None:
    one = option(10)
    ratio = time_ratio(one, one)
    assert (ratio.low, ratio.best, ratio.high) == (1.0, 1.0, 1.0)


def test_measured_widths_add_by_the_root_of_their_squares() -> None:
    ratio = time_ratio(option(5), option(10), measured_log_widths=(0.3, 0.4))
    assert ratio.best == pytest.approx(0.5)
    assert ratio.low == pytest.approx(0.5 * exp(-0.5))  # 0.3² + 0.4² = 0.5²
    assert ratio.high == pytest.approx(0.5 * exp(0.5))


def test_what_was_computed_is_off_by_as_much_as_the_time_of_a_step() -> None:
    # a fifth is computed again; the step's time is good to 1.2: between 0.2/1.2 and 0.2 x 1.2
    assert change_log_width(1.2, 1.2) == pytest.approx(log((1 + 0.24) / 1.2))
    assert change_log_width(0.8, 1.2) == pytest.approx(log(0.8 / (1 - 0.24)))
    ratio = time_ratio(option(12), option(10), computed_ratios=(1.2, 1.0))
    assert ratio.best == pytest.approx(1.2)
    assert ratio.high == pytest.approx(1.24)


@given(st.floats(0.05, 20.0), st.floats(1.0, 4.0))
def test_a_width_is_never_negative_and_no_change_has_none(ratio: float, factor: float) -> None:
    assert change_log_width(ratio, factor) >= 0.0
    assert change_log_width(1.0, factor) == 0.0
    assert change_log_width(ratio, 1.0) == pytest.approx(0.0)
