"""Arithmetic of a card: only with a lever, and never on a CPU."""

from __future__ import annotations

import pytest
from tests.rules.bottleneck.steps import drafts, facts, only, primary

from tfdyno.rules.bottleneck.compute import alignment, batch, half_policy, precision
from tfdyno.rules.bottleneck.seen import look


@pytest.mark.parametrize(
    ("capability", "policy"),
    [("6.1", ""), ("7.5", "mixed_float16"), ("8.0", "mixed_bfloat16"), ("", "mixed_float16")],
)
def test_the_policy_is_what_tensor_cores_are_made_for(capability: str, policy: str) -> None:
    assert half_policy(look(facts(device="gpu", compute_capability=capability))) == policy


def test_16_bits_take_away_four_tenths_of_the_products() -> None:
    # 10 of 20 ms in products
    seen = facts(device="gpu", compute_capability="8.0", execution="xla")
    found = only(precision, seen)
    assert found.gain is not None
    assert found.gain.best == pytest.approx(20 / 16)
    assert found.settings == {"precision": "mixed_bfloat16"}
    assert primary(seen).cause == "compute.precision"


def test_16_bits_are_not_proposed_twice_nor_on_a_cpu() -> None:
    assert not drafts(precision, facts(device="gpu", precision="mixed_float16"))
    assert not drafts(precision, facts())


def test_an_idle_card_takes_twice_the_batch() -> None:
    # 1 GFLOP in 10 ms of 10 TFLOP/s: 1 % of the peak; 1 of 16 GiB used
    seen = facts(device="gpu", step_flops=1e9, peak_flops_per_s=1e13,
                 memory_used_bytes=2**30, memory_limit_bytes=2**34)  # fmt: skip
    assert only(batch, seen).settings == {"batch_size": "64"}
    full = facts(device="gpu", step_flops=1e9, peak_flops_per_s=1e13,
                 memory_used_bytes=9 * 2**30, memory_limit_bytes=2**34)  # fmt: skip
    assert not drafts(batch, full)


def test_widths_are_named_where_16_bits_are_used() -> None:
    layers = ("dense_1: 1001 units",)
    seen = facts(device="gpu", precision="mixed_float16", unaligned=layers)
    assert only(alignment, seen).evidence[0].text == "dense_1: 1001 units"
    assert not drafts(alignment, facts(device="gpu", unaligned=layers))
