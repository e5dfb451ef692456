"""scripts/prove_bench: counts and verdicts are right, and a tiny run goes through the real jobs."""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path

import pytest
from tests.measurements import measurement

from prove_bench import SAMPLE_PROTOCOL, Plan
from prove_bench_page import Pairing, Proof, page
from tfdyno.core.measure.measurement import Comparison, Verdict
from tfdyno.jobs.bench.compare import compare_all

ROOT = Path(__file__).parents[1]


def pairing(ratio: float, verdict: Verdict, wanted: Verdict = "no_difference") -> Pairing:
    found = Comparison(verdict=verdict, ratio=ratio, interval=(ratio - 0.02, ratio + 0.02),
                       confidence_ratio=0.99, paired=False, reason="because.")  # fmt: skip
    return Pairing(name="a pair", wanted=wanted, comparison=found, doubts=())


def proof(same: list[Pairing], slowed: list[Pairing]) -> Proof:
    return Proof(
        slowdown_ratio=0.05,
        step_s=0.04,
        first=measurement([[0.04] * 30] * 5),
        same=tuple(same),
        slowed=tuple(slowed),
    )


def test_every_second_round_goes_backwards() -> None:
    plan = Plan(side_count=3, rounds=2, protocol=SAMPLE_PROTOCOL, slowdown_ratio=0.05,
                folder=Path("x"))  # fmt: skip
    assert [one.name for one in plan.turns] == [
        "plain-00", "slow-01", "plain-02", "plain-02", "slow-01", "plain-00",
    ]  # fmt: skip
    assert [one.slow for one in plan.sides] == [False, True, False]


def test_one_slowdown_that_is_missed_is_no_proof() -> None:
    assert not proof([], [pairing(0.97, "no_difference", "slower")]).holds
    assert not proof([pairing(1.02, "faster")] + [pairing(1.0, "no_difference")] * 38, []).holds
    assert not proof([pairing(0.0, "not_comparable")], []).holds


@pytest.mark.parametrize(
    ("alarms", "found", "holds"), [(0, 20, True), (1, 19, True), (2, 20, False), (0, 18, False)]
)
def test_one_alarm_in_40_and_one_miss_in_20_are_allowed(
    alarms: int, found: int, holds: bool
) -> None:
    same = [pairing(1.02, "faster")] * alarms + [pairing(0.999, "no_difference")] * (40 - alarms)
    slowed = [pairing(0.952, "slower", "slower")] * found
    slowed += [pairing(0.97, "no_difference", "slower")] * (20 - found)
    made = proof(same, slowed)
    assert made.holds is holds
    assert f"| at most 1 in 40 | {alarms} of 40 |" in page(made)
    assert f"| at least 19 in 20 | {found} of 20 |" in page(made)


def test_back_from_slow_to_plain_counts_as_found_when_it_is_faster() -> None:
    assert pairing(1.05, "faster", "faster").right
    assert not pairing(0.95, "slower", "faster").right


def test_the_page_shows_the_worst_first_and_how_far_ratios_go() -> None:
    slowed = [pairing(0.9524, "slower", "slower")]
    made = proof([pairing(1.001, "no_difference"), pairing(0.95, "no_difference")], slowed)
    text = page(made)
    ratios = re.findall(r"\| (\d\.\d{4}) \|", text)
    assert ratios == ["0.9500", "1.0010", "0.9524"]
    assert "all within 5.26 % of 1" in text  # 1 / 0.95 - 1
    assert "1 of 2" in text  # within 3 %
    assert math.isclose(made.same[1].change_ratio, 1 / 0.95 - 1)


@pytest.mark.slow
@pytest.mark.tf
def test_a_quarter_more_is_found_and_the_same_twice_is_not(tmp_path: Path) -> None:
    command = [str(ROOT / "scripts" / "prove_bench"), "--sample", "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    names = ("plain-00", "slow-01", "plain-02")
    first, slow, again = compare_all([str(tmp_path / f"{name}.json") for name in names])
    assert again.comparison
    assert slow.comparison
    assert again.comparison.paired
    kinds = {one.kind for side in (first, again, slow) for one in side.summary.instabilities}
    if "busy_host" in kinds:
        pytest.skip(f"the machine was too busy for a proof: {sorted(kinds)}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert again.comparison.verdict == "no_difference"
    assert slow.comparison.verdict == "slower"
    assert slow.comparison.ratio == pytest.approx(0.8, rel=0.1)
