"""words/train/tune: the answer in one sentence, and what changes with the batch."""

from __future__ import annotations

from dataclasses import replace

from tests.view.tunings import CHANGED, PROOF, QUICK, START, TOLD

from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.words.train.tune import (
    batch_warning,
    changes_words,
    count_words,
    headline,
    losses_warning,
)


def test_a_proven_recipe_leads_with_its_gain() -> None:
    assert headline(TOLD) == (
        "1.80x as fast with execution=graph, steps_per_execution=8 "
        "(1.70–1.90 at 99%, measured in turns)."
    )


def test_what_is_not_proven_leaves_the_start() -> None:
    told = replace(TOLD, proof=replace(PROOF, kept=False), recipe=Recipe())
    assert headline(told).startswith("The starting recipe stays: ")
    assert headline(replace(told, best=0, proof=None)) == (
        "The starting recipe is the fastest of 3 trials."
    )


def test_what_was_stopped_is_not_called_proven() -> None:
    told = replace(TOLD, proof=None, recipe=Recipe(), ended="stopped")
    assert headline(told).startswith("The fastest so far is ")
    assert "not proven yet" in headline(told)


def test_without_a_measured_trial_there_is_no_answer() -> None:
    assert headline(replace(TOLD, best=None)) == "No trial could be measured to its end."


def test_a_larger_batch_is_told_with_both_numbers() -> None:
    assert "from 32 to 128 samples" in batch_warning(CHANGED)
    assert batch_warning(TOLD) == ""
    assert batch_warning(replace(CHANGED, best=None)) == ""


def test_a_setting_that_is_the_scripts_again_reads_own() -> None:
    one = replace(START, changes={"precision": ""})
    assert changes_words(one) == "precision=own"
    assert changes_words(START) == "the start"
    assert changes_words(QUICK) == "execution=graph, steps_per_execution=8"


def test_counts_name_each_end_and_what_is_left() -> None:
    assert count_words(TOLD) == (
        "2 measured, 1 ended early, surely slower, 1 does not fit, 1 same as another; "
        "8 of 12 combinations were not tried"
    )


def test_a_plan_says_that_nothing_was_measured() -> None:
    planned = replace(TOLD, planned_for="L4", trials=(replace(START, status="planned"),))
    assert headline(planned) == "Planned for L4, not measured: 1 of 1 trial would be run."


def test_a_start_that_does_not_fit_is_said() -> None:
    small = from_settings({"batch_size": "16", "accumulation": "2"})
    fits = replace(QUICK, recipe=small, changes={"batch_size": "16", "accumulation": "2"})
    told = replace(TOLD, proof=None, recipe=small, best=1,
                   trials=(replace(START, status="not_fit"), fits))  # fmt: skip
    assert headline(told).endswith("the start does not fit.")


def test_losses_that_were_not_compared_are_told_with_the_answer_alone() -> None:
    alone = replace(TOLD, uncompared="it brings no data")
    assert losses_warning(alone) == (
        "Only the speed was compared, not the losses: it brings no data."
    )
    assert losses_warning(TOLD) == ""
    assert losses_warning(replace(alone, recipe=Recipe())) == ""
    assert losses_warning(replace(CHANGED, uncompared="it brings no data")) == ""
