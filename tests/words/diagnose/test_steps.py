"""Parts of a step and classes of operations have a name in every language."""

from __future__ import annotations

import re

from tfdyno.core.measure.bottleneck import SPLIT_PARTS
from tfdyno.core.measure.step_facts import OPERATION_CLASSES
from tfdyno.words.base.language import speaking
from tfdyno.words.diagnose.steps import class_name, class_words, part_name


def test_english_tables_have_the_names_of_the_data() -> None:
    assert [part_name(name) for name in SPLIT_PARTS] == list(SPLIT_PARTS)
    assert [class_name(name) for name in OPERATION_CLASSES] == list(OPERATION_CLASSES)


def test_every_name_has_a_chinese_one() -> None:
    with speaking("zh"):
        shown = [*map(part_name, SPLIT_PARTS), *map(class_name, OPERATION_CLASSES)]
    assert all(re.fullmatch("[\u4e00-\u9fff]+", name) for name in shown), shown


def test_a_class_that_is_not_known_is_told_by_its_name() -> None:
    assert class_words("data_movement") == "moving and reshaping"
    assert class_words("look_up") == "look up"
