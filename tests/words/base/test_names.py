"""What nouns carry as a name is shown in the language of the answer, and kept in JSON."""

from __future__ import annotations

from typing import get_args

from tfdyno.core.choose.advice import Title, Verdict
from tfdyno.core.choose.hardware import OwnTerms
from tfdyno.words.base.language import speaking
from tfdyno.words.base.names import NAMES, named
from tfdyno.words.choose.changes import Condition


def test_every_pick_verdict_way_and_condition_has_a_name() -> None:
    known = {*get_args(Title), *get_args(Verdict), *get_args(OwnTerms), *get_args(Condition)}
    assert known - NAMES == set()


def test_a_name_is_shown_in_the_language_of_the_answer_and_another_word_as_it_is() -> None:
    assert named("spot") == "spot"
    with speaking("zh"):
        assert named("spot") == "竞价"
        assert named("h100-sxm5-80gb") == "h100-sxm5-80gb"
