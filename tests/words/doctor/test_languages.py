"""The doctor's own words, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tfdyno.probe
from tfdyno.core.choose.software import Behind
from tfdyno.words.doctor import languages as doctor_words
from tfdyno.words.doctor.languages import behind_words, counted, reason, word

WORDS = doctor_words._WORDS


@pytest.mark.parametrize("key", WORDS)
def test_every_word_has_both_languages_with_the_same_values(key: str) -> None:
    english, chinese = WORDS[key]
    assert re.findall(r"\{\w+\}", english) == re.findall(r"\{\w+\}", chinese)
    assert english.isascii()
    assert re.search(r"[\u4e00-\u9fff，]", chinese)
    assert not re.search(r"[!！]", english + chinese)


def test_a_word_is_filled_with_its_values() -> None:
    assert word("times", "en", n=5) == "5 times"
    assert word("exit", "zh", code=1) == "退出码 1"
    with pytest.raises(KeyError):
        word("no such word", "en")


@pytest.mark.parametrize(
    ("number", "english", "chinese"),
    [(0, "0 errors", "0 个错误"), (1, "1 error", "1 个错误"), (2, "2 errors", "2 个错误")],
)
def test_a_count_follows_the_grammar(number: int, english: str, chinese: str) -> None:
    assert counted(number, "error", "en") == english
    assert counted(number, "error", "zh") == chinese


def reasons() -> set[str]:
    """What the probes say when they have nothing to look at."""
    texts = (path.read_text("utf-8") for path in Path(tfdyno.probe.__path__[0]).rglob("*.py"))
    return {one for text in texts for one in re.findall(r'not_run\(\s*"([^"]+)"', text)}


def test_every_reason_of_a_probe_has_a_translation() -> None:
    found = reasons()
    assert len(found) > 5
    assert found <= doctor_words._REASONS.keys()
    for one in found:
        assert re.search(r"[\u4e00-\u9fff]", reason(one, "zh"))
        assert reason(one, "en") == one


def test_a_failure_keeps_its_own_words() -> None:
    assert reason("no answer within 2 s", "zh") == "no answer within 2 s"


def test_tables_that_are_new_enough_need_no_word() -> None:
    assert behind_words(None, "2.21.0") == ""
    aged = Behind(why="age", date="2026-11-26", last="2.22.0rc0", age_days=200)
    assert "of 2026-11-26, 200 days ago" in behind_words(aged, "2.21.0")
    assert "200 天前" in behind_words(aged, "", "zh")
