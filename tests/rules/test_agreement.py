"""rules/agreement: when two trainings learned the same."""

from __future__ import annotations

import math
import re

import pytest

from tfdyno.rules.agreement import Tolerance, agreement, difference_ratio, tolerance
from tfdyno.words.base.language import speaking

STRICT = Tolerance(ratio=0.001, why="the same steps")


@pytest.mark.parametrize(
    ("settings", "ratio"),
    [
        (["input.parallel_calls"], 0.001),
        (["input.deterministic"], 0.1),
        (["steps_per_execution"], 0.001),
        (["threads_intra"], 0.001),  # of all others
        (["precision"], 0.05),
        (["input.prefetch", "precision"], 0.05),  # the widest counts
        (["batch_size", "execution"], 0.1),
        ([], 0.001),
    ],
)
def test_the_tolerance_is_that_of_the_setting_that_changes_most(
    settings: list[str], ratio: float
) -> None:
    assert tolerance(settings).ratio == ratio
    assert tolerance(settings).why.isascii()
    with speaking("zh"):
        assert re.search("[\u4e00-\u9fff]", tolerance(settings).why)


def test_the_difference_is_the_largest_of_all_epochs() -> None:
    # |2 - 1.9| / 2 = 0.05; |1 - 0.98| / 1 = 0.02
    assert difference_ratio([2.0, 1.0], [1.9, 0.98]) == pytest.approx(0.05)
    assert difference_ratio([0.0], [0.0]) == 0.0
    assert difference_ratio([-2.0], [-1.9]) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("one", "other"),
    [([], []), ([1.0], [1.0, 2.0]), ([math.nan], [math.nan]), ([1.0], [math.inf])],
)
def test_what_cannot_be_compared_never_agrees(one: list[float], other: list[float]) -> None:
    assert difference_ratio(one, other) == math.inf
    assert not agreement(one, other, STRICT).agrees


def test_losses_agree_up_to_the_tolerance() -> None:
    near = agreement([1.0], [0.9995], STRICT, steps=16)
    assert (near.agrees, near.values, near.steps, near.why) == (True, 1, 16, "the same steps")
    assert not agreement([1.0], [0.99], STRICT).agrees


def test_a_training_that_does_not_repeat_itself_is_held_to_what_it_does_by_itself() -> None:
    # 1.0 and 0.98 differ by 2 %, so that 4 % are allowed: 0.97 agrees, 0.95 does not.
    noisy = agreement([1.0], [0.97], STRICT, again=[0.98])
    assert noisy.agrees
    assert noisy.unchanged_ratio == pytest.approx(0.02)
    assert noisy.tolerance_ratio == pytest.approx(0.04)
    assert not agreement([1.0], [0.95], STRICT, again=[0.98]).agrees


def test_a_second_run_that_failed_to_learn_allows_nothing_more() -> None:
    assert agreement([1.0], [0.99], STRICT, again=[math.nan]).tolerance_ratio == 0.001
