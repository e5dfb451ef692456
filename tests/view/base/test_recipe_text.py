"""view/recipe_text: values with their units, recipes as their file, differences answer first."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace

from tests.choices import option

from tfdyno.core.base.codec import to_json
from tfdyno.core.choose.auto_recipe import AutoRecipe
from tfdyno.core.recipe.recipe import InputOptions, Recipe, flat, from_settings
from tfdyno.view.base.recipe_text import (
    auto_document,
    auto_text,
    auto_toml,
    diff_document,
    diff_text,
    recipe_document,
    recipe_text,
)

ONE = Recipe(precision="mixed_bfloat16", accumulation=4, input=InputOptions(prefetch=-1))
OTHER = Recipe(accumulation=1, memory_limit_bytes=3 << 30, seed=123456)


def test_the_shown_recipe_is_its_file() -> None:
    text = recipe_text(ONE, "r.toml")
    assert text.startswith(f"# r.toml: 3 settings (recipe {ONE.id}); the rest stays")
    assert from_settings(tomllib.loads(text)) == ONE
    assert recipe_text(Recipe(), "").startswith("# No settings (recipe ")
    assert max(map(len, recipe_text(ONE, "r.toml", full=True).splitlines())) <= 80
    dimmed = recipe_text(ONE, "", colour=True)
    assert dimmed.startswith("\x1b[2m# 3 settings")
    assert "\nprecision = " in dimmed


def test_the_difference_is_told_first_and_each_setting_has_a_line() -> None:
    lines = diff_text(("a.toml", "b.toml"), ONE, OTHER).splitlines()
    told = f"a.toml ({ONE.id}) and b.toml ({OTHER.id}) differ in 5 settings."
    assert lines[0] == told
    rows = {line.split()[0]: line for line in lines[3:]}
    assert list(rows) == ["precision", "accumulation", "memory_limit_bytes", "seed",
                          "input.prefetch"]  # fmt: skip
    assert rows["accumulation"].split() == ["accumulation", "4", "batches", "1", "batch"]


def test_recipes_that_are_the_same_are_said_to_be() -> None:
    text = diff_text(("a", "b"), ONE, ONE)
    assert text == f"a and b are the same recipe ({ONE.id})."


def test_json_has_every_setting_and_both_sides() -> None:
    document = recipe_document(ONE)
    assert document["settings"] == flat(ONE)
    assert document["set"] == ["precision", "accumulation", "input.prefetch"]
    found = diff_document(("a", "b"), ONE, OTHER)
    assert (found["same"], found["a"]) == (False, {"name": "a", "id": ONE.id})
    row = {"setting": "memory_limit_bytes", "a": 0, "b": 3 << 30, "unit": "bytes"}
    assert row in found["differences"]
    assert diff_document(("a", "b"), ONE, ONE)["same"]


CHOSEN = option(6.0, 1.5, precision="mixed_float16", replicas=2, batch_size=8, accumulation=2)
FOUND = AutoRecipe(
    recipe=Recipe(precision="mixed_float16", accumulation=2),
    reasons={"precision": "It is 40 % faster.", "accumulation": "It has to fit."},
    notes=("Planned for Tesla T4, not for this machine.",), target="2 x Tesla T4", gpu="t4",
    replicas=2, global_batch_size=32, chosen=CHOSEN, options=(CHOSEN, option(10.0, 3.0)),
)  # fmt: skip


def test_a_chosen_recipe_is_answered_first_and_every_line_has_its_reason() -> None:
    answer, settings, more, weighed, notes = auto_text(FOUND).split("\n\n")
    assert " ".join(answer.split()) == (
        "For 2 x Tesla T4: 2 settings; an update of 32 samples takes about 6 ms (4.8–7.2), in 1.5 "
        "of 2 GiB of each."
    )
    assert settings == '# It is 40 % faster.\nprecision = "mixed_float16"'
    assert more == "# It has to fit.\naccumulation = 2"
    rows = [line.split() for line in weighed.splitlines()]
    assert rows[1] == ["*", "mixed_float16", "xla", "2", "2", "x", "8", "6", "ms", "4.8–7.2", "1.5"]
    assert rows[2] == ["float32", "xla", "1", "32", "10", "ms", "8–12", "3.0,", "too", "much"]
    assert notes == "- Planned for Tesla T4, not for this machine."


def test_what_does_not_fit_without_remat_is_said_to() -> None:
    unfit = option(10.0, 3.0)
    text = auto_text(replace(FOUND, chosen=unfit, options=(unfit,), replicas=1))
    assert "if nothing is computed again, in 3.0 of 2 GiB." in " ".join(text.split())


def test_without_an_estimate_there_is_no_time() -> None:
    text = auto_text(replace(FOUND, chosen=None, options=(), target="the CPU of this machine"))
    assert text.startswith("For the CPU of this machine: 2 settings; nothing was estimated.\n\n#")


def test_the_file_of_a_chosen_recipe_reads_back_and_holds_the_reasons() -> None:
    text = auto_toml(FOUND)
    assert from_settings(tomllib.loads(text)) == FOUND.recipe
    assert "# Planned for Tesla T4, not for this machine.\n" in text
    assert "# It has to fit.\n" in text


def test_json_of_a_chosen_recipe_has_all_that_was_weighed() -> None:
    found = json.loads(to_json(auto_document(FOUND)))
    assert found["recipe"]["set"] == list(found["reasons"]) == ["precision", "accumulation"]
    assert found["chosen"] == found["options"][0]
    assert found["options"][1]["fits"] is False
