"""What is put into a page cannot leave its place."""

from __future__ import annotations

import json

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.view.base.template import environment, script_safe, sentence, tied


def test_text_is_escaped_and_an_unknown_name_is_an_error() -> None:
    made = environment()
    assert made.from_string("{{ a }}").render(a="<b>") == "&lt;b&gt;"
    with pytest.raises(jinja2.UndefinedError):
        made.from_string("{{ missing }}").render()


def test_what_stands_between_backticks_is_code_and_nothing_more() -> None:
    made = environment()
    shown = made.from_string("{{ a|coded }}").render(a="Write `<b>` & gain 10 %, `a` or ` alone")
    assert shown == "Write <code>&lt;b&gt;</code> &amp; gain 10%, <code>a</code> or ` alone"


def test_json_cannot_end_the_script_it_stands_in() -> None:
    whole = {"name": "</script><!--\u2028\u2029"}
    safe = script_safe(json.dumps(whole, ensure_ascii=False))
    assert "<" not in safe
    assert "\u2028" not in safe
    assert json.loads(safe) == whole


def test_no_line_breaks_between_a_number_and_its_unit() -> None:
    assert tied("6.7 hours on 24 GiB") == "6.7\u00a0hours on 24\u00a0GiB"
    assert tied("3 heads and 5 msgs") == "3 heads and 5 msgs"


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("", ""),
        ("why is it slow?", "Why is it slow?"),
        ("2.5x the price", "2.5 times the price."),
        ("8 x H100", "8 × H100."),
        ("it fits.", "It fits."),
    ],
)
def test_a_sentence_begins_with_a_capital_and_stops(text: str, made: str) -> None:
    assert sentence(text) == made


@given(st.text("abc x123.?: ", max_size=30))
def test_a_sentence_of_the_page_stays_as_it_is(text: str) -> None:
    once = sentence(text)
    assert sentence(once) == once
