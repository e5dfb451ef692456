"""Words without which an expression cannot match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.rules.causes import all_causes
from tfdyno.rules.log.literals import needed_words

RULES = [rule for cause in all_causes() for rule in cause.log if rule.match]


@pytest.mark.parametrize(
    ("expression", "needle", "words"),
    [
        (r"driver (?:version)? is too old", "driver", {" is too old"}),
        (r"(?:abc|defg)\d+ x", "", {"abc", "defg"}),
        (r"(?:abc|d*)\d+", "", set()),
        (r"\bloss\b nan|inf loss", "loss", {" nan", "inf loss"}),
        (r"\d+", "", set()),
        ("RAM", "ram", set()),
    ],
)  # fmt: skip
def test_the_most_telling_words_are_taken(expression: str, needle: str, words: set[str]) -> None:
    assert needed_words(expression, needle) == words


@given(st.sampled_from(RULES))
def test_every_example_of_a_rule_holds_one_of_its_words(rule: object) -> None:
    expression, needle, example = (getattr(rule, name) for name in ("match", "needle", "example"))
    words = needed_words(expression, needle)
    assert not words or any(word in example.lower() for word in words)
