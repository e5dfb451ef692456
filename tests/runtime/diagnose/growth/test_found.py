"""Growth that is told, and growth that is not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.interval import Interval
from tfdyno.runtime.diagnose.growth.found import Kind, Suspect, growth, rising

if TYPE_CHECKING:
    from tfdyno.core.measure.step_facts import GrowthFacts


def _suspect(kind: Kind, per_step: float) -> Suspect:
    return Suspect(
        words=f"some {kind}", kind=kind, bytes_per_step=per_step, low_bytes_per_step=per_step
    )


def _host(low: float, *suspects: Suspect) -> GrowthFacts | None:
    return growth("host", Interval(low=low, best=2 * low, high=3 * low), suspects)


def test_growth_that_nothing_holds_must_be_64_kib_per_step() -> None:
    assert _host(60_000.0) is None
    found = _host(70_000.0)
    assert found is not None
    assert (found.kind, found.suspects) == ("unknown", ())


def test_growth_that_is_held_must_be_512_bytes_per_step() -> None:
    assert _host(100.0, _suspect("logs", 32.0)) is None
    found = _host(100.0, _suspect("tensors", 900.0))
    assert found is not None
    assert (found.low_bytes_per_step, found.bytes_per_step) == (900.0, 900.0)
    assert found.suspects == ("some tensors",)


def test_what_is_bounded_is_no_leak_and_explains_what_it_takes() -> None:
    bounded = replace(_suspect("objects", 150_000.0), is_bounded=True)
    assert _host(70_000.0, bounded) is None
    found = _host(300_000.0, bounded, _suspect("tensors", 900.0))
    assert found is not None
    assert (found.low_bytes_per_step, found.bytes_per_step) == (150_000.0, 450_000.0)
    assert found.kind == "unknown"  # the tensors are crumbs of that
    assert _host(0.0, bounded) is None


def test_functions_that_are_more_explain_resident_growth() -> None:
    found = _host(6_000.0, _suspect("functions", 0.0))
    assert found is not None
    assert (found.kind, found.low_bytes_per_step) == ("functions", 6_000.0)


def test_functions_that_the_user_keeps_are_a_leak_though_the_allocator_hides_it() -> None:
    hidden = Interval(low=-2e6, best=1e6, high=4e6)
    kept = replace(_suspect("functions", 0.0), words="dict of 12 tf.functions held by a.py:4")
    found = growth("host", hidden, [kept])
    assert found is not None
    assert (found.kind, found.low_bytes_per_step, found.bytes_per_step) == ("functions", 512.0, 1e6)
    assert growth("host", hidden, [_suspect("functions", 0.0)]) is None  # TensorFlow's own
    assert growth("host", Interval(low=-2.0, best=100.0, high=400.0), [kept]) is None


def test_the_largest_holder_is_told_first_and_crumbs_are_not() -> None:
    found = _host(5e6, _suspect("logs", 300.0), _suspect("tensors", 4e6))
    assert found is not None
    assert (found.kind, found.suspects) == ("tensors", ("some tensors",))
    assert found.bytes_per_step == 1e7


def test_growth_of_a_card_is_that_of_its_own_memory() -> None:
    tensors = _suspect("tensors", 900.0)
    found = growth("device", Interval(low=1e6, best=2e6, high=3e6), [tensors])
    assert found is not None
    assert (found.where, found.bytes_per_step) == ("device", 2e6)
    assert growth("device", Interval(low=0.0, best=0.0, high=0.0), [tensors]) is None
    assert growth("device", None, [tensors]) is None


def test_what_rises_all_the_time_has_the_least_of_its_parts() -> None:
    # By hand: 7 in 7 steps, 10 in 10, 40 in 20: at least 1, 57 / 37 in all.
    low, best = rising([(3, 0), (10, 7), (20, 17), (40, 57)])
    assert low == 1.0
    assert best == pytest.approx(57 / 37)


@pytest.mark.parametrize(
    ("series", "noise"),
    [([(0, 0), (10, 5), (20, 5)], 0), ([(0, 0), (10, 9)], 9), ([(1, 5)], 0), ([], 0)],
)
def test_what_stands_still_for_a_while_does_not_rise(
    series: list[tuple[int, int]], noise: int
) -> None:
    assert rising(series, noise) == (0.0, 0.0)


def test_what_grows_at_every_tenth_step_rises() -> None:
    assert rising([(step, step // 10) for step in range(101)])[1] == pytest.approx(0.1)
