from __future__ import annotations

import json
import shlex
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.cli.main import main
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe_file import read_recipe
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.ui.recipe import recipe_answer, recipe_of
from tfdyno.ui.settings import read_settings

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = {"workload": "keras:ResNet50", "gpu": "l4"}


def answer(**more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        recipe_answer(read_settings({**PLAIN, **more}.items()), None)
    )
    return found


def test_the_file_of_the_page_and_that_of_the_command_are_one_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    more = {"precision": "mixed_bfloat16", "execution": "graph", "batch_size": "64", "count": "4"}
    found = answer(**more)
    assert main(shlex.split(found["write"])[1:]) == 0
    assert (tmp_path / "recipe.toml").read_text() == found["toml"]
    assert read_recipe(tmp_path / "recipe.toml") == recipe_of(
        read_settings({**PLAIN, **more}.items())
    )
    assert tomllib.loads(found["toml"]) == {
        "precision": "mixed_bfloat16", "execution": "graph", "batch_size": 64,
        "strategy": "mirrored", "devices": 4,
    }  # fmt: skip


def test_what_is_left_to_the_script_is_not_in_it() -> None:
    assert tomllib.loads(answer()["toml"]) == {}


def test_what_no_recipe_has_is_named() -> None:
    assert answer()["left_out"] == ["gpu", "offers"]
    more = {"samples": "9", "usd_per_h": "2", "offers": "every", "epochs": "3"}
    assert answer(**more)["left_out"] == ["gpu", "samples", "usd_per_h"]


def test_the_training_has_the_epochs_and_the_arguments_of_the_script(tmp_path: Path) -> None:
    script = tmp_path / "my model.py"
    script.write_text("")
    given = parse_reference(str(script), script_arguments=("--lr", "a b"), fit_number=2)
    asked = read_settings({"workload": str(script), "gpu": "l4", "epochs": "3"}.items())
    assert json.loads(recipe_answer(asked, given))["train"] == (
        f"tfdyno train '{script}' --recipe recipe.toml --epochs 3 --fit 2 -- --lr 'a b'"
    )


def test_a_workload_that_the_page_does_not_run_has_no_recipe() -> None:
    with pytest.raises(UsageError, match="the page does not run"):
        answer(workload="os:system")
