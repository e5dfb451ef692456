"""runtime/export/plain: floats without adapters, which compute as the fine-tune did."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from tests.runtime.language_exports_seen import facts

pytestmark = [
    pytest.mark.tf,
    pytest.mark.skipif(
        find_spec("keras_hub") is None or find_spec("safetensors") is None,
        reason="KerasHub or safetensors is not installed",
    ),
]


def test_weights_of_4_bits_with_adapters_become_floats_that_compute_alike() -> None:
    """Layers in 4 bits compute in floats themselves: nothing is rounded but float32."""
    found = facts()["llama_int4"]
    assert found["differs"] < 1e-5
    assert found["details"] == {"merged_adapters": 4, "made_floats": ["int4"]}


def test_weights_of_8_bits_differ_by_what_the_model_rounds_of_its_own_numbers() -> None:
    """A layer in 8 bits rounds what it is given to one of 255 steps; the floats do not."""
    found = facts()["llama_int8"]
    assert 1e-5 < found["differs"] < found["largest"] / 50
    assert found["made_floats"] is True


def test_the_model_itself_keeps_its_adapters() -> None:
    assert facts()["still_adapted"] == 4


def test_a_model_that_is_plain_is_not_copied() -> None:
    assert facts()["copied"] == [True, "float32", "bfloat16"]
