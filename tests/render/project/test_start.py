"""The file that a project begins with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tfdyno.cli.project import step_commands
from tfdyno.core.project.file import project_from
from tfdyno.jobs.project._check import shapes_of
from tfdyno.render.project.start import project_start, project_steps

TRAINED = ("advise", "train", "bench", "diagnose", "export", "keep", "serve")


def text(**given: object) -> str:
    return project_start(**{"name": "shop", "workload": "train.py", "trains": True, **given})  # type: ignore[arg-type]


def test_it_is_a_project_whose_commands_know_their_options() -> None:
    for trains in (True, False):
        project = project_from(tomllib.loads(text(trains=trains)), Path("project.toml"))
        assert shapes_of(project, step_commands)


def test_it_goes_from_the_choice_to_the_service() -> None:
    project = project_from(tomllib.loads(text()), Path("project.toml"))
    assert tuple(step.name for step in project.steps) == TRAINED


def test_a_trained_model_is_not_trained_again() -> None:
    found = tomllib.loads(text(trains=False, workload="a.keras"))["steps"]
    assert list(found) == ["advise", "export", "keep", "serve"]
    assert found["export"]["model"] == "a.keras"
    assert "run" not in found["keep"]


def test_what_is_proposed_in_comments_is_an_option_too() -> None:
    proposed = re.sub(r"^# ([\w-]+ = )", r"\1", text(), flags=re.M)
    assert proposed.count("\n") == text().count("\n")
    raw = tomllib.loads(proposed)
    assert raw["steps"]["export"]["max-accuracy-drop"] == "1%"
    assert shapes_of(project_from(raw, Path("project.toml")), step_commands)


def test_awkward_names_are_quoted() -> None:
    found = tomllib.loads(text(name="a", workload='my "best"/größe & <b>.py'))
    assert found["steps"]["train"]["workload"] == 'my "best"/größe & <b>.py'


def test_a_number_is_typed_again_as_it_was() -> None:
    words = ["estimate", "t.py", "--python", "3.10", "--usd-per-h", "0.25", "--batch-size", "64"]
    options = tomllib.loads(project_steps([words]))["steps"]["estimate"]
    assert [options[name] for name in ("python", "usd-per-h", "batch-size")] == ["3.10", 0.25, 64]
