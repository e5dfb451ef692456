"""What children say in English, and records keep, is known by the sentences that made it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tfdyno.core.recipe.retreat import FIRST_STEP, FIRST_STEP_XLA
from tfdyno.words.base.language import speaking
from tfdyno.words.bench.told import FAULTS, NOTES, STAGES, note_words, stage_words

SOURCE = Path(__file__).parents[3] / "src" / "tfdyno"


@cache
def made() -> tuple[re.Pattern[str], ...]:
    """All texts that the code can make, without stop, with anything for a figure."""
    found = set()
    for folder in ("runtime", "core", "jobs", "load"):
        for path in (SOURCE / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                parts = node.values if isinstance(node, ast.JoinedStr) else [node]
                texts = [one.value if isinstance(one, ast.Constant) else None for one in parts]
                known = [text for text in texts if isinstance(text, str)]
                if sum(map(len, known)) > 8:
                    found.add("".join("{}" if one is None else str(one) for one in texts))
    plain = (re.escape(one.removesuffix(".")) for one in found)
    return tuple(re.compile(one.replace(re.escape("{}"), ".+")) for one in plain)


@pytest.mark.parametrize("sentence", [*STAGES, *NOTES, *FAULTS])
def test_each_sentence_is_one_that_the_code_makes(sentence: str) -> None:
    assert any(one.fullmatch(sentence) for one in made())


def test_a_note_is_a_sentence_and_what_is_not_known_stays() -> None:
    assert note_words("Left out of fit: callbacks.") == "Left out of fit: callbacks."
    assert note_words("no stop") == "no stop."
    with speaking("zh"):
        assert note_words("Left out of fit: callbacks.") == "fit 中略去：callbacks。"
        assert note_words("line brings no data: one random batch again and again.") == (
            "line 不带数据：反复使用同一个随机批。"
        )
        assert note_words("A note of another release.") == "A note of another release."


def test_a_stage_keeps_its_figures() -> None:
    with speaking("zh"):
        assert stage_words("measuring: 586 steps, 1.0 s") == "正在测量：586 步，1.0 s"
        assert stage_words("epoch 2: loss 0.31, accuracy 0.9, 4.0 s") == (
            "第 2 轮：loss 0.31, accuracy 0.9, 4.0 s"
        )
        assert {stage_words(FIRST_STEP), stage_words(FIRST_STEP_XLA)} == {
            "第一步（编译中）", "第一步（XLA 编译中）",
        }  # fmt: skip
        assert stage_words('{"event": "begin"}') == '{"event": "begin"}'
    assert stage_words("measuring") == "measuring"
