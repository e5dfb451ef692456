"""The trade-off of formats: a point for each that was timed, and its numbers behind it."""

from __future__ import annotations

import math
from dataclasses import replace

from tests.exports import result, two, verification

from tfdyno.view.deploy.export_page import export_page
from tfdyno.view.deploy.figure_export import trade_off_figure


def test_every_timed_format_is_a_point_with_its_size_and_accuracy() -> None:
    figure = trade_off_figure(two())
    assert figure is not None
    assert "onnx: 0.02 ms, largest difference 1.2e-07" in figure.label
    assert [row[0] for row in figure.table.rows] == ["onnx", "litert-int8"]
    if figure.wide:  # drawn where vl-convert is installed
        assert "onnx, 14 KiB, 90.0 %" in figure.wide
        assert "model in TensorFlow" in figure.narrow


def test_equal_outputs_have_a_place_on_the_logarithmic_axis() -> None:
    figure = trade_off_figure(result(("keras", verification(0.0)), ("onnx", verification(1e-4))))
    assert figure is not None
    assert not figure.wide or ">equal<" in figure.wide


def test_without_times_there_is_no_figure() -> None:
    assert trade_off_figure(result(("onnx", replace(verification(), latencies=())))) is None


def test_a_difference_that_is_no_number_has_no_place_but_stands_in_the_table() -> None:
    found = result(("keras", verification(math.inf)), ("onnx", verification(1e-4)))
    figure = trade_off_figure(found)
    assert figure is not None
    assert "keras" not in figure.label
    assert figure.table.rows[0][:3] == ("keras", "14 KiB", "no number")
    assert trade_off_figure(result(("keras", verification(math.inf)))) is None
    assert "no number" in export_page(result(("keras", verification(math.inf))))
