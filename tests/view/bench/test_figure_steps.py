"""The strips show every run, its left-out samples apart, and what lies off the axis."""

from __future__ import annotations

import re

from tests.measurements import measurement
from tests.view import benches

from tfdyno.view.bench.figure_steps import MOST_DOTS, steps_figure


def test_every_run_and_the_whole_have_a_row_in_both_layouts() -> None:
    found = steps_figure([benches.told(benches.on_cpu())])
    for drawing in (found.wide, found.narrow):
        assert all(f">run {number}<" in drawing for number in range(1, 6))
        assert ">all<" in drawing
        assert ">warm-up<" in drawing
        assert re.search(r">to (9\d\.\d|10\d)<", drawing)
    assert re.search(r"1 more, to 1\d\d ms ›", found.wide)


def test_the_sentence_and_the_table_hold_the_numbers() -> None:
    found = steps_figure([benches.told(measurement([[0.05, 0.06, 0.07] * 10] * 5))])
    assert "5 runs with a median step of 60.0 ms" in found.label
    assert found.table.rows[0] == ("run 1", "30", "60", "50", "50", "70", "70", "0")
    assert [key.text for key in found.key] == ["steady samples", "median"]


def test_two_sides_have_two_colours_and_two_whole_rows() -> None:
    told, _ = benches.pair()
    found = steps_figure(told)
    assert {"f-c1", "f-c3"} <= set(re.findall(r"f-c\d", found.wide))
    assert ">A all<" in found.wide
    assert ">B all<" in found.wide


def test_many_samples_do_not_swell_the_page() -> None:
    found = steps_figure([benches.told(measurement([[0.05, 0.051] * 2000] * 10))])
    assert found.wide.count("<path") < MOST_DOTS + 100
    assert found.table.rows[0][1] == "4000"
