"""words/memory/plan: the answer first, with its figures, its range and what stands behind it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.choices import option
from tests.memories import plan, planned, unfit

from tfdyno.words.memory.plan import (
    base_sentence,
    batch_words,
    changes_of,
    fit_cell,
    plan_headline,
    safe_sentence,
    shown_options,
    standing,
    weighed_words,
)

if TYPE_CHECKING:
    from tfdyno.core.choose.auto_recipe import Option


def test_the_headline_says_what_to_change_what_it_takes_and_what_it_costs() -> None:
    assert plan_headline(plan(), "T4") == (
        "Should fit T4 with mixed_float16 and batch 16 × 2: 1.8 of 2 GiB (1.4–2.2), unverified on "
        "a device, 1.04× [0.94–1.14] the time per sample."
    )


def test_what_fits_as_it_is_says_so_and_names_no_cost() -> None:
    own = planned(10.0, 0.5)
    found = plan(base=own, chosen=own, options=(own,), safe=None)
    assert plan_headline(found, "T4") == (
        "Fits T4 as it is: 0.5 of 2 GiB (0.40–0.60), unverified on a device."
    )
    assert base_sentence(found).startswith("As it is (float32, batch 32) it fits: 0.5 of 2 GiB")
    assert safe_sentence(found) == ""


def test_another_learning_is_said_in_the_answer() -> None:
    one = planned(9.0, 1.0, 0.9, optimizer="sgd", learns_differently=("optimizer",))
    assert "with optimizer sgd (changes what is learned): 1.0 of 2 GiB" in plan_headline(
        plan(chosen=one, options=(one,), safe=None), "T4"
    )


def test_where_nothing_fits_the_closest_is_named_with_what_it_lacks() -> None:
    assert plan_headline(unfit(), "T4") == (
        "Nothing that was weighed fits T4. The closest is recomputed blocks: 2.5 of 2 GiB "
        "(2–3), unverified on a device, 0.5 GiB too much."
    )


def test_the_safe_one_stands_beside_one_that_may_not_fit() -> None:
    said = safe_sentence(plan())
    assert said.startswith("Certain to fit, with all of its range: mixed_float16 and batch 8 × 4,")
    assert "1.10× [0.99–1.21]" in said
    assert base_sentence(plan()).startswith("As it is (float32, batch 32) it does not fit: 3.0")


def test_the_script_as_it_is_may_be_the_safe_or_the_closest_one() -> None:
    own = planned(10.0, 1.0)
    said = safe_sentence(plan(base=own, safe=own))
    assert said.startswith("Certain to fit, with all of its range: the script as it is, 1.0 of 2")
    large = planned(10.0, 3.0)
    alone = replace(unfit(), base=large, closest=large, weighed=1)
    assert "The closest is the script as it is: 3.0 of 2 GiB" in plan_headline(alone, "T4")
    assert weighed_words(alone) == "1 option was weighed"
    assert weighed_words(plan()) == "12 options were weighed"


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (option(), ["the script as it is"]),
        (option(precision="mixed_float16", accumulation=2, batch_size=16, remat="blocks",
                optimizer="lion"),
         ["mixed_float16", "batch 16 × 2", "recomputed blocks", "optimizer lion"]),
    ],
)  # fmt: skip
def test_changes_are_named_in_the_order_of_their_price(one: Option, words: list[str]) -> None:
    assert changes_of(one, option()) == words


@pytest.mark.parametrize(
    ("changes", "cell", "words"),
    [
        ({}, "yes", "unverified on a device"),
        ({"fits_surely": False}, "?", "unverified on a device"),
        ({"fits_surely": False, "memory_made_by": "exact"}, "?",
         "compiled, unverified on a device"),
        ({"fits_surely": False, "verified": True, "memory_made_by": "exact"}, "yes",
         "compiled at this very batch, unverified on a device"),
        ({"fits": False, "fits_surely": False}, "no", "unverified on a device"),
    ],
)  # fmt: skip
def test_a_cell_says_how_sure_the_fit_is(changes: dict[str, object], cell: str, words: str) -> None:
    one = replace(option(), **changes)  # type: ignore[arg-type]
    assert (fit_cell(one), standing(one)) == (cell, words)


def test_few_options_are_shown_but_never_without_the_chosen_and_the_safe_one() -> None:
    found = plan()
    more = tuple(planned(5.0 + n, 1.0) for n in range(5))
    long = replace(found, options=(*more, *found.options))
    shown = shown_options(long, 3)
    assert shown == [*more[:3], *found.options]
    assert batch_words(shown[-1].option) == "batch 8 × 4"
