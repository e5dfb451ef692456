from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.catalog.offer_rules import Listing
from tfdyno.catalog.offers import COLUMNS
from tfdyno.catalog.price_history import (
    MOST_POINTS,
    by_machine,
    history_file,
    history_of,
    read_history,
    with_former,
)
from tfdyno.core.choose.hardware import Offer

if TYPE_CHECKING:
    from pathlib import Path

ROW = Listing(
    provider="cloud", instance="small", region="here", gpu_slug="t4", gpus=1, vcpus=4, ram_gb=16,
    usd_per_h=0.5, spot_usd_per_h=0.2, date="2026-01", date_precision="day",
    gpu_memory_total_gb=0, source="test",
)  # fmt: skip
NOW = Offer(
    slug="cloud/small/here/on_demand", provider="cloud", instance="small", region="here",
    gpu_slug="t4", gpu_count=1, gpu_fraction=1.0, vcpus=4, ram_bytes=0.0, usd_per_h=0.4, spot=False,
    priced_on="2026-11-27", date_precision="day", source="test",
)  # fmt: skip


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFDYNO_DATA", str(tmp_path))


def test_former_prices_make_a_range_and_a_change() -> None:
    rows = (ROW, replace(ROW, date="2026-06-01", usd_per_h=0.6, spot_usd_per_h=0.0))
    found = history_of(NOW, by_machine(rows))
    assert [(one.date, one.usd_per_h) for one in found.points] == [
        ("2026-01", 0.5), ("2026-06-01", 0.6), ("2026-11-27", 0.4),
    ]  # fmt: skip
    assert (found.low_usd_per_h, found.high_usd_per_h) == (0.4, 0.6)
    assert found.change_ratio == pytest.approx(-0.2)  # 0.4 / 0.5 - 1


def test_a_machine_that_costs_electricity_alone_has_no_change() -> None:
    owned = replace(NOW, provider="owned", usd_per_h=0.0, priced_on="", terms="owned")
    found = history_of(owned, by_machine((ROW,)))
    assert (found.low_usd_per_h, found.high_usd_per_h, found.change_ratio) == (0.0, 0.0, 0.0)


def test_spot_has_a_course_of_its_own_and_no_price_is_no_point() -> None:
    rows = (ROW, replace(ROW, date="2026-06-01", spot_usd_per_h=0.0))
    found = history_of(replace(NOW, spot=True, usd_per_h=0.3), by_machine(rows))
    assert [one.usd_per_h for one in found.points] == [0.2, 0.3]
    assert found.change_ratio == pytest.approx(0.5)


def test_another_card_under_the_same_name_or_a_later_row_is_no_past() -> None:
    rows = (replace(ROW, gpu_slug="l4"), replace(ROW, date="2026-12-01"))
    found = history_of(NOW, by_machine(rows))
    assert (len(found.points), found.change_ratio) == (1, 0.0)


def test_no_file_is_no_history_and_no_damage() -> None:
    assert read_history().rows == ()
    assert read_history().damage == ""


LINE = "cloud,small,t4,1,4,16,here,0.5,0.2,2026-01,test,day"


@pytest.mark.parametrize(
    ("content", "rows", "told", "unreadable"),
    [
        (f"{','.join(COLUMNS)}\n{LINE}\n", 1, "", False),
        (f"{','.join(COLUMNS)}\n{LINE}\ncloud,small,t4\n", 1, "a line of ", False),
        (f"{','.join(COLUMNS)}\n{LINE}\n{LINE}\nx\n", 1, "2 lines of ", False),
        ("a,b\n1,2\n", 0, "the column provider is missing", True),
        ("", 0, "the column provider is missing", True),
    ],
)
def test_damage_is_told_and_the_rest_is_read(
    content: str, rows: int, told: str, unreadable: bool
) -> None:
    history_file().write_text(content)
    found = read_history()
    assert (len(found.rows), found.unreadable) == (rows, unreadable)
    assert (told in found.damage) if told else found.damage == ""


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 60)), max_size=120))
def test_a_history_keeps_each_day_once_and_the_newest_ones(days: list[tuple[str, int]]) -> None:
    rows = tuple(
        replace(ROW, instance=name, date=f"2026-{1 + day // 30:02}-{1 + day % 30:02}")
        for name, day in days
    )
    joined = with_former((), rows)
    assert with_former(joined, rows) == joined
    for name, some in by_machine(joined).items():
        dates = [one.date for one in some]
        wanted = sorted({row.date for row in rows if row.key == name})
        assert dates == wanted[-MOST_POINTS:]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("cloud,small,t4,1,4,16,there,0,0.2,2026-01,test,day", "is not above 0"),
        ("cloud,small,t4,1,4,16,there,0.5,0.9,2026-01,test,day", "is above on-demand"),
        ("cloud,small,t4,1,4,16,there,5000,0.2,2026-01,test,day", "cannot be"),
        ("cloud,small,t4,1,4,16,there,-1,0.2,2026-01,test,day", "at least 0"),
        ("cloud,small,t4,1,4,16,there,1e999,0.2,2026-01,test,day", "not a finite number"),
        ("cloud,small,t4,7,4,16,there,0.5,0.2,2026-01,test,day", "no machine has 7 GPUs"),
        ("cloud,small,t4,1,4,16,there,0.5 EUR,0.2,2026-01,test,day", "not a number"),
        ("cloud,small,t4,1,4,16,there,0.5,0.2,2026-13,test,day", "not 2026-11-21 or 2026-11"),
    ],
)
def test_a_price_that_cannot_be_is_left_out_with_the_reason(line: str, why: str) -> None:
    history_file().write_text(f"{','.join(COLUMNS)}\n{LINE}\n{line}\n")
    found = read_history()
    assert [one.usd_per_h for one in found.rows] == [0.5]
    assert why in found.damage


def test_a_history_is_read_anew_where_it_changed() -> None:
    history_file().write_text(f"{','.join(COLUMNS)}\n{LINE}\n")
    assert len(read_history().rows) == 1
    history_file().write_text(f"{','.join(COLUMNS)}\n{LINE}\n{LINE.replace('here', 'there')}\n")
    assert len(read_history().rows) == 2
