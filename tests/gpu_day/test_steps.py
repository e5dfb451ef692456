"""gpu_day/steps: what is planned can be run, and an answer that is missing is no pass."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpu_day import steps
from gpu_day.command import run
from gpu_day.day import MODEL, TIMED, Day
from gpu_day.host import ROOT
from gpu_day.verdict import Check

if TYPE_CHECKING:
    from gpu_day.command import Done


def ended(folder: Path, code: str, limit_s: float = 30.0) -> Done:
    return run([sys.executable, "-c", code], place=folder / "x", environment=dict(os.environ),
               cwd=folder, limit_s=limit_s)  # fmt: skip


def judge(told: dict[str, object]) -> list[Check]:
    return [Check(what="a", found=str(told["a"]), wanted="1", ok=told["a"] == 1)]


@pytest.mark.parametrize(
    ("code", "status", "why"),
    [
        ("print('{\"a\": 1}')", "passed", ""),
        ("print('{\"a\": 2}')", "failed", "a: 2, wanted 1"),
        ("import sys; sys.exit('tfdyno: no room.')", "failed", "tfdyno: no room. (exit code 1)"),
        ("import os; os.abort()", "failed", "was ended by signal 6"),
        ("print('nothing that is JSON')", "failed", "(exit code 0)"),
    ],
)
def test_an_answer_is_judged_and_the_lack_of_one_is_told(
    tmp_path: Path, code: str, status: str, why: str
) -> None:
    told = steps._of(ended(tmp_path, code), judge)
    assert (told.status, why in told.why) == (status, True)


def test_what_time_cut_short_is_not_run_unless_its_answer_passes(tmp_path: Path) -> None:
    slow = "import time\ntry:\n time.sleep(60)\nexcept KeyboardInterrupt:\n {}"
    assert steps._of(ended(tmp_path, slow.format("pass"), 1.0), judge).status == "not run"
    partial = "print('{{\"a\": {}}}')"
    told = steps._of(ended(tmp_path, slow.format(partial.format(1)), 1.0), judge)
    assert told.status == "passed"
    told = steps._of(ended(tmp_path, slow.format(partial.format(2)), 1.0), judge)
    assert (told.status, told.why) == ("not run", "its time was up (a: 2, wanted 1)")


def test_eight_planted_scripts_are_there_each_with_its_cause() -> None:
    names = [one.name.partition(":")[2] for one in steps.planned() if ":" in one.name]
    assert len(names) == 8
    classes = {steps._case(ROOT, name)["class"] for name in names}
    assert {"input", "host", "launch", "callback", "retrace", "leak"} == classes
    assert set(steps.XLA_SCRIPTS) <= set(names)
    assert all((ROOT / steps.PLANTED / f"{name}.py").is_file() for name in names)


def test_what_leaves_most_comes_first_and_names_are_unique() -> None:
    names = [one.name for one in steps.planned()]
    assert len(set(names)) == len(names)
    assert names[:2] == ["doctor", "train"]
    assert names.index("train") < names.index("export") < names.index("serve")
    assert all(one.least_s < one.limit_s for one in steps.planned())


def test_what_is_timed_runs_alone_and_what_needs_a_model_after_it() -> None:
    beside = {one.name: one.beside for one in steps.planned()}
    timed = ("estimate", "calibrate", "truth", "alike", "tune", "setting")
    assert {beside[one] for one in timed} == {0}
    assert beside["train"] < beside["export"] == beside["serve"]


def test_tests_for_a_card_are_found_by_their_mark() -> None:
    found = [Path(one).relative_to(ROOT).as_posix() for one in steps.marked_files(ROOT)]
    assert "tests/probe/holders/test_cards.py" in found
    assert "tests/probe/cards/test_cards.py" not in found


def test_the_newest_checkpoint_is_that_of_the_latest_step(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    assert steps._newest(tmp_path) == 0
    for name in ("step-000000004.json", "step-000000016.json", "step-000000032.npz"):
        (tmp_path / "checkpoints" / name).touch()
    assert steps._newest(tmp_path) == 16


def test_without_a_trained_model_there_is_nothing_to_export_or_to_serve(tmp_path: Path) -> None:
    day = Day(out=tmp_path, environment={}, card=None, end_s=time.monotonic() + 60.0)
    day = day.begin("export", 60.0)
    for one in (steps.export, steps.serve):
        assert (one(day).status, "the step train has not ended" in one(day).why) == (
            "skipped",
            True,
        )
    assert steps.estimate(day).status == "skipped"
    assert steps.tests(day).status == "skipped"


def test_the_models_of_the_day_are_ordinary_scripts() -> None:
    for one in (MODEL, TIMED):
        assert "model.fit(" in one.read_text()
