"""view/diagnose_words: shares add up to 100, gains and proofs are told with what they rest on."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.view.diagnoses import (
    AGREEMENT,
    CACHE,
    FACTS,
    LEAK,
    PROOF,
    SLOWER,
    SPLIT_S,
    fixed,
    only,
    told,
)

from tfdyno.core.measure.bottleneck import Gain
from tfdyno.core.measure.step_facts import CardFacts, HostFacts
from tfdyno.view.diagnose import words
from tfdyno.words.base.language import speaking

if TYPE_CHECKING:
    from tfdyno.view.diagnose.document import DiagnoseReport


def test_shares_are_whole_percents_of_the_parts_that_are_there() -> None:
    # 0.255 / 0.418 = 61.0; 0.117 / 0.418 = 27.99; 0.038 / 0.418 = 9.09; 0.008 / 0.418 = 1.91
    assert words.shares(SPLIT_S) == [("input", 61), ("compute", 28), ("host", 9), ("launch", 2)]
    assert words.shares({"a": 1.0, "b": 1.0, "c": 1.0}) == [("a", 34), ("b", 33), ("c", 33)]
    assert words.shares({"a": 0.0}) == []


@given(st.dictionaries(st.text(max_size=3), st.floats(1e-9, 1e3), min_size=1, max_size=9))
def test_shares_always_add_up(split_s: dict[str, float]) -> None:
    found = words.shares(split_s)
    assert sum(percent for _, percent in found) == 100
    assert all(percent >= 0 for _, percent in found)


@pytest.mark.parametrize(("percent", "columns"), [(0, 1), (1, 1), (50, 25), (100, 50)])
def test_a_bar_is_as_long_as_its_share_and_never_empty(percent: int, columns: int) -> None:
    assert words.bar(percent, 50) == "█" * columns


def test_the_step_is_told_with_the_middle_half_of_its_samples() -> None:
    # of five sorted samples the second and the fourth
    assert words.middle_half(FACTS.step_s) == (0.415, 0.421)
    assert words.step_line(0.418, FACTS, 612.4) == "418 ms (half of them 415–421)   612 samples/s"
    assert words.middle_half((1.0, 2.0, 3.0)) is None
    assert words.step_line(0.418, replace(FACTS, step_s=(0.4,)), 0.0) == "418 ms"
    assert words.step_line(0.9, FACTS, 0.0) == "900 ms with its share of the epoch"


def test_a_run_is_told_without_what_is_as_usual() -> None:
    assert words.run_words(FACTS) == "batch 256, 60 steps, on 2 CPUs"
    untold = replace(FACTS, host=HostFacts(cpus=0, usable_cpus=0.0))
    assert words.run_words(untold) == "batch 256, 60 steps, on a CPU"
    host = HostFacts(cpus=8, usable_cpus=8.0)
    other = replace(FACTS, device="gpu", execution="xla", precision="mixed_float16",
                    replica_count=2, batch_size=0, host=host)  # fmt: skip
    assert words.run_words(other) == "60 steps, 2 replicas, mixed_float16, XLA, on the GPU"


def test_an_expected_gain_says_what_the_step_takes_then() -> None:
    # 418 / 2.6 = 160.8; 418 / 2.3 = 181.7
    assert words.expected_words(Gain(low=2.3, best=2.45, high=2.6), 0.418) == (
        "2.3–2.6x   the step then takes 161–182 ms"
    )
    assert words.gain_words(Gain(low=1.101, best=1.104, high=1.104)) == "1.1x"


def test_an_expected_gain_without_a_range_says_one_time() -> None:
    even = Gain(low=1.2, best=1.2, high=1.2)
    assert words.expected_words(even, 0.024) == "1.2x   the step then takes 20.0 ms"


def test_what_comes_next_depends_on_what_is_known() -> None:
    def steps(one: DiagnoseReport) -> list[str]:
        return [f"{label}: {typed}" for label, _, typed in words.next_steps(one)]

    assert steps(told(own_arguments=("--fit", "2"))) == [
        "next: tfdyno diagnose train.py --fix --fit 2"
    ]
    kept = "--set input.prefetch=-1 --set input.parallel_calls=-1"
    assert steps(fixed()) == [
        f"apply: tfdyno train train.py {kept}", f"next: tfdyno diagnose train.py {kept}",
    ]  # fmt: skip
    assert steps(told(tried=True)) == []
    assert steps(told(only(LEAK))) == []
    assert steps(told(facts=replace(FACTS, source="profile"))) == []  # it cannot be run
    assert steps(told(look="tfdyno diagnose a.py")) == ["next: tfdyno diagnose a.py"]
    memory = replace(CACHE, expected_gain=None)
    assert steps(told(only(memory))) == []  # speed would not prove it


def test_a_loop_of_ones_own_is_not_sent_to_train() -> None:
    loop = replace(fixed(), facts=replace(FACTS, source="loop"))
    assert words.next_steps(loop)[0][2] == "tfdyno diagnose train.py --fix --resume --write fix"
    written = replace(loop, written=("fix/recipe.toml",))
    assert [label for label, _, _ in words.next_steps(written)] == ["next"]


def test_a_card_is_told_with_what_is_known_of_it() -> None:
    known = CardFacts(name="NVIDIA L4", busy_ratio=0.38, power_w=31.0, power_limit_w=72.0,
                      clock_hz=1.41e9, clock_limit_hz=2.04e9)  # fmt: skip
    said = "busy 38% of the time, 31 of 72 W, 1,410 of 2,040 MHz"
    assert words.card_rows((known, CardFacts(name="NVIDIA T4"))) == [("NVIDIA L4", said)]
    assert words.card_rows((CardFacts(busy_ratio=0.5),)) == [("GPU 0", "busy 50% of the time")]


def test_a_proof_is_told_with_all_that_it_rests_on() -> None:
    assert words.proof_words(PROOF) == (
        "proven",
        "2.41x (2.35–2.47, 99 %; 5 runs of each in turns, 418 ms -> 173 ms); same losses after "
        "16 steps (0.02 % apart, 0.1 % allowed: the same elements in the same order)",
    )


def test_a_fix_that_is_not_kept_says_why() -> None:
    label, said = words.proof_words(SLOWER)
    assert label == "tried"
    assert said.endswith("172 ms). It is not faster: the interval of 0.980–1.030 holds 1.")
    failed = replace(SLOWER, verdict=None, reason="It could not be measured: no.")
    assert words.proof_words(failed) == ("tried", "It could not be measured: no.")
    other = replace(AGREEMENT, agrees=False, difference_ratio=0.5, unchanged_ratio=0.02)
    wrong = replace(PROOF, kept=False, agreement=other, reason="But the losses do not agree.")
    assert words.proof_words(wrong)[1].endswith(
        "But the losses do not agree: other losses after 16 steps (50 % apart, 0.1 % allowed: "
        "without the change it is 2 % apart)."
    )


def test_a_proof_is_told_in_chinese_under_the_same_label() -> None:
    with speaking("zh"):
        assert words.proof_words(replace(PROOF, agreement=AGREEMENT)) == (
            "proven",
            "2.41 倍（2.35–2.47，99 %；两侧交替，每侧 5 次运行，418 ms -> 173 ms）；16 步后损失相同"
            "（相差 0.02 %，允许 0.1 %：the same elements in the same order）",
        )
        assert words.gain_words(Gain(low=2.3, best=2.5, high=2.6)) == "2.3–2.6 倍"


def test_losses_that_are_no_numbers_are_told_without_a_percentage() -> None:
    none = replace(AGREEMENT, agrees=False, difference_ratio=math.inf)
    assert "there is none, or one is no number" in words.agreement_words(none)


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(0.0, "(0 % apart"), (1e-7, "(under 0.001 % apart"), (0.0123, "(1.2 % apart"),
     (1e3, "(far apart")],
)  # fmt: skip
def test_a_tiny_difference_needs_no_powers_of_ten(ratio: float, said: str) -> None:
    assert said in words.agreement_words(replace(AGREEMENT, difference_ratio=ratio))


def test_a_command_keeps_the_words_of_the_script_behind_its_dashes() -> None:
    typed = words.command("train", "my train.py", ("--recipe", "r.toml", "--", "--lr", "0.1"),
                          {"input.prefetch": -1, "input.cache": True, "seed": None})  # fmt: skip
    assert shlex.split(typed) == [
        "tfdyno", "train", "my train.py", "--recipe", "r.toml", "--set", "input.prefetch=-1",
        "--set", "input.cache=true", "--set", "seed=none", "--", "--lr", "0.1",
    ]  # fmt: skip


def test_a_look_on_jax_says_so() -> None:
    seen = replace(FACTS, backend="jax", execution="xla")
    assert words.run_words(seen) == "batch 256, 60 steps, JAX, on 2 CPUs"
    eager = replace(seen, execution="eager")
    assert words.run_words(eager) == "batch 256, 60 steps, JAX, eager, on 2 CPUs"
