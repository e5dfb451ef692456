from __future__ import annotations

from tests.advice import exactly

from tfdyno.core.sharding import Sharding, ShardingPlan
from tfdyno.view.sharding_text import sentence, sharding_text

PLAN = ShardingPlan(kind="all states", replicas=4, device_memory_bytes=2.0**34, fits=True,
                    step_s=exactly(0.5), formula="all/n", source="ZeRO")  # fmt: skip


def test_the_fewest_cards_are_named_first_and_said_to_be_by_formula() -> None:
    one = Sharding(gpu="t4", batch_size=64, plans=(PLAN,))
    assert sentence(one, "Tesla T4") == (
        "By formula, nothing was compiled: 4 T4 hold batch 64 together (all states)."
    )
    text = sharding_text([one], {"t4": "Tesla T4"})
    assert "16.0" in text
    assert "Formulas: ZeRO." in text


def test_where_no_way_holds_it_that_is_said() -> None:
    text = sharding_text([Sharding(gpu="t4", batch_size=64, plans=())], {"t4": "Tesla T4"})
    assert text.startswith("No way by formula holds batch 64 on T4")
