"""An export as text: what is kept, what is not, and why."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.exports import difference, result, two, verification

from tfdyno.core.base.codec import to_json
from tfdyno.view.base.text import shown_width
from tfdyno.view.deploy.export_page import export_page
from tfdyno.view.deploy.export_text import export_document, export_text


def test_the_answer_says_what_is_kept_and_what_is_not() -> None:
    text = export_text(two())
    assert text.startswith("digits is exported to onnx; litert-int8 did not pass and is not kept.")
    assert "litert-int8 is not kept: accuracy falls by 2.00 points, more than the 1.00" in text
    assert "Wrote exports/onnx." in text
    assert "Wrote exports/litert-int8" not in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    lines = export_text(two(), width=width).splitlines()
    assert [line for line in lines if shown_width(line) > width] == []


def test_the_document_has_the_figures_by_name() -> None:
    document = json.loads(to_json(export_document(two())))
    assert document["passed"] is False
    onnx, int8 = document["formats"]
    assert onnx["max_difference"] == 1.2e-7
    assert onnx["top1_agreement"] == 1.0
    assert (int8["kept"], int8["accuracy_drop"]) == (False, pytest.approx(0.02))
    assert onnx["latency"][0]["speedup_ratio"] == {"low": 25, "best": 30, "high": 36}


def test_of_an_output_without_classes_no_word_is_said_of_them() -> None:
    prices = replace(verification(), differences=(difference(top1_ratio=None),), accuracy=None)
    found = result(("onnx", prices))
    assert json.loads(to_json(export_document(found)))["formats"][0]["top1_agreement"] is None
    assert "top-1" not in export_text(found, width=200)
    assert "top-1" not in export_page(found).split("<script")[0]
    assert "top-1" in export_text(two(), width=200)
