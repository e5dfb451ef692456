"""core/recipe_words: every setting has a sentence, and nothing else has."""

from __future__ import annotations

from tfdyno.core.recipe.recipe import Recipe, flat
from tfdyno.core.recipe.recipe_words import MEANINGS, UNITS


def test_every_setting_has_a_sentence_and_no_other_name_has() -> None:
    assert list(MEANINGS) == list(flat(Recipe()))
    assert all(said.endswith(".") and "\n" not in said for said in MEANINGS.values())


def test_units_belong_to_whole_numbers() -> None:
    settings = flat(Recipe())
    assert {type(settings[name]) for name in UNITS} == {int}
