from __future__ import annotations

import jinja2
import pytest

from tfdyno.render.base.template import environment


def test_what_is_no_page_stays_as_it_is_and_a_page_is_escaped() -> None:
    assert environment().from_string("{{ a }}").render(a="<b>") == "<b>"
    page = environment("tfdyno.view", autoescape=True)
    assert page.from_string("{{ a }}").render(a="<b>") == "&lt;b&gt;"


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        environment().from_string("{{ missing }}").render()
