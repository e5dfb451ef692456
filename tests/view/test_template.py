"""What is put into a page cannot leave its place."""

from __future__ import annotations

import json

import jinja2
import pytest

from tfdyno.view.template import environment, script_safe


def test_text_is_escaped_and_an_unknown_name_is_an_error() -> None:
    made = environment()
    assert made.from_string("{{ a }}").render(a="<b>") == "&lt;b&gt;"
    with pytest.raises(jinja2.UndefinedError):
        made.from_string("{{ missing }}").render()


def test_json_cannot_end_the_script_it_stands_in() -> None:
    whole = {"name": "</script><!--\u2028\u2029"}
    safe = script_safe(json.dumps(whole, ensure_ascii=False))
    assert "<" not in safe
    assert "\u2028" not in safe
    assert json.loads(safe) == whole
