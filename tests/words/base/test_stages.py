"""A stage's line names what the stage is a part of, and what lasts is not touched."""

from __future__ import annotations

from tfdyno.core.base.lasting import Lasting
from tfdyno.words.base.language import speaking
from tfdyno.words.base.stages import under


def test_a_stage_is_told_under_its_title() -> None:
    assert under("run 1 of 5", "importing TensorFlow") == "run 1 of 5: importing TensorFlow"


def test_a_stage_in_chinese_has_the_colon_of_chinese() -> None:
    with speaking("zh"):
        assert under("第 1 次运行", "启动中") == "第 1 次运行：启动中"


def test_a_line_that_lasts_stays_the_line_it_was() -> None:
    fact = Lasting("The profile was left out.")
    assert under("run 1 of 5", fact) is fact
