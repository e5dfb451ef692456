from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.advice import GIB, around, candidate, estimate, run

from tfdyno.jobs.choose.settling.open_fits import deciding, is_open
from tfdyno.model.choose.choose import ranked, verdict_of

if TYPE_CHECKING:
    from tfdyno.core.choose.advice import Candidate

RUN = run()


def row(name: str, hours: float, usd: float, *, need_gib: float = 0.0, **of: object) -> Candidate:
    """A row of an 80 GiB card; with ``need_gib`` its fit is open around that need."""
    found = estimate(**of)
    if need_gib:
        held = around(need_gib * GIB)
        found = replace(found, fits="unverified", device_memory_bytes=held)
    one = candidate(name, hours=hours, usd=usd, estimate=found)
    verdict = verdict_of(RUN, found, hours=one.hours, cost_usd=one.cost_usd, runs=True)
    return replace(one, verdict=verdict)


def names(*rows: Candidate, named: tuple[str, ...] = ()) -> list[str]:
    return [one.gpu_name for one in deciding(ranked(rows), RUN, named=named)]


CHEAP, QUICK = row("Cheap", 10.0, 10.0), row("Quick", 1.0, 60.0)


def test_nothing_open_decides_nothing() -> None:
    assert names(CHEAP, QUICK) == []


def test_a_pick_whose_fit_is_open_decides() -> None:
    assert names(row("Cheap", 10.0, 10.0, need_gib=75.0), QUICK) == ["Cheap"]


def test_a_row_that_wins_nothing_either_way_decides_nothing() -> None:
    for need_gib in (75.0, 85.0):
        assert names(CHEAP, QUICK, row("Middling", 9.0, 55.0, need_gib=need_gib)) == []


def test_a_row_that_seems_too_small_decides_where_it_would_be_a_pick() -> None:
    assert names(CHEAP, QUICK, row("Tight", 10.0, 5.0, need_gib=85.0)) == ["Tight"]


def test_where_nothing_fits_whatever_might_fit_decides() -> None:
    small = row("Small", 10.0, 10.0, need_gib=90.0)
    assert names(small, row("Smaller", 9.0, 20.0, need_gib=95.0)) == ["Small", "Smaller"]


def test_rows_that_decide_only_together_decide() -> None:
    """Level with 1 h is 1.03 h, where C is the cheapest; without A and B 1.06 h, where D is."""
    a, b = row("A", 1.0, 90.0, need_gib=75.0), row("B", 1.0, 90.0, need_gib=75.0)
    others = row("Base", 10.0, 10.0), row("C", 1.03, 80.0), row("D", 1.05, 70.0)
    assert names(*others, a, row("B", 1.0, 90.0)) == []
    assert names(*others, a, b) == ["A", "B"]


def test_picks_come_first() -> None:
    tight, quick = row("Tight", 10.0, 5.0, need_gib=85.0), row("Quick", 1.0, 60.0, need_gib=75.0)
    assert names(CHEAP, tight, quick)[0] == "Quick"


def test_cards_that_were_named_are_settled_whatever_the_picks() -> None:
    middling = row("Middling", 9.0, 55.0, need_gib=75.0)
    assert names(CHEAP, QUICK, middling, named=("middling",)) == ["Middling"]


def test_a_step_without_xla_is_never_open() -> None:
    assert is_open(row("Cheap", 10.0, 10.0, need_gib=75.0))
    assert not is_open(row("Cheap", 10.0, 10.0, need_gib=75.0, execution="graph"))
    assert not is_open(CHEAP)
