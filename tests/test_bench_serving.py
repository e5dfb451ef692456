"""The page of the serving benchmark: ratios by hand, the worst promise first."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.loads import result, stage, stretch

from bench_serving_overload import Kill, Overload, _kill_answer
from bench_serving_page import Round, Study, claims, page, ratio
from bench_serving_servers import BASELINE, KINDS, NATIVE, ROUTE, UNBATCHED
from tfdyno.core.measure.load import LoadPlan

FLOOD = Overload(
    slo_s=0.25, options=("--p99-ms", "250"), capacity_per_s=100.0, offered_per_s=1000.0,
    seconds_s=60.0, accepted_per_s=90.0, p99_s=0.4, codes={"200": 900, "429": 8100},
    memory_bytes=(1e9,) * 60, recovery_s=0.5, client_late_s=0.002, client_cpu_ratio=0.1,
)  # fmt: skip
KILLED = Kill(
    offered_per_s=100.0, gap_s=4.0, codes={"200": 900, "503": 100}, slowest_s=0.5,
    before_per_s=100.0, after_per_s=100.0,
)  # fmt: skip
RATES = {BASELINE: 100.0, UNBATCHED: 150.0, NATIVE: 900.0, ROUTE: 600.0}


def rounds(count: int = 5, drift: float = 1.5) -> tuple[Round, ...]:
    """The machine gets faster by ``drift`` each round: ratios inside a round stay."""
    return tuple(
        Round(number=number, kind=kind.id, answers_per_s=RATES[kind] * drift**number, p50_s=0.01,
              p99_s=0.02, mean_batch_rows=0.0, requests=100, client_cpu_ratio=0.1)
        for number in range(count)
        for kind in KINDS
    )  # fmt: skip


def study(**changes: object) -> Study:
    found = Study(rounds=rounds(), seconds_s=8.0, clients=64, overload=FLOOD, kill=KILLED,
                  machine="2 CPUs", made_on="2026-11-23", revision="0.1.0")  # fmt: skip
    return replace(found, **changes)  # type: ignore[arg-type]


def test_a_drift_of_the_machine_leaves_the_ratios_alone() -> None:
    assert ratio(rounds(), NATIVE, UNBATCHED) == pytest.approx((6.0, 6.0, 6.0))


def test_every_promise_is_kept_and_the_tightest_comes_first() -> None:
    found = claims(study())
    assert all(one.holds for one in found)
    assert found[0].words.startswith("memory stays flat")  # 1.0 of 1.05
    aims = [one for one in found if one.is_aim]
    assert [one.is_kept for one in aims] == [False, True]  # 0.67 of 0.8, 6 of 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"overload": replace(FLOOD, p99_s=0.6)}, "10× too much load"),
        ({"overload": replace(FLOOD, codes={"200": 9, "504": 1})}, "the rest is refused"),
        ({"overload": replace(FLOOD, memory_bytes=tuple(1e9 + at * 1e8 for at in range(60)))},
         "memory stays flat"),
        ({"overload": replace(FLOOD, recovery_s=-1.0)}, "it recovers"),
        ({"kill": replace(KILLED, gap_s=-1.0)}, "a killed worker"),
        ({"kill": replace(KILLED, codes={"timed out": 1})}, "nothing hangs"),
    ],
)  # fmt: skip
def test_a_broken_promise_stands_first(changes: dict[str, object], words: str) -> None:
    broken = claims(study(**changes))
    assert broken[0].words.startswith(words)
    assert not broken[0].holds
    assert "| **no** |" in page(study(**changes))


def test_the_page_has_every_round() -> None:
    text = page(study())
    assert "| FastAPI + SavedModel, one call at a time | 100 | 150 | 225 | 338 | 506 |" in text
    assert "6 (6–6)" in text


def test_a_restart_takes_until_a_later_request_is_answered() -> None:
    """Requests each 10 ms; killed at 0.5 s; those begun in 0.5-0.8 s are refused."""
    codes = tuple(503 if 50 <= at < 80 else 200 for at in range(100))
    run = stretch([0.001] * 100, codes=codes)
    run = replace(run, plan=LoadPlan(kind="open", rate_per_s=100.0, seconds_s=1.0, warmup_s=0.0))
    began_s = 1795435200.0  # 2026-11-23 12:00 UTC, as the stretch says
    found = _kill_answer(result(stage(run)), began_s + 0.495, 100.0)
    assert found.gap_s == pytest.approx(0.306, abs=1e-3)
    assert found.codes == {"200": 70, "503": 30}
    assert not math.isnan(found.before_per_s)
