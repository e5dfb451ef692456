"""Lanes hold what was read, in readable units, and nothing where nothing could be read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.measurements import measurement, run
from tests.view import benches

from tfdyno.core.measure.measurement import Telemetry
from tfdyno.view.bench.runs import shown_runs
from tfdyno.view.bench.telemetry_lanes import Lane, lanes


def of(telemetry: Telemetry) -> dict[str, Lane]:
    one = replace(measurement([[0.1]]), runs=(run([0.1] * 20, telemetry=telemetry),))
    return {lane.title: lane for lane in lanes(shown_runs([benches.told(one)]))}


def test_a_run_without_a_card_has_no_lane_of_one() -> None:
    found = lanes(shown_runs([benches.told(benches.on_cpu())]))
    assert [one.title for one in found] == ["CPU busy, of all", "Memory of the process", "Disk"]


def test_units_are_readable_and_missing_points_are_holes() -> None:
    found = of(
        Telemetry(at_s=(0.5, 1.0, 1.5), cpu_ratio=(0.5, -1, 0.25),
                  disk_read_bytes=(0, 1 << 20, 3 << 20), memory_bytes=(1 << 30,) * 3)
    )  # fmt: skip
    assert found["CPU busy, of all"].lines[0].runs == ((50.0, None, 25.0),)
    assert found["CPU busy, of all"].end == 100.0
    assert found["Disk"].lines[0].runs == ((None, 2.0, 4.0),)
    assert found["Memory of the process"].lines[0].runs[0][0] == pytest.approx(1.0)


def test_without_any_telemetry_there_are_no_lanes() -> None:
    assert of(Telemetry()) == {}


def test_the_clock_lane_marks_where_it_was_lowered() -> None:
    found = {one.title: one for one in lanes(shown_runs([benches.told(benches.on_gpu())]))}
    clock = found["Graphics clock"]
    assert not any(clock.marked[0])
    assert any(clock.marked[-1])
    assert [one.name for one in found["GPU memory in use"].lines] == ["all", "of it by others"]


@pytest.mark.parametrize(("cards", "count"), [(1, 1), (4, 4), (5, 1)])
def test_few_cards_have_a_line_each_and_many_their_mean(cards: int, count: int) -> None:
    found = lanes(shown_runs([benches.told(benches.on_gpu(cards=cards, runs=3))]))
    power = next(one for one in found if one.title == "Power")
    assert len(power.lines) == count
    assert power.end < 100.0
