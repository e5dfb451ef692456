from __future__ import annotations

from dataclasses import replace

from tests.advice import exactly

from tfdyno.core.choose.sharding import Sharding, ShardingPlan
from tfdyno.view.choose.sharding_text import sentence, sharding_text

PLAN = ShardingPlan(kind="all states", replicas=4, device_memory_bytes=2.0**34, fits=True,
                    step_s=exactly(0.5), formula="all/n", source="ZeRO")  # fmt: skip


def test_the_fewest_cards_are_named_first_and_said_to_be_by_formula() -> None:
    one = Sharding(gpu="t4", batch_size=64, plans=(PLAN,), most_cards=8)
    assert sentence(one, "Tesla T4") == (
        "By formula, nothing was compiled: 4 T4 hold batch 64 together (all states)."
    )
    text = sharding_text([one], {"t4": "Tesla T4"})
    assert "16.0" in text
    assert "Formulas: ZeRO." in text


def test_what_xla_planned_is_said_to_be_so() -> None:
    plan = replace(PLAN, memory_by="compiler")
    one = Sharding(gpu="t4", batch_size=64, plans=(plan,), most_cards=8)
    assert sentence(one, "Tesla T4") == (
        "As XLA plans the shared step: 4 T4 hold batch 64 together (all states)."
    )
    assert "compiler" in sharding_text([one], {"t4": "Tesla T4"})
    more = replace(one, plans=(replace(plan, fits=False),))
    assert "No way that was tried" in sentence(more, "Tesla T4")
    assert "(too much)" in sharding_text([more], {"t4": "Tesla T4"})


def test_where_no_way_holds_it_that_is_said() -> None:
    none = Sharding(gpu="t4", batch_size=64, plans=(), most_cards=8)
    text = " ".join(sharding_text([none], {"t4": "Tesla T4"}).split())
    assert text.startswith("No way by formula holds batch 64 on 8 T4: a smaller batch, remat")


def test_a_batch_of_one_is_not_told_to_be_made_smaller() -> None:
    one = Sharding(gpu="t4", batch_size=1, plans=(), most_cards=1)
    assert sentence(one, "Tesla T4") == (
        "No way by formula holds batch 1 on several T4: rematerialisation or a larger card may."
    )


def test_the_time_of_tensor_parallel_is_said_to_be_rough() -> None:
    plan = replace(PLAN, kind="tensor parallel")
    one = Sharding(gpu="t4", batch_size=64, plans=(plan,), most_cards=8)
    assert "rough" in sharding_text([one], {"t4": "Tesla T4"})
    assert "rough" not in sharding_text([replace(one, plans=(PLAN,))], {"t4": "Tesla T4"})
