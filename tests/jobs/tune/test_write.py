"""jobs/tune_write: the recipe once it is the answer, all trials as JSON at any time."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.view.tunings import CHANGED, TOLD

from tfdyno.core.recipe.recipe_file import read_recipe
from tfdyno.jobs.tune.write import written

if TYPE_CHECKING:
    from pathlib import Path


def test_the_recipe_is_read_back_with_what_was_proven_above_it(tmp_path: Path) -> None:
    files = written(tmp_path, TOLD)
    assert [one.name for one in files] == ["tuning.json", "recipe.toml"]
    assert read_recipe(tmp_path) == TOLD.recipe
    assert "1.80x as fast" in " ".join((tmp_path / "recipe.toml").read_text().split())
    found = json.loads((tmp_path / "tuning.json").read_text())
    assert found["folder"] == str(tmp_path)
    assert found["made_at"].startswith("20")


def test_a_changed_batch_is_said_in_the_recipe_itself(tmp_path: Path) -> None:
    written(tmp_path, CHANGED)
    text = " ".join((tmp_path / "recipe.toml").read_text().replace("# ", "").split())
    assert "changes the batch of an update from 32 to 128 samples" in text


def test_losses_that_were_not_compared_are_said_in_the_recipe_itself(tmp_path: Path) -> None:
    written(tmp_path, replace(TOLD, uncompared="keras:MobileNetV2 brings no data"))
    text = " ".join((tmp_path / "recipe.toml").read_text().replace("# ", "").split())
    assert "not the losses: keras:MobileNetV2 brings no data." in text


def test_what_was_stopped_or_planned_leaves_no_recipe(tmp_path: Path) -> None:
    for told in (replace(TOLD, ended="stopped"), replace(TOLD, planned_for="L4")):
        assert [one.name for one in written(tmp_path, told)] == ["tuning.json"]
