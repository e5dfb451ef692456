"""Memory of shared steps: XLA's plan in place of the formula's."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.model.time.test_sharding import GIB, large

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import ToolError
from tfdyno.core.choose.sharding import Sharding, ShardingKind
from tfdyno.core.choose.workload import Workload
from tfdyno.jobs.choose import _sharded
from tfdyno.jobs.choose.compile import compile_sharded
from tfdyno.jobs.choose.trace import Traced, trace
from tfdyno.model.time.sharding import fewest_that_fit, held_beside

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = Path(__file__).parents[2] / "data" / "models" / "wide.py"
A100 = find("a100-sxm4-40gb")
RATES = {2: 1e12, 4: 1e12, 8: 1e12}


@lru_cache(maxsize=1)
def traced() -> Traced:
    return trace(Workload(reference=f"{MODEL}:wide", kind="function"), batch_size=64)


def held(kind: ShardingKind, cards: int = 4) -> float:
    return compile_sharded(traced(), gpu=A100, family="8.x", batch_size=64, kind=kind, cards=cards)


@pytest.mark.slow
def test_xla_shares_what_the_way_says() -> None:
    """Weights W and two slots of Adam for each: 3 W are held by one card."""
    tensors = traced().trace.tensors
    weights = sum(one.bytes for one in tensors if one.role == "weight")
    assert weights == pytest.approx(208 * 2**20, rel=0.01)
    whole, states, everything = (
        held(kind) for kind in ("data parallel", "optimizer state", "all states")
    )
    assert whole >= 3 * weights
    assert whole - states > weights  # 3/4 of two slots less, some of it gathered again
    assert states - everything == pytest.approx(0.75 * weights, rel=0.3)
    assert held("tensor parallel") < whole / 3


def told() -> Sharding:
    return Sharding(gpu=A100.slug, batch_size=64, most_cards=8,
                    plans=fewest_that_fit(large(), RATES))  # fmt: skip


def compiled(monkeypatch: pytest.MonkeyPatch, answer: Callable[..., float]) -> Sharding:
    monkeypatch.setattr(_sharded, "compile_sharded", answer)
    nothing: Any = None
    return _sharded.compiled_sharding(
        told(), large(), A100, RATES, traced=nothing, progress=lambda _line: None
    )


def test_more_cards_are_tried_where_the_plan_is_larger(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(*_: object, kind: str, cards: int, **__: object) -> float:
        return 60 * GIB / cards if kind == "all states" else 100 * GIB

    plans = {plan.kind: plan for plan in compiled(monkeypatch, answer).plans}
    found = plans["all states"]
    assert (found.replicas, found.fits, found.memory_by) == (4, True, "compiler")
    assert found.device_memory_bytes == pytest.approx(15 * GIB + held_beside(large(), 15 * GIB))
    assert (plans["tensor parallel"].replicas, plans["tensor parallel"].fits) == (8, False)
    assert plans["pipeline"].memory_by == "formula"
    assert [plan.fits for plan in compiled(monkeypatch, answer).plans][-1] is False


def test_what_the_compiler_refuses_keeps_its_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(*_: object, **__: object) -> float:
        raise ToolError("no compiler here")

    assert set(compiled(monkeypatch, answer).plans) == set(told().plans)


def test_samples_that_do_not_divide_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(*_: object, **__: object) -> float:
        raise AssertionError("compiled all the same")

    monkeypatch.setattr(_sharded, "compile_sharded", answer)
    odd, nothing = replace(large(), batch_size=63), None
    found = _sharded.compiled_sharding(
        replace(told(), batch_size=63), odd, A100, RATES, traced=nothing,  # type: ignore[arg-type]
        progress=lambda _line: None,
    )  # fmt: skip
    assert all(plan.memory_by == "formula" for plan in found.plans)
