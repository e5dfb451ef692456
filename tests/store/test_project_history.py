"""store.project_history: runs of a project, as a whole or not at all."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.codec import to_json
from tfdyno.core.project.output import Made
from tfdyno.core.project.project import ProjectRun, StepRun
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


def test_a_run_that_is_removed_is_forgotten(tmp_path: Path) -> None:
    history = ProjectHistory(folder=tmp_path)
    history.write(RUN)
    history.write(replace(RUN, id="b2", steps=(DATA,)))
    history.remove(("a1",))
    assert [one.id for one in history.runs()] == ["b2"]


def make(history: ProjectHistory, step: StepRun, text: bytes) -> None:
    history.output(step).mkdir(parents=True, exist_ok=True)
    (history.output(step) / "document.json").write_bytes(text)
    made = Made(step=step.step, key=step.key, stamp=step.stamp)
    (history.output(step) / "made.json").write_bytes(to_json(made))


def test_what_a_step_printed_is_kept_by_its_making_and_goes_with_the_last_run_of_it(
    tmp_path: Path,
) -> None:
    history = ProjectHistory(folder=tmp_path)
    first = replace(TRAIN, status="finished", stamp="s1")
    make(history, first, b'{"n": 1}')
    history.write(replace(RUN, steps=(first,)))
    again = replace(first, stamp="s2")
    assert history.document(again) is None
    make(history, again, b'{"n": 2}')
    history.write(replace(RUN, id="b2", steps=(first,)))  # of a making that is gone by now
    history.write(replace(RUN, id="c3", steps=(again,)))
    assert (history.document(first), history.document(again)) == (b'{"n": 1}', b'{"n": 2}')
    shutil.rmtree(history.output(first))
    assert history.document(first) == b'{"n": 1}'
    history.remove(("a1",))
    assert history.document(first) == b'{"n": 1}'
    history.remove(("b2",))
    assert (history.document(first), history.document(again)) == (None, b'{"n": 2}')


def test_a_document_that_is_too_large_lies_in_its_output_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfdyno.store.project_history.MOST_BYTES", 7)
    history = ProjectHistory(folder=tmp_path)
    step = replace(TRAIN, status="finished", stamp="s1")
    make(history, step, b'{"n": 1}')
    history.write(replace(RUN, steps=(step,)))
    assert history.document(step) is None
