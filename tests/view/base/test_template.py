"""What is put into a page cannot leave its place."""

from __future__ import annotations

import json

import jinja2
import pytest

from tfdyno.view.base.template import environment, script_safe


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
