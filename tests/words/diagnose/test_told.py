"""What a child says of its steps is told in Chinese, as it is made there."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from tests.words.train.test_notes import pieces

from tfdyno.core.recipe.retreat import Retreat, told_of
from tfdyno.words.base.language import speaking
from tfdyno.words.diagnose import told
from tfdyno.words.diagnose.told import FACTS, NOTES, STAGES, fact_words, note_words, stage_words

SOURCE = Path(told.__file__).parents[2]
JOINTS = (
    "stopped after", "failed after", "short after", "tensors held", "entries held",
    "MB held",
)  # fmt: skip
"""Where two texts that stand apart in the code are put together."""


def made_by_children() -> str:
    """All code of the children, with the texts that several lines hold in one."""
    files = [*SOURCE.glob("runtime/diagnose/**/*.py"), *SOURCE.glob("profile/*.py")]
    lines = (line.strip() for file in files for line in file.read_text().splitlines())
    return "".join(lines).replace('"f"', "").replace('""', "").replace("{'s' * (", "s{'' * (")


CODE = made_by_children()


@pytest.mark.parametrize("sentence", [*NOTES, *STAGES, *FACTS])
def test_a_sentence_of_the_table_is_still_made_so(sentence: str) -> None:
    """One that was changed where it is made would be English amid Chinese."""
    parts = [part for piece in pieces(sentence) for part in apart(piece)]
    assert [part for part in parts if part not in CODE] == []


def apart(piece: str) -> list[str]:
    """The texts of which one was put together; a count of steps is made by itself."""
    for joint in JOINTS:
        piece = piece.replace(joint, joint.replace(" ", "|"))
    piece = piece.replace(";", "|;")
    return [part.removeprefix(" steps").strip(" ()") for part in piece.split("|")]


def test_notes_are_told_with_their_figures() -> None:
    with speaking("zh"):
        assert note_words("The training ended by itself after 1,200 steps.") == (
            "训练在 1,200 步后自行结束。"
        )
        assert note_words("It failed after 60 steps: what was seen until then is told.") == (
            "在 60 步后失败：所示为此前所见。"
        )
        assert note_words("The step could not be repeated: no such file.") == (
            "无法重复这一步：no such file。"
        )


def test_notes_of_a_recipe_and_of_a_bench_are_known_too() -> None:
    with speaking("zh"):
        assert note_words("deterministic needs a seed: 0.").startswith("deterministic 需要")
        assert note_words("train.py brings no data: one random batch again and again.").endswith(
            "。"
        )


def test_what_is_not_known_stays_english_and_english_stays_as_it_was() -> None:
    assert note_words("The data has ended.") == "The data has ended."
    assert stage_words("reading a.xplane.pb") == "reading a.xplane.pb"
    with speaking("zh"):
        assert note_words("Something new happened.") == "Something new happened."
        assert stage_words("something new") == "something new"
        assert stage_words("reading a.xplane.pb") == "正在读取 a.xplane.pb"


def test_a_step_back_is_told_from_the_record_of_it() -> None:
    steps = (Retreat(step="graph", words="in graph execution without XLA", said="no tile."),)
    assert note_words(told_of(steps), steps) == told_of(steps)
    with speaking("zh"):
        assert note_words(told_of(steps), steps).startswith("XLA 编译失败：no tile")


def test_a_fact_is_told_whole() -> None:
    held = "list of 9 tensors held by train.py:31 (losses)"
    assert fact_words(held) == held
    with speaking("zh"):
        assert fact_words(held) == "train.py:31（losses）持有的 list，含 9 个张量"
        assert fact_words("argument step: 3 -> 4") == "参数 step：3 -> 4"


def test_every_figure_has_a_name() -> None:
    for sentence in (*NOTES, *STAGES, *FACTS):
        for _, name, form, _ in string.Formatter().parse(sentence):
            assert name is None or (name and not form), sentence
