"""scripts/cause_pages: each cause has its place in the docs, in words that need no machine."""

from __future__ import annotations

import pytest

import cause_pages
from tfdyno.rules.causes import Cause, CauseStep, Words, all_causes, groups
from tfdyno.rules.wording import NAME


def test_every_group_has_a_page_with_an_anchor_for_each_cause() -> None:
    pages = cause_pages.pages()
    for one in all_causes():
        page = pages[cause_pages.FOLDER / f"{one.id.partition('.')[0]}.md"]
        assert f'<a id="{one.id}"></a>' in page
    assert set(cause_pages.TITLES) == set(groups())


def test_the_index_links_every_cause_to_its_anchor() -> None:
    index = cause_pages.pages()[cause_pages.INDEX]
    for one in all_causes():
        assert f"doctor/{one.id.partition('.')[0]}.md#{one.id})" in index


@pytest.mark.parametrize("one", all_causes(), ids=lambda one: one.id)
def test_title_and_reason_end_with_a_variant_that_needs_nothing_known(one: Cause) -> None:
    for words in (one.title, one.why):
        for text in (words.en, words.zh):
            assert NAME.findall(text.split("||")[-1]) == []


def test_a_condition_is_told_in_words() -> None:
    steps = (
        CauseStep(command="a {wanted}", when={"platform": "wsl|windows"}, choice="x"),
        CauseStep(command="b", when={"tensorflow": ">=2.11,<2.16", "folder": "*"}, choice="x"),
        CauseStep(text=Words(en="_c_ {pip}", zh=""), choice="x"),
        CauseStep(command="{pip} d", when={"manager": "!conda"}),
    )
    text = "\n".join(cause_pages._fix(steps))
    assert "*WSL or Windows:*" in text
    assert "a <wanted>" in text
    assert "*TensorFlow ≥ 2.11, < 2.16:*" in text
    assert "*otherwise:* \\_c\\_ `<pip>`" in text
    assert "*not conda:*" in text
    assert "python -m pip d" in text
