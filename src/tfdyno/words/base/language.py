"""The language of an answer: English sentences are the keys, other languages tables of them."""

from __future__ import annotations

import contextlib
import os
import re
import string
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tfdyno.core.base.language import Language

ENGLISH: Language = "en"
VARIABLE = "TFDYNO_LANG"
CONTEXT = "||"
"""Behind it a key says which meaning of a short word is translated: ``memory||bottleneck``."""
_SPOKEN: list[Language] = [ENGLISH]
"""Of this process, the last one holds: a command answers one reader, from whatever thread."""
_ASKED: ContextVar[Language | None] = ContextVar("asked", default=None)
"""Of one question to a server, which answers several readers at once; None: as the process."""


def say(sentence: str, /, **figures: object) -> str:
    """Return a sentence in the language of the answer, filled with its figures.

    Args:
        sentence: In English, with ``{name}`` or ``{name:,}`` for each figure. A literal, so that
            the tests find it, or what ``say_later`` has marked.
        figures: What is put in, by name.
    """
    if (language := spoken()) != ENGLISH:
        sentence = _sentences(language).get(sentence, sentence)
    if CONTEXT in sentence:
        sentence = sentence.partition(CONTEXT)[0]
    return sentence.format_map(figures) if figures else sentence


def has_sentence(sentence: str) -> bool:
    """Return whether another language than English is spoken, and has the sentence."""
    return spoken() != ENGLISH and sentence in _sentences(spoken())


def say_later(sentence: str) -> str:
    """Mark a sentence that stands in a table, and is translated by ``say`` where it is used."""
    return sentence


def retold(text: str, sentences: Iterable[str]) -> str:
    """Return an English text of a record, or of a child, in the language of the answer.

    Args:
        text: In English, as one of the sentences made it; what none of them made stays as it is.
        sentences: Marked by ``say_later``, with a plain ``{name}`` for each figure.
    """
    if spoken() == ENGLISH:
        return text
    for sentence in sentences:
        if found := _pattern(sentence).fullmatch(text):
            return say(sentence, **found.groupdict())
    return text


def retold_sentence(text: str, sentences: Iterable[str]) -> str:
    """Do the same of a text with a stop, by sentences that are marked without theirs."""
    plain = text.rstrip(".")
    told = retold(plain, sentences)
    return text if told == plain else told + say(".")


def spoken() -> Language:
    """Return the language of the answer."""
    return _ASKED.get() or _SPOKEN[-1]


@contextlib.contextmanager
def speaking(language: Language) -> Iterator[None]:
    """Let all sentences made meanwhile be in a language."""
    _SPOKEN.append(language)
    try:
        yield
    finally:
        _SPOKEN.pop()


@contextlib.contextmanager
def answering(language: Language) -> Iterator[None]:
    """Let the sentences that this thread or task makes meanwhile be in a language."""
    before = _ASKED.set(language)
    try:
        yield
    finally:
        _ASKED.reset(before)


def joined(sentences: Iterable[str]) -> str:
    """Join whole sentences to a paragraph; empty ones are left out. Chinese has no blanks there."""
    return say(" ").join(filter(None, sentences))


def language_of_reader() -> Language:
    """Return what ``TFDYNO_LANG`` says, else the locale; raises ``UsageError``."""
    if asked := os.environ.get(VARIABLE):
        if asked not in ("en", "zh"):
            raise UsageError(f"{VARIABLE} is '{asked}'", remedy="set it to en or zh")
        return "zh" if asked == "zh" else "en"
    told = (os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, told), "").lower().startswith("zh") else ENGLISH


@cache
def _pattern(sentence: str) -> re.Pattern[str]:
    """Return what a sentence looks like when its figures are in it."""
    parts = string.Formatter().parse(sentence)
    made = (re.escape(text) + (f"(?P<{name}>.+?)" if name else "") for text, name, *_ in parts)
    return re.compile("".join(made), re.DOTALL)


@cache
def _sentences(language: Language) -> dict[str, str]:
    """Return all sentences of a language by the English ones."""
    import tomllib
    from importlib.resources import files

    found: dict[str, str] = {}
    for table in files("tfdyno.words").joinpath(language).iterdir():
        if table.name.endswith(".toml"):
            found |= tomllib.loads(table.read_text("utf-8"))
    return found
