from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.project.file import project_from

if TYPE_CHECKING:
    from tfdyno.core.project.project import Project

FILE = Path("work/project.toml")
WITH = 'steps.a = {command = "python a.py", x = %s}'


def read(text: str) -> Project:
    return project_from(tomllib.loads(text), FILE)


def test_a_step_has_its_commands_options_and_no_keys_of_ours() -> None:
    project = read("""
        [project]
        name = "digits"
        store = "models"
        [steps.train]
        command = "train"
        workload = "train.py"
        epochs = 5
        inputs = ["digits.csv"]
        set = ["seed=1", "precision=mixed_bfloat16"]
    """)
    (step,) = project.steps
    assert (project.name, project.store, project.file) == ("digits", "models", FILE)
    assert step.options == {
        "workload": "train.py", "epochs": 5, "set": ["seed=1", "precision=mixed_bfloat16"],
    }  # fmt: skip
    assert step.inputs == ("digits.csv",)
    assert step.needs == ()


def test_a_reference_makes_a_step_come_first_as_needs_does() -> None:
    project = read("""
        steps.serve = {command = "serve", model = "{keep.id}", needs = ["look"]}
        steps.keep = {command = "models add", path = "{train.model}"}
        steps.train = {command = "train", workload = "train.py"}
        steps.look = {command = "doctor"}
    """)
    assert [step.name for step in project.steps] == ["train", "keep", "look", "serve"]
    assert project.steps[-1].needs == ("look", "keep")


def test_a_reference_in_a_load_counts_and_the_own_folder_does_not() -> None:
    project = read("""
        [steps.serve]
        command = "serve"
        model = "{output}/x"
        [steps.serve.load]
        data = "{rows}/rows.npz"
        [steps.rows]
        command = "python rows.py"
    """)
    assert project.steps[-1].needs == ("rows",)
    assert project.steps[-1].load == {"data": "{rows}/rows.npz"}


def test_a_project_without_a_name_is_called_as_its_folder() -> None:
    assert read('steps.a = {command = "doctor"}').name == "work"
    other = FILE.with_name("nightly.toml")  # in the same folder: it is no second "work"
    assert project_from({"steps": {"a": {"command": "doctor"}}}, other).name == "work-nightly"


def test_only_a_diagnosis_finds_without_failing_unless_the_file_says_so() -> None:
    project = read("""
        steps.a = {command = "diagnose"}
        steps.b = {command = "doctor"}
        steps.c = {command = "doctor", allow-findings = true}
        steps.d = {command = "diagnose", allow_findings = false}
    """)
    assert [step.allow_findings for step in project.steps] == [True, False, True, False]
    assert all(step.options == {} for step in project.steps)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no steps; write a table [steps.NAME]"),
        ("stesp.a = {}", "has a key stesp that tfdyno does not know; did you mean steps?"),
        ('project.nmae = "x"', "[project] has a key nmae that tfdyno does not know; did you mean"),
        ('project = "x"', "[project] is no table: it is 'x'"),
        ("steps = 3", "[steps] is no table: it is 3"),
        ('steps.train = "train.py"', "[steps.train] is no table: it is 'train.py'"),
        ("steps.train = {}", '[steps.train] has no command; write command = "train"'),
        ("steps.a = {command = 3}", "command of [steps.a] is no text: it is 3"),
        ('steps."a/b" = {command = "x"}', "a step cannot be called 'a/b': it names a folder"),
        ('steps.output = {command = "x"}', "a step cannot be called 'output': it means"),
        ('steps.a = {command = "x", needs = "b"}', "needs of [steps.a] is no list of names"),
        ('steps.a = {command = "x", inputs = [3]}', "inputs of [steps.a] is no list of names"),
        ('steps.a = {command = "x", allow-findings = 1}', "is neither true nor false"),
        ('steps.a = {command = "train", load = {clients = 1}}', "only a step that serves takes"),
        ('steps.a = {command = "serve", load = 3}', "[steps.a.load] is no table"),
        (
            'steps.train = {command = "x"}\nsteps.b = {command = "x", model = "{trian}/m"}',
            "step b names a step trian that is not there; did you mean train?",
        ),
        ('steps.b = {command = "x", needs = ["c"]}', "names a step c that is not there"),
        (
            'steps.a = {command = "x", p = "{b}"}\nsteps.b = {command = "x", needs = ["a"]}',
            "the steps a → b → a need one another",
        ),
    ],
)
def test_a_wrong_file_is_one_sentence_with_its_remedy(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read(text)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('steps.a = {command = "doctor", code = "a\\u0000b"}', "has a NUL in it: behind 'a'"),
        ('project.store = "\\u0000"\nsteps.a = {command = "doctor"}', "[project] has a NUL in it"),
        ('steps.%s = {command = "doctor"}' % ("a" * 300), "called aaaaaaaaaaaaaaaaaaaa…: its name"),
        ('[steps.a]\ncommand = "python a.py"\n"" = "x"', "'' of [steps.a] is no name of an option"),
        ('[steps.a]\ncommand = "python a.py"\n"--x" = "x"', "'--x' of [steps.a] is no name"),
        ('[steps.a]\ncommand = "python a.py"\n"a=b" = "x"', "'a=b' of [steps.a] is no name"),
        (
            WITH % '"{output.model}"',
            "{output.model} of step a names nothing: {output} is the step's folder",
        ),
    ],
    ids=lambda one: one[:20],
)  # fmt: skip
def test_what_no_command_takes_is_refused_as_it_is_read(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read(text)
    assert said in str(error.value)
    assert len(str(error.value)) < 300
