from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.advice import estimate, exactly, offer, run

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.advice import Assumed, HoursPart
from tfdyno.core.choose.hardware import PriceBasis, PriceRange
from tfdyno.model.choose.cost import (
    hours_parts,
    joined_parts,
    run_cost_usd,
    run_energy_kwh,
    steps_of,
    whole_hours,
)

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import HoursKind, Run
    from tfdyno.core.choose.estimate import Estimate

ASSUMED = Assumed(
    spot_overhead_ratio=0.08,
    electricity_usd_per_kwh=0.2,
    default_samples=1_000_000,
    default_batch_size=32,
)


@pytest.mark.parametrize(
    ("samples", "global_batch_size", "steps"),
    [(100_000, 100, 1000), (100_001, 100, 1001), (1, 100, 1), (100_000, 800, 125)],
)
def test_steps_cover_every_sample_once(samples: int, global_batch_size: int, steps: int) -> None:
    step = estimate(global_batch_size=global_batch_size)
    assert steps_of(run(samples=samples), step) == steps


@pytest.mark.parametrize("global_batch_size", [100, 800])
def test_a_run_of_steps_takes_all_of_them_on_any_number_of_gpus(global_batch_size: int) -> None:
    asked = run(steps=1000, samples=100_000, length="steps")
    assert steps_of(asked, estimate(global_batch_size=global_batch_size)) == 1000


def hours_of(asked: Run, step: Estimate, ratio: float = 0.0) -> Interval:
    return whole_hours(hours_parts(asked, step, assumed=ASSUMED, interruption_ratio=ratio))


def part_h(kind: HoursKind, asked: Run, step: Estimate, ratio: float = 0.0) -> Interval | None:
    parts = hours_parts(asked, step, assumed=ASSUMED, interruption_ratio=ratio)
    return next((part.hours for part in parts if part.kind == kind), None)


def test_hours_count_the_steps_and_the_compile_of_the_first_one() -> None:
    # by hand: (1000 steps x 3.6 s + 360 s) / 3600 s/h = 1.1 h; on spot 8 % more: 1.188 h
    step = estimate(step_s=exactly(3.6), compile_s=exactly(360.0))
    assert hours_of(run(), step).best == pytest.approx(1.1)
    assert hours_of(run(), step, 0.08).best == pytest.approx(1.188)


def test_hours_carry_the_ends_of_both_intervals() -> None:
    # by hand: low 1000 x 1.8 s + 0, high 1000 x 7.2 s + 720 s, in hours
    step = estimate(
        step_s=Interval(low=1.8, best=3.6, high=7.2),
        compile_s=Interval(low=0.0, best=360.0, high=720.0),
    )
    hours = hours_of(run(), step)
    assert (hours.low, hours.high) == pytest.approx((0.5, 2.2))


VALIDATING = run(validation_samples=1_950, validation_passes=9)


def test_validation_takes_the_forward_pass_of_its_batches_and_a_compile_of_its_own() -> None:
    # by hand: 9 passes of ceil(1950 / 100) = 20 batches of 0.25 x 3.6 s = 162 s, and 18 s: 0.05 h
    step = estimate(step_s=exactly(3.6), forward_ratio=0.25, forward_compile_s=exactly(18.0))
    part = part_h("validation", VALIDATING, step)
    assert part
    assert part.best == pytest.approx(0.05)
    both = hours_of(VALIDATING, step).best
    assert both == pytest.approx(hours_of(run(), step).best + 0.05)
    on_spot = part_h("interruptions", VALIDATING, step, 0.08)
    assert on_spot
    assert on_spot.best == pytest.approx(0.08 * both)


def test_a_pass_of_validation_exchanges_no_gradients() -> None:
    # by hand: of 4 s a step exchanges 1 s: 180 batches of 0.5 x 3 s = 270 s = 0.075 h
    step = estimate(step_s=exactly(4.0), exposed_s=1.0, forward_ratio=0.5)
    part = part_h("validation", VALIDATING, step)
    assert part
    assert part.best == pytest.approx(0.075)


def test_without_validation_there_is_no_part_of_it() -> None:
    step = estimate(forward_ratio=0.25, forward_compile_s=exactly(18.0))
    assert part_h("validation", run(), step) is None
    assert hours_of(run(), step).best == pytest.approx(100.0 / 3600)


def test_waiting_for_data_stands_apart_from_the_steps() -> None:
    # by hand: 1000 steps of 3.6 s are an hour, of which a step waits 0.9 s: a quarter
    step = estimate(step_s=exactly(3.6), terms_s={"input": 0.9}, compile_s=exactly(0.0))
    parts = hours_parts(run(), step, assumed=ASSUMED)
    assert {part.kind: part.hours.best for part in parts} == pytest.approx(
        {"steps": 0.75, "data": 0.25}
    )


