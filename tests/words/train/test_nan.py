"""Each sentence on a lost loss is the child's own, and is told with its figures in Chinese."""

from __future__ import annotations

import pytest
from tests.words.train.test_notes import made_elsewhere, pieces

from tfdyno.words.base.language import speaking
from tfdyno.words.train import nan
from tfdyno.words.train.nan import fix_words, summary_words

OF_PARTS = ("The loss is finite", "{seen}, and", "All layers", "Keep {layer}", "The {what}")
"""How sentences begin of which the child puts together what stands between the figures."""
PARTS = (
    "The loss is finite, its gradient is not: it is lost ", "in ", "on the way to ", "; first in ",
    "repeating the steps did not", "the steps cannot be repeated to", " show where it began.",
    "All layers give finite values, the loss does not: ", ' in float32: give it dtype="float32".',
    " hold values that are not finite: ",
)  # fmt: skip


@pytest.mark.parametrize("sentence", [*nan.SUMMARIES, *nan.FIXES])
def test_a_sentence_of_the_table_is_still_made_so(sentence: str) -> None:
    if not sentence.startswith(OF_PARTS):
        assert [one for one in pieces(sentence) if one not in made_elsewhere(nan)] == []


@pytest.mark.parametrize("part", PARTS)
def test_the_parts_of_the_others_are_still_made_so(part: str) -> None:
    assert part in made_elsewhere(nan)


def test_where_it_began_and_what_to_do_is_told_with_the_figures() -> None:
    lost = "loss is NaN at step 41, and repeating the steps did not show where it began."
    on_the_way = (
        "The loss is finite, its gradient is not: it is lost on the way to a/kernel; first in "
        "b/kernel."
    )
    assert summary_words(lost) == lost
    with speaking("zh"):
        assert summary_words(lost) == "loss is NaN at step 41；重复这些步未能找出从哪里开始。"
        assert summary_words(on_the_way) == (
            "损失有限，梯度却不是：在传到 a/kernel 的途中出现；首个是 b/kernel。"
        )
        assert fix_words("Repair the data, or leave such samples out: x, sample 3.") == (
            "修复数据，或剔除这些样本：x, sample 3。"
        )
        assert fix_words("Something else.") == "Something else."
