from __future__ import annotations

from dataclasses import replace

import pytest
from tests.model.time.calibrate.test_constants import CARD, MODEL, priced, slower
from tests.swept import card_file, loop, product

from tfdyno.core.choose.card_file import CardFile, Condition
from tfdyno.model.time.calibrate.constants import Reference
from tfdyno.model.time.calibrate.verdict import verdict

HEALTHY = Condition(
    clock_hz=1.9e9, clock_limit_hz=1.98e9, power_w=650.0, power_limit_w=700.0,
    default_power_limit_w=700.0, pcie_width=16, pcie_width_limit=16, ecc=True, other_processes=0,
)  # fmt: skip


def swept(factor: float = 1.0, state: Condition = HEALTHY) -> CardFile:
    kernels = (loop(2**27, 1.0), *(product(size, 1.0, "bf16") for size in (4096, 8192)))
    rows = slower(priced(*kernels), factor)
    return card_file(*rows, card=CARD.slug, name="NVIDIA H100 80GB HBM3", condition=state)


def test_a_card_as_expected_is_as_it_should_be() -> None:
    found = verdict(swept(), CARD, MODEL)
    assert (found.grade, found.reasons) == ("as it should", ())
    assert {one.what for one in found.compared} == {
        "traffic to memory",
        "matrix products, bfloat16",
    }
    assert [one.speed_ratio for one in found.compared] == pytest.approx([1.0, 1.0])


def test_half_the_speed_is_slower_and_the_share_is_told() -> None:
    found = verdict(swept(2.0), CARD, MODEL)
    assert found.grade == "slower"
    assert [one.speed_ratio for one in found.compared] == pytest.approx([0.5, 0.5], rel=0.05)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"throttle": ("hardware thermal slowdown",)}, "clocks were held down: hardware thermal"),
        ({"power_limit_w": 350.0}, "power limit is set to 350 W; its own is 700 W"),
        ({"power_limit_w": 350.0, "default_power_limit_w": None}, "350 W; the data sheet says 700"),
        ({"pcie_width": 8}, "8 of 16 PCIe lanes"),
        ({"uncorrected_errors": 3}, "3 errors that ECC could not correct"),
        ({"slice_name": "3g.40gb"}, "a slice of a card (3g.40gb)"),
        ({"other_processes": 2}, "2 other processes computed on it"),
    ],
)
def test_what_nvml_tells_is_named_as_the_reason(state: dict[str, object], words: str) -> None:
    (reason,) = verdict(swept(2.0, replace(HEALTHY, **state)), CARD, MODEL).reasons  # type: ignore[arg-type]
    assert words in reason


def test_without_nvml_no_reason_is_made_up() -> None:
    found = verdict(swept(2.0, Condition()), CARD, MODEL)
    assert (found.grade, found.reasons) == ("slower", ())


def test_processors_and_unknown_cards_are_not_judged() -> None:
    busy = card_file(loop(4096, 1e-6), condition=Condition(other_cpu_ratio=0.4))
    found = verdict(busy, None, MODEL)
    assert found.grade == "unknown"
    assert found.reasons == ("other programs used 40% of the processors meanwhile",)


def test_a_card_is_judged_beside_the_reference_where_the_law_is_off() -> None:
    known = Reference(card=swept(1.6), gpu=CARD)
    found = verdict(swept(1.6), CARD, MODEL, known)
    assert found.grade == "as it should"
    assert [one.speed_ratio for one in found.compared] == pytest.approx([1.0, 1.0])
    assert verdict(swept(3.2), CARD, MODEL, known).grade == "slower"
