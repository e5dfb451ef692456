from __future__ import annotations

import json
import random
import re
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.ui.what_ifs import drawn

from tfdyno.cli.main import main
from tfdyno.cli.project import step_commands
from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.file import project_from
from tfdyno.core.project.step_command import option_words
from tfdyno.core.project.step_reference import filled
from tfdyno.core.recipe.recipe_file import read_recipe
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.project._check import shapes_of
from tfdyno.ui.recipe import project_answer, recipe_answer, recipe_of
from tfdyno.ui.settings import read_settings, run_words, step_words, workload_of

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Workload
    from tfdyno.ui.settings import Settings

PLAIN = {"workload": "keras:ResNet50", "gpu": "l4"}


def answer(**more: str) -> dict[str, Any]:
    return answer_of(read_settings({**PLAIN, **more}.items()))


def answer_of(asked: Settings) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(recipe_answer(asked, None))
    return found


def test_the_file_of_the_page_and_that_of_the_command_are_one_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    more = {"precision": "mixed_bfloat16", "execution": "graph", "batch_size": "64", "count": "4"}
    found = answer(**more)
    assert main(shlex.split(found["commands"]["write"])[1:]) == 0
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
    train = json.loads(recipe_answer(asked, given))["commands"]["train"]
    assert train == f"tfdyno train '{script}' --recipe recipe.toml --epochs 3 -- --lr 'a b'"
    step_commands.check_words(step_commands.shape_of("train"), shlex.split(train)[1:])


def test_a_workload_that_the_page_does_not_run_has_no_recipe() -> None:
    with pytest.raises(UsageError, match="the page does not run"):
        answer(workload="os:system")


def project(asked: Settings, given: Workload | None = None) -> dict[str, list[str]]:
    """Return what each step of the page's project types, checked as ``tfdyno run`` checks it."""
    text = json.loads(project_answer(asked, given))["toml"]
    found = project_from(tomllib.loads(text), Path("project.toml"))
    shapes = shapes_of(found, step_commands)
    typed = {}
    for step in found.steps:
        options = {
            name: filled(value, lambda name, _: pytest.fail(name))
            for name, value in step.options.items()
        }
        shape = shapes[step.name]
        assert shape is not None
        typed[step.name] = list(option_words(options, shape))
        step_commands.check_words(shape, typed[step.name])
    return typed


def meaning(words: list[str]) -> tuple[list[str], list[str]]:
    """Return options in any order, and what stands behind them."""
    at = words.index("--") if "--" in words else len(words)
    return sorted(words[:at]), words[at:]


def test_steps_of_a_project_ask_what_the_page_asked() -> None:
    draw = random.Random(27)
    for _ in range(200):
        asked = drawn(draw, workload="task:lstm")
        workload = workload_of(asked, None)
        try:
            typed = project(asked)
        except UsageError as refused:  # as no run can have the settings together
            with pytest.raises(UsageError, match=re.escape(str(refused))):
                recipe_of(asked)
            continue
        assert meaning(typed["estimate"]) == meaning(step_words(asked, workload)[1:])
        assert meaning(typed["advise"]) == meaning(run_words(asked, workload)[1:])
        assert typed["train"].count("--set") == len(tomllib.loads(answer_of(asked)["toml"]))


def test_a_script_has_its_arguments_in_each_step(tmp_path: Path) -> None:
    script = tmp_path / "my {model}.py"
    script.write_text("")
    given = parse_reference(str(script), script_arguments=("--lr", "a b", "{x}"), fit_number=2)
    asked = read_settings({"workload": str(script), "gpu": "l4", "epochs": "3"}.items())
    typed = project(asked, given)
    for words in typed.values():
        assert words[-4:] == ["--", "--lr", "a b", "{x}"]
        assert str(script) in words
    assert meaning(typed["estimate"]) == meaning(step_words(asked, given)[1:])
    assert typed["train"][:3] == ["train", "--epochs", "3"]


def test_a_step_function_has_its_shapes(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text("")
    shapes = ("float32[8,4]", "int32[8]")
    given = parse_reference(f"{tmp_path}/steps.py:step", input_spec=shapes)
    asked = read_settings({"workload": given.reference, "gpu": "l4"}.items())
    for words in project(asked, given).values():
        assert [words[at + 1] for at, one in enumerate(words) if one == "--input-spec"] == [*shapes]


def test_what_brings_no_data_is_not_trained() -> None:
    asked = read_settings(PLAIN.items())
    assert list(project(asked)) == ["estimate", "advise"]
    assert list(answer()["commands"]) == ["write"]
