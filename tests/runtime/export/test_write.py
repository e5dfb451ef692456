"""runtime/export_write: what a converter tells comes back as plain JSON."""

from __future__ import annotations

import pytest
from tests.runtime.exports_seen import facts

pytestmark = pytest.mark.tf


def test_the_onnx_file_is_counted_by_operation() -> None:
    assert facts()["onnx"] == [True, 1]


def test_pytorch_gets_the_keras_file() -> None:
    assert facts()["torch_folder"] == ["model.keras"]


def test_numbers_of_numpy_become_plain() -> None:
    assert facts()["texts"] == {"a": 1.5, "b": [2, "x"]}