def test_checkpoints_take_their_bytes_at_the_speed_assumed() -> None:
    # by hand: 36 GB at 10 MB/s are an hour; 9 GB twice as fast 1/8 h, all at half the speed 2 h
    assumed = replace(ASSUMED, checkpoint_bytes_per_s=10e6, checkpoint_speed_ratio=0.5)
    asked = run(checkpoint_bytes=36e9, fewest_checkpoint_bytes=9e9)
    parts = hours_parts(asked, estimate(), assumed=assumed)
    written = next(part.hours for part in parts if part.kind == "checkpoints")
    assert (written.low, written.best, written.high) == pytest.approx((0.125, 1.0, 2.0))


def test_the_start_of_a_machine_is_not_lost_to_interruptions() -> None:
    parts = hours_parts(run(), estimate(), assumed=ASSUMED, start_h=0.05, interruption_ratio=0.5)
    start = next(part.hours for part in parts if part.kind == "start")
    assert (start.low, start.high) == (0.05, 0.05)
    rest = whole_hours(part for part in parts if part.kind not in {"start", "interruptions"})
    assert whole_hours(parts).best == pytest.approx(1.5 * rest.best + 0.05)


def test_a_rented_machine_costs_its_hours() -> None:
    cost = run_cost_usd(offer(usd_per_h=2.5), exactly(4.0), exactly(100.0), assumed=ASSUMED)
    assert cost.best == pytest.approx(10.0)


def test_an_owned_card_costs_its_electricity() -> None:
    # by hand: 1000 steps x 36,000 J = 36 MJ = 10 kWh, at $0.20
    energy = run_energy_kwh(run(), estimate(energy_j_per_step=exactly(36_000.0)))
    own = offer(provider="owned", usd_per_h=0.0)
    assert energy.best == pytest.approx(10.0)
    assert run_cost_usd(own, exactly(4.0), energy, assumed=ASSUMED).best == pytest.approx(2.0)


def test_energy_counts_the_passes_of_validation_by_their_time() -> None:
    # by hand: 180 batches are 45 steps beside 1000: 1045 x 36 kJ = 10.45 kWh
    step = estimate(energy_j_per_step=exactly(36_000.0), forward_ratio=0.25)
    assert run_energy_kwh(VALIDATING, step).best == pytest.approx(10.45)


@given(
    samples=st.integers(1, 10**9),
    batch=st.integers(1, 4096),
    step_s=st.floats(1e-5, 100.0),
    replicas=st.integers(1, 64),
)
def test_more_replicas_at_the_same_step_time_never_take_longer(
    samples: int, batch: int, step_s: float, replicas: int
) -> None:
    one = estimate(global_batch_size=batch, step_s=exactly(step_s))
    many = estimate(global_batch_size=batch * replicas, step_s=exactly(step_s))
    asked = run(samples=samples)
    assert hours_of(asked, many).best <= hours_of(asked, one).best


ends = st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0))


@given(
    st.floats(0.01, 1e4),
    st.floats(0.01, 1e3),
    st.floats(1.0, 5.0),
    st.floats(0.1, 1.0),
    st.floats(1.0, 10.0),
    ends,
)
def test_the_cost_holds_time_times_price_everywhere_in_both_ranges(
    hours: float, usd_per_h: float, spread: float, low: float, high: float,
    at: tuple[float, float],
) -> None:  # fmt: skip
    times = Interval(low=hours / spread, best=hours, high=hours * spread)
    prices = PriceRange(basis="history", low_ratio=low, high_ratio=high)
    usd = run_cost_usd(
        offer("card", usd_per_h), times, exactly(1.0), assumed=ASSUMED, price_range=prices
    )
    assert usd.best == pytest.approx(hours * usd_per_h)
    for time_at, price_at in ((0, 0), (0, 1), (1, 0), (1, 1), at):
        time_h = times.low + time_at * (times.high - times.low)
        price = usd_per_h * (low + price_at * (high - low))
        assert usd.low * (1 - 1e-9) <= time_h * price <= usd.high * (1 + 1e-9)


@pytest.mark.parametrize("basis", ["own price", "unknown"])
def test_a_price_that_is_exact_or_not_known_to_move_leaves_the_range_of_time(
    basis: PriceBasis,
) -> None:
    usd = run_cost_usd(
        offer("card", 2.0), Interval(low=8.0, best=10.0, high=12.0), exactly(1.0),
        assumed=ASSUMED, price_range=PriceRange(basis=basis),
    )  # fmt: skip
    assert usd == Interval(low=16.0, best=20.0, high=24.0)


def test_parts_of_several_runs_are_those_of_one_after_the_other() -> None:
    first = (
        HoursPart(kind="steps", hours=exactly(2.0)),
        HoursPart(kind="start", hours=exactly(1.0)),
    )
    second = (
        HoursPart(kind="steps", hours=Interval(low=1.0, best=3.0, high=4.0)),
        HoursPart(kind="validation", hours=exactly(0.5)),
    )
    found = {part.kind: part.hours for part in joined_parts([first, second])}
    assert found == {
        "steps": Interval(low=3.0, best=5.0, high=6.0),
        "start": exactly(1.0),
        "validation": exactly(0.5),
    }
    assert joined_parts([first]) == first
