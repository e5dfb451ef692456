"""The lanes are drawn in the order of the runs, and the table has the means of the steady part."""

from __future__ import annotations

from tests.measurements import measurement
from tests.view import benches

from tfdyno.view.bench.figure_telemetry import telemetry_figure


def test_nothing_is_drawn_where_nothing_was_recorded() -> None:
    assert telemetry_figure([benches.told(measurement([[0.1] * 20] * 5))]) is None


def test_without_a_card_nothing_of_a_gpu_is_drawn() -> None:
    found = telemetry_figure([benches.told(benches.on_cpu())])
    assert found
    assert "GPU" not in found.wide + found.label
    assert "CPU busy, of all, %" in found.wide


def test_a_lowered_clock_is_red_and_in_the_key_and_the_table() -> None:
    found = telemetry_figure([benches.told(benches.on_gpu())])
    assert found
    assert "f-bad" in found.wide
    assert found.key[-1].text == "the card lowered its clock"
    column = found.table.headings.index("Clock lowered, % of points")
    assert found.table.rows[0][column] == "0"
    assert float(found.table.rows[-1][column]) > 10


def test_runs_of_two_sides_stand_in_the_order_they_were_made() -> None:
    told, _ = benches.pair(runs=4)
    found = telemetry_figure(told)
    assert found
    assert [row[0] for row in found.table.rows[:4]] == ["A 1", "B 1", "B 2", "A 2"]


def test_means_are_of_the_steady_part_only() -> None:
    found = telemetry_figure([benches.told(benches.on_gpu())])
    assert found
    power = found.table.headings.index("Power, W")
    assert 60 < float(found.table.rows[0][power]) < 75  # before the steps it was 17 W
