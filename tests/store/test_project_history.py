"""store.project_history: runs of a project, as a whole or not at all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.errors import UsageError
from tfdyno.core.project import ProjectRun, StepRun
from tfdyno.store.project_history import ProjectHistory

if TYPE_CHECKING:
    from pathlib import Path

DATA = StepRun(step="data", command="data convert", status="finished", output="outputs/data-1")
TRAIN = StepRun(step="train", command="train", key="ab", rests_on={"step data": "cd"},
                words=("tfdyno", "train"), output="outputs/train-1", duration_s=2.5)  # fmt: skip
RUN = ProjectRun(id="a1", project="digits", steps=(DATA, TRAIN))


def test_a_run_is_read_as_it_was_written_and_the_newest_comes_first(tmp_path: Path) -> None:
    history = ProjectHistory(folder=tmp_path)
    assert history.runs() == ()
    history.write(RUN)
    history.write(later := replace(RUN, id="b2", steps=(TRAIN,)))
    assert history.runs() == (later, RUN)
    assert history.run() == later
    assert history.run("a") == RUN


def test_a_run_that_goes_on_replaces_how_it_stood(tmp_path: Path) -> None:
    history = ProjectHistory(folder=tmp_path)
    history.write(replace(RUN, steps=()))
    history.write(done := replace(RUN, status="finished", steps=(DATA,)))
    assert history.runs() == (done,)


def test_two_steps_of_one_name_are_refused_and_change_nothing(tmp_path: Path) -> None:
    history = ProjectHistory(folder=tmp_path)
    history.write(RUN)
    with pytest.raises(Exception, match="cannot be used"):
        history.write(replace(RUN, status="finished", steps=(DATA, DATA)))
    assert history.runs() == (RUN,)


def test_an_unknown_or_ambiguous_run_is_named(tmp_path: Path) -> None:
    history = ProjectHistory(folder=tmp_path)
    with pytest.raises(UsageError, match="holds no run"):
        history.run()
    history.write(RUN)
    history.write(replace(RUN, id="a2"))
    with pytest.raises(UsageError, match="several: a2, a1"):
        history.run("a")
    with pytest.raises(UsageError, match="no run zz"):
        history.run("zz")


def test_removing_a_run_names_the_outputs_that_nobody_else_has(tmp_path: Path) -> None:
    history = ProjectHistory(folder=tmp_path)
    history.write(RUN)
    history.write(replace(RUN, id="b2", steps=(DATA,)))
    assert history.remove(("a1",)) == ("outputs/train-1",)
    assert [one.id for one in history.runs()] == ["b2"]
    assert history.remove(("b2",)) == ("outputs/data-1",)
