from __future__ import annotations

from typing import Any

from tests.swept import card_file, loop, product

from tfdyno.core.choose.card_file import CardFile, Compared, Condition, Pace, Verdict
from tfdyno.view.lookup.calibrate_text import calibrate_document, calibrate_text

UNKNOWN = Verdict(grade="unknown", compared=(), reasons=())
SLOW = Verdict(
    grade="slower",
    compared=(Compared(what="matrix products, float16", kernels=4, speed_ratio=0.52),),
    reasons=("its power limit is set to 350 W; its own is 700 W",),
)
GPU = card_file(
    loop(2**26, 1e-3), product(4096, 1e-3, "f16"), card="h100-sxm5-80gb", name="NVIDIA H100",
    pace=Pace(call_s=5e-5, to_card_bytes_per_s=5e10),
    condition=Condition(clock_hz=1.2e9, power_w=349.0, power_limit_w=350.0),
)  # fmt: skip


def told(card: CardFile = GPU, found: Verdict = SLOW, **fields: Any) -> str:
    usual: dict[str, Any] = {"notes": (), "takes_effect": True}
    return calibrate_text(card, found, **{**usual, **fields})


def test_the_verdict_comes_first_with_how_slow_and_why() -> None:
    text = told()
    first, *_ = text.split("\n\n")
    assert " ".join(first.split()) == (
        "NVIDIA H100 is slower than it should be: matrix products, float16 at 52% of what is "
        "expected."
    )
    assert "Because:\n- its power limit is set to 350 W; its own is 700 W" in text
    assert "350 W" in text.split("Because")[0]


def test_slow_without_a_reason_says_that_none_is_known() -> None:
    bare = Verdict(grade="slower", compared=SLOW.compared, reasons=())
    assert "NVML names no reason" in " ".join(told(found=bare).split())


def test_rates_have_units() -> None:
    # 2 * 4096^3 / 1 ms = 137.4 TFLOP/s; 8 B * 2^26 / 1 ms = 500 GiB/s.
    text = told()
    assert "137 TFLOP/s at best" in text
    assert "500 GiB/s in the largest sweep" in text
    assert "50 µs from the host" in text


def test_processors_get_no_verdict_but_their_load_is_told() -> None:
    card = card_file(loop(4096, 1e-6), condition=Condition(other_cpu_ratio=0.37))
    text = " ".join(told(card, UNKNOWN).split())
    assert "there is no verdict on the processors themselves" in text
    assert "used 37% of the processors meanwhile" in text


def test_what_does_not_take_effect_promises_nothing() -> None:
    text = told(takes_effect=False, notes=("The sweep did not end.",))
    assert "from now on" not in text
    assert text.endswith("The sweep did not end.")


def test_json_holds_all_of_it() -> None:
    document = calibrate_document(GPU, SLOW, path="/x", notes=["a"], takes_effect=True)
    assert set(document) == {"card", "verdict", "path", "notes", "takes_effect"}
