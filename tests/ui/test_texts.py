from __future__ import annotations

import re

import pytest

from tfdyno.core.base.language import LANGUAGES, Language
from tfdyno.ui.page import FILES, PAGES
from tfdyno.ui.texts import TEXTS

FRAME = {"lang", "json", "other", "page_title", "pages", "button", "main", "scripts"}
"""What the frame is filled with beside words."""


def used() -> set[str]:
    """Names that page and script take from the table."""
    page, script = (
        "".join(path.read_text() for path in sorted(FILES.glob(pattern)))
        for pattern in ("*.html", "*.js")
    )
    found = set(re.findall(r"\{\{(\w+)\}\}", page)) - FRAME
    found |= {name for one in PAGES.values() for name in (one.title, one.link, one.button) if name}
    found |= set(re.findall(r"\bt\.(\w+)", script))
    found |= {f"cmd_{name}" for name in ("step", "run", "ranking", "write", "train", "look", "do")}
    found |= {f"{name}_lead" for name in ("recipe", "project")}
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_that_the_page_shows_is_in_the_table(language: Language) -> None:
    assert used() - set(TEXTS[language]) == set()


def test_no_text_is_left_over() -> None:
    script = "".join(path.read_text() for path in FILES.glob("*.js"))
    quoted = set(re.findall(r'"([\w-]+)"', script))
    assert set(TEXTS["en"]) - used() - quoted == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_all_texts_with_the_same_places(language: Language) -> None:
    assert set(TEXTS[language]) == set(TEXTS["en"])
    for name, text in TEXTS["en"].items():
        wanted = re.findall(r"\{\w+\}", text)
        assert sorted(re.findall(r"\{\w+\}", TEXTS[language][name])) == sorted(wanted), name
