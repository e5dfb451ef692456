"""What a child or a record says of a training is told in Chinese, as it is made there."""

from __future__ import annotations

import ast
import string
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.recipe.retreat import Retreat, told_of
from tfdyno.jobs.compiled.first_step import FirstStep, StepTimes, outcome_words
from tfdyno.jobs.train.preview import NO_GPU
from tfdyno.probe.machine.spot import Notice
from tfdyno.words.base.language import say, speaking
from tfdyno.words.train import notes, tune_notes
from tfdyno.words.train.notes import NOTES, STAGES, notes_words, stage_words

if TYPE_CHECKING:
    from types import ModuleType

SOURCE = Path(__file__).parents[3] / "src" / "tfdyno"
OF_PARTS = (
    "{cloud} takes", "The first step took", "Fit {number}",
    *("the interval of", "the effect of", "the machine's own", "it is wider", "samples per second"),
    *("The estimate says", "The line through", "{count} CPU"),
)  # fmt: skip
"""How sentences begin that are put together from parts; they are made in tests, here or of tune."""
TUNING = (*tune_notes.REASONS, *tune_notes.NOTES, *tune_notes.UNCOMPARED, *tune_notes.CLAUSES)


def pieces(text: str) -> list[str]:
    """What stands between the figures."""
    return [one for one, *_ in string.Formatter().parse(text) if one.strip()]


@cache
def made_elsewhere(*tables: ModuleType) -> str:
    """All texts of the code but those of the tables themselves."""
    found = []
    for path in SOURCE.rglob("*.py"):
        if path not in [Path(str(one.__file__)) for one in tables]:
            tree = ast.parse(path.read_text())
            found += [one.value for one in ast.walk(tree)
                      if isinstance(one, ast.Constant) and isinstance(one.value, str)]  # fmt: skip
    return "\n".join(found)


@pytest.mark.parametrize("sentence", [*NOTES, *STAGES, *TUNING])
def test_a_sentence_of_the_table_is_still_made_so(sentence: str) -> None:
    """One that was changed where it is made would be English amid Chinese."""
    if not sentence.startswith(OF_PARTS):
        assert [
            one for one in pieces(sentence) if one not in made_elsewhere(notes, tune_notes)
        ] == []


def first_step(*, compiled_s: float = 0.0) -> FirstStep:
    known = StepTimes(compiled_s=compiled_s)
    return FirstStep(title="t.py", known=known, has_all=False, ended=lambda: None, took_s=12.34)


def test_the_first_step_is_told_with_its_time() -> None:
    said = [
        outcome_words(first_step(), 0, 2), outcome_words(first_step(), 3, 2),
        outcome_words(first_step(), 3, 0), outcome_words(first_step(compiled_s=31.5), 3, 0),
    ]  # fmt: skip
    with speaking("zh"):
        assert [notes_words([one]) for one in said] == [
            "第一步连同编译用时 12.3 s；下次启动会从缓存取用程序。",
            "第一步连同编译用时 12.3 s，其中 3 个程序来自缓存；下次启动会从缓存取用全部程序。",
            "第一步用时 12.3 s：编译好的程序取自缓存。",
            "第一步用时 12.3 s：编译好的程序取自缓存；编译那次用时 31.5 s。",
        ]


def test_a_notice_of_a_cloud_is_told() -> None:
    at = Notice(cloud="aws", action="terminate", at="2026-11-27T10:00:00Z")
    soon = Notice(cloud="gcp", action="preempted", warning_s=30.0)
    with speaking("zh"):
        assert notes_words([at.sentence, soon.sentence]) == (
            "aws 将于 2026-11-27T10:00:00Z 收回本机（terminate）。"
            "gcp 将在约 30 s 后收回本机（preempted）。"
        )


def test_fits_before_the_last_are_told() -> None:
    with speaking("zh"):
        assert notes_words(["Fit 1 of 3: 1 epoch, loss 0.5, in runs/a/fit-1.",
                            "Fit 2 of 3: 2 epochs, loss 0.25."]) == (
            "第 1/3 次 fit：1 轮，loss 0.5，位于 runs/a/fit-1。第 2/3 次 fit：2 轮，loss 0.25。"
        )  # fmt: skip


def test_what_is_not_known_stays_english_and_english_stays_as_it_was() -> None:
    said = ("Something new happened.", "deterministic needs a seed: 0")
    assert notes_words(said) == "Something new happened. deterministic needs a seed: 0."
    with speaking("zh"):
        assert notes_words(said) == "Something new happened. deterministic 需要随机种子：取 0。"
        assert stage_words("importing TensorFlow") == "正在导入 TensorFlow"
        assert stage_words("something new") == "something new"


def test_a_note_that_is_said_in_chinese_already_keeps_its_own_stop() -> None:
    with speaking("zh"):
        assert notes_words([say(NO_GPU), "Something new happened.", say(NO_GPU)]) == (
            "没有时间和显存的估计：本机没有 GPU。请用 --gpu 指定一块。Something new happened. "
            "没有时间和显存的估计：本机没有 GPU。请用 --gpu 指定一块。"
        )


def test_why_two_trials_do_not_compare_is_told() -> None:
    few = "A has 2 of 5 runs with a steady state; a comparison needs 3."
    assert tune_notes.reason_words(few) == few
    with speaking("zh"):
        assert not tune_notes.reason_words(few).isascii()
        assert not tune_notes.reason_words("task.title differs: a and b.").isascii()


def test_steps_back_are_told_from_the_record_of_them() -> None:
    steps = (Retreat(step="graph", words="in graph execution without XLA", said="no tile."),)
    said = (told_of(steps), "deterministic needs a seed: 0.")
    assert notes_words(said, steps) == " ".join(said)
    with speaking("zh"):
        assert notes_words(said, steps) == (
            "XLA 编译失败：no tile；改为以 graph 方式（不用 XLA）运行。"
            "deterministic 需要随机种子：取 0。"
        )
