"""The bars of measured times: one for each number of threads, in a unit that suits the longest."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.view.edge_reports import REPORT

from tfdyno.view.deploy.figure_edge import measured_figure


def test_there_is_a_bar_for_each_number_of_threads() -> None:
    one = REPORT.timings[0]
    two = replace(one, threads=2, median_s=0.003, interval_s=(0.0029, 0.0031))
    drawn = measured_figure(replace(REPORT, timings=(one, two)))
    assert drawn is not None
    assert drawn.table.rows == (
        ("1 thread", "4.2 ms", "4 ms to 5 ms", "9", "1,234"),
        ("2 threads", "3 ms", "2.9 ms to 3.1 ms", "9", "1,234"),
    )
    assert "ms for a call with one sample" in drawn.wide


@pytest.mark.parametrize(("median_s", "unit"), [(2.0, "s"), (0.002, "ms"), (2e-6, "µs")])
def test_the_unit_is_that_of_the_longest(median_s: float, unit: str) -> None:
    one = replace(REPORT.timings[0], median_s=median_s, interval_s=(median_s, median_s))
    drawn = measured_figure(replace(REPORT, timings=(one,)))
    assert drawn is not None
    assert f">{unit} for a call" in drawn.wide


def test_nothing_is_drawn_where_nothing_was_measured() -> None:
    assert measured_figure(replace(REPORT, timings=())) is None
