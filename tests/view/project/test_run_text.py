from __future__ import annotations

from pathlib import Path

import pytest

from tfdyno.core.project.project import FIRST, Project, ProjectRun, StepRun
from tfdyno.view.project.run_text import ended_words, run_text, start_text, time_words


def step(name: str, status: str, **more: object) -> StepRun:
    given = {"output": f"outputs/{name}-00", "duration_s": 2.04, **more}
    return StepRun(step=name, command="train", status=status, **given)  # type: ignore[arg-type]


def told(*steps: StepRun, **more: object) -> str:
    run = ProjectRun(id="1", project="digits", steps=steps)
    return run_text(run, folder=Path("here"), **more)  # type: ignore[arg-type]


def test_a_run_is_headline_table_reasons_and_places() -> None:
    text = told(
        step("data", "reused", duration_s=0.01),
        step("train", "finished", headline="accuracy 0.9", why="train.py changed"),
    )
    assert text.splitlines() == [
        "digits: 1 step run, 1 reused.",
        "",
        "step   status   time  answer",
        "data   reused  0.0 s",
        "train  done    2.0 s  accuracy 0.9",
        "",
        "Ran again because",
        "  train  train.py changed",
        "",
        "Outputs",
        "  data   here/tfdyno-project/outputs/data-00",
        "  train  here/tfdyno-project/outputs/train-00",
    ]


def test_a_failure_tells_its_error_its_log_and_what_is_next() -> None:
    text = told(step("train", "failed", error="step train ended with exit code 3.", why="new"))
    assert text.startswith("digits: step train failed.")
    assert "step train ended with exit code 3.\n" in text
    assert "Its log: here/tfdyno-project/outputs/train-00.part/step.log" in text
    assert "Outputs" not in text


def test_a_first_run_needs_no_reason() -> None:
    assert "because" not in told(step("train", "finished", why=FIRST))


def test_no_line_is_wider_than_the_screen_though_an_answer_is() -> None:
    text = told(step("train", "reused", headline="word " * 60), width=60)
    assert max(map(len, text.splitlines())) <= 60


def test_what_would_run_is_told_without_times() -> None:
    text = told(step("a", "running", why="x changed"), step("b", "reused"), dry=True)
    assert text.splitlines() == [
        "digits: 1 step of 2 would run.",
        "",
        "step  status     why",
        "a     would run  x changed",
        "b     reused",
    ]


@pytest.mark.parametrize(
    ("duration_s", "words"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (34.4, "34 s"), (59.7, "1 min 0 s"), (320.0, "5 min 20 s"),
     (7500.0, "2 h 5 min")],
)  # fmt: skip
def test_times_are_in_the_unit_that_a_person_takes(duration_s: float, words: str) -> None:
    assert time_words(duration_s) == words


def test_a_steps_end_is_one_line() -> None:
    assert ended_words(step("a", "finished", headline="good")) == "a: done in 2.0 s: good"
    assert ended_words(step("a", "failed", error="no.")) == "a: failed in 2.0 s: no."
    assert ended_words(step("a", "stopped")) == "a: stopped in 2.0 s"


@pytest.mark.parametrize(("file", "typed"), [("project.toml", ""), ("a b.toml", " 'a b.toml'")])
def test_a_new_project_says_what_to_type_next(file: str, typed: str) -> None:
    project = Project(file=Path(file), name="shop", steps=())
    assert [line.split(maxsplit=1)[1] for line in start_text(project).splitlines()[-2:]] == [
        f"tfdyno run{typed} --dry-run",
        f"tfdyno run{typed}",
    ]
