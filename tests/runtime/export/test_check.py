"""runtime/export_check: obstacles are found in the graph, with the layer they belong to."""

from __future__ import annotations

import pytest
from tests.runtime.exports_seen import facts

pytestmark = pytest.mark.tf


def test_words_are_an_obstacle_to_onnx_pytorch_and_tensorrt() -> None:
    onnx, torch, tensorrt, none = facts()["obstacles"]
    assert onnx == [["onnx", "operation", "LookupTableFindV2", "words", "", ""]]
    assert torch == [["torch", "layer", "StringLookup", "words", "", ""]]
    assert tensorrt == [["tensorrt", "dtype", "string", "", "", ""]]
    assert none == []
