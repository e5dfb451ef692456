"""runtime/jax_layout: weights lie as the rules say, and what does not is told."""

from __future__ import annotations

from tests.runtime.jaxes import looked


def test_each_weight_lies_as_its_rule_says() -> None:
    weights = looked("layout")["weights"]
    assert weights["small/up/kernel"] == [["", "model"], ".*up/kernel"]
    assert weights["small/down/kernel"] == [[], ""]
    assert looked("layout")["rules"] == [".*up/kernel"]


def test_the_optimizers_slots_lie_like_their_weights() -> None:
    """Momentum: 4 × 8 + 8 + 8 + 1 floats, two of 4 bytes more; the kernel's by halves."""
    assert looked("layout")["slots"] == [140, 204]


def test_a_proposal_names_its_rules() -> None:
    weights = looked("layout")["proposed"]
    assert weights["proposed/up/kernel"] == [["", "model"], r"proposed(_\d+)?/up(_\d+)?/kernel"]
    assert weights["proposed/down/kernel"][0] == ["model", ""]


def test_rules_without_a_weight_and_weights_of_another_scope_are_told() -> None:
    found = looked("layout")
    assert "no rule of the layout matches a weight" in found["none"]
    assert "JAX holds (4, 4) of small/up/kernel on a device, not (4, 8)" in found["made"]
    assert "names 1 dimension, and up/kernel has 2: (4, 8)" in found["bad"]
