"""store/tuning_study: what was told is there again, and what a kill left is asked again."""

from __future__ import annotations

import contextlib
import importlib.util
import sqlite3
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.measure.measurement import Environment
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.search_space import SearchSpace
from tfdyno.core.train.tuning import Trial
from tfdyno.store.tuning_study import (
    FILE,
    INSTALL,
    TuningStudy,
    check_optuna,
    has_begun,
    read_trials,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SPACE = SearchSpace(
    choices={
        "batch_size": (32, 64, 128),
        "input.cache": (False, True),
        "input.deterministic": (None, False),
        "precision": ("", "mixed_bfloat16"),
    }
)

PLACE = Environment(
    device="cpu", tensorflow="2.21.0", keras="3.15.1", python="3.11.7", tfdyno="0", system="Linux",
    host="here", cpu="a CPU", cpu_count=2, memory_bytes=1 << 33,
)  # fmt: skip


def study(folder: Path, seed: int = 0) -> TuningStudy:
    return TuningStudy(folder, seed=seed)


def told(one: TuningStudy, status: str, rate: float = 0.0) -> Trial:
    number, values = one.ask(SPACE)
    trial = Trial(number=number, recipe=Recipe(), values=values, status=status,  # type: ignore[arg-type]
                  samples_per_s=rate)  # fmt: skip
    one.tell(trial)
    return trial


def test_what_was_told_is_there_again(tmp_path: Path) -> None:
    first = study(tmp_path)
    assert not has_begun(tmp_path)
    first.begin("a question", SPACE, PLACE)
    assert has_begun(tmp_path)
    kept = [told(first, "measured", 10.0), told(first, "pruned", 5.0), told(first, "failed"),
            told(first, "not_fit"), told(first, "hopeless"), told(first, "same", 10.0)]  # fmt: skip
    again = study(tmp_path)
    assert list(again.trials()) == kept
    assert again.request == "a question"
    assert again.space == SPACE
    assert again.place == PLACE
    assert again.left_running() == ()


def test_trials_of_a_study_that_runs_are_read_beside_it(tmp_path: Path) -> None:
    assert read_trials(tmp_path) == ()
    (tmp_path / FILE).write_bytes(b"")
    assert read_trials(tmp_path) == ()
    (tmp_path / FILE).unlink()
    first = study(tmp_path)
    kept = [told(first, "measured", 10.0), told(first, "pruned", 5.0)]
    first.ask(SPACE)  # it runs now
    before = (tmp_path / FILE).read_bytes()
    assert list(read_trials(tmp_path)) == kept
    assert (tmp_path / FILE).read_bytes() == before
    assert told(first, "measured", 20.0) in read_trials(tmp_path)


def test_values_are_of_the_space_and_keep_their_types(tmp_path: Path) -> None:
    one = study(tmp_path)
    for _ in range(12):
        assert SPACE.holds(told(one, "measured", 1.0).values)


def test_what_a_kill_left_running_is_given_back_once(tmp_path: Path) -> None:
    first = study(tmp_path)
    told(first, "measured", 10.0)
    _, values = first.ask(SPACE)
    again = study(tmp_path)
    assert again.left_running() == (values,)
    assert again.left_running() == ()
    assert again.ask(SPACE)[1] == values


def test_a_second_kill_while_it_is_given_back_loses_nothing_and_asks_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = study(tmp_path)
    _, values = first.ask(SPACE)
    killed = study(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(killed._study, "tell", lambda *_a, **_k: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            killed.left_running()
    again = study(tmp_path)
    assert again.left_running() == (values,)
    assert again.ask(SPACE)[1] == values
    one, other = again.ask(SPACE), again.ask(SPACE)
    assert not one[1] == other[1] == values  # it waited once


def test_a_trial_whose_node_is_lost_is_asked_for_again(tmp_path: Path) -> None:
    one = study(tmp_path)
    number, values = one.ask(SPACE)
    one.give_back(number)
    again, same = one.ask(SPACE)
    assert (again, same) == (number + 1, values)
    assert study(tmp_path).left_running() == (values,)  # the lost one is not among them


def test_an_answer_that_was_stored_before_a_kill_is_not_lost(tmp_path: Path) -> None:
    first = study(tmp_path)
    number, values = first.ask(SPACE)
    first.report(number, 1, 9.0)
    trial = Trial(number=number, recipe=Recipe(), values=values, status="measured",
                  samples_per_s=9.0)  # fmt: skip
    first.note(trial)  # and killed before it was told
    again = study(tmp_path)
    assert again.left_running() == ()
    assert again.trials() == (trial,)


def test_a_run_that_is_reported_twice_is_no_trouble(tmp_path: Path) -> None:
    one = study(tmp_path)
    number, _ = one.ask(SPACE)
    one.report(number, 1, 9.0)
    one.report(number, 1, 9.5)


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("not a database, but long enough to be looked at " * 50)
    with pytest.raises(UsageError, match="cannot be used as a study"):
        study(tmp_path)


def test_a_database_that_fails_midway_is_one_sentence(tmp_path: Path) -> None:
    one = study(tmp_path)
    told(one, "measured", 1.0)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute("DROP TABLE trial_user_attributes")
        database.commit()
    with pytest.raises(ToolError, match="the study cannot be used: no such table"):
        told(one, "measured", 1.0)


def test_a_database_that_another_process_holds_is_a_sentence_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfdyno.store.tuning_study._PATIENCE_S", 0.05)
    one = study(tmp_path)
    one.begin("a question", SPACE, PLACE)
    told(one, "measured", 1.0)
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute("BEGIN EXCLUSIVE")
        ways: tuple[Callable[[], object], ...] = (
            lambda: one.request, lambda: one.space, lambda: one.place, one.trials,
            one.left_running, lambda: one.ask(SPACE), lambda: study(tmp_path),
        )  # fmt: skip
        for way in ways:
            with pytest.raises(ToolError, match="is locked: another process"):
                way()
    assert one.request == "a question"


def test_what_is_no_study_has_not_begun(tmp_path: Path) -> None:
    assert not has_begun(tmp_path)
    (tmp_path / FILE).write_text("not a database" * 99)
    assert not has_begun(tmp_path)
    (tmp_path / FILE).unlink()
    study(tmp_path)
    assert not has_begun(tmp_path)


def test_without_optuna_the_command_that_installs_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(UsageError) as caught:
        check_optuna()
    assert INSTALL in str(caught.value)
    assert caught.value.exit_code == 2
