"""What holds for a text of the tables in every language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.core.base.language import LANGUAGES
from tfdyno.rules.wording import NAME, text_in

if TYPE_CHECKING:
    from tfdyno.rules.causes import Words


def check_languages(words: Words) -> None:
    """Each language has the text, in its own letters and without a cry, with the same names."""
    assert all(text_in(words, language).strip() for language in LANGUAGES)
    assert any("\u4e00" <= character <= "\u9fff" for character in words.zh), words.zh
    assert not any("\u4e00" <= character <= "\u9fff" for character in words.en), words.en
    assert not re.search(r"[!！]", words.en + words.zh)
    assert names_in(words.en) == names_in(words.zh)


def names_in(text: str) -> list[set[str]]:
    """Names to fill in, of each variant."""
    return [set(NAME.findall(variant)) for variant in text.split("||")]
