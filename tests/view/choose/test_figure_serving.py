"""The figures of a service."""

from __future__ import annotations

from tests.services import LATE, size

from tfdyno.view.choose.figure_serving import cost_figure, rate_figure


def test_every_card_that_keeps_the_promise_is_in_the_cost_figure() -> None:
    found = cost_figure(size())
    assert found is not None
    assert [row[0].partition(",")[0] for row in found.table.rows] == ["2 x Cheap", "2 x Quick"]
    assert "2 cards" in found.label


def test_a_curve_has_its_numbers_and_the_rate_that_is_in_time() -> None:
    found = rate_figure(size())
    assert found is not None
    assert found.table.rows[0] == ("Cheap", "10", "6", "10", "12")
    assert "Cheap up to 200/s" in found.label


def test_nothing_to_draw_is_no_figure() -> None:
    assert cost_figure(size(ranking=(LATE,))) is None
    assert rate_figure(size(curves=())) is None
