"""What ``export --json`` prints."""

from __future__ import annotations

import json

import pytest
from tests.exports import two

from tfdyno.core.codec import to_json
from tfdyno.view.export_document import export_document


def test_the_document_has_the_figures_by_name() -> None:
    document = json.loads(to_json(export_document(two())))
    assert document["passed"] is False
    onnx, int8 = document["formats"]
    assert onnx["max_difference"] == 1.2e-7
    assert onnx["top1_agreement"] == 1.0
    assert (int8["kept"], int8["accuracy_drop"]) == (False, pytest.approx(0.02))
    assert onnx["latency"][0]["speedup_ratio"] == {"low": 25, "best": 30, "high": 36}
