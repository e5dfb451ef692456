"""The templates of the pages, with the filters that they use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import to_json
from tfdyno.render.base import template
from tfdyno.view.draw import palette, svg
from tfdyno.words.base.amounts import capital
from tfdyno.words.base.language import say, spoken
from tfdyno.words.base.names import named

if TYPE_CHECKING:
    from typing import Any

    from jinja2 import Environment
    from markupsafe import Markup

_HTML_LANGUAGES = {"en": "en", "zh": "zh-Hans"}
"""Languages as HTML tags them."""


def environment() -> Environment:
    """Return the environment, which escapes what is put into a page and refuses unknown names."""
    found = template.environment("tfdyno.view", autoescape=True)
    found.filters |= {"tied": tied, "sentence": sentence, "coded": coded}
    found.globals |= {"say": say, "named": named}
    return found


def page(name: str, document: object, **own: Any) -> str:
    """Fill the template of a page with its own values and what every page has.

    Args:
        name: Of the template.
        document: The whole answer, kept in the page as JSON.
        own: Values of this page.
    """
    every = {
        "language": _HTML_LANGUAGES[spoken()],
        "figures_missing": not svg.available(),
        "variables": palette.variables,
        "paint_rules": palette.paint_rules,
        "json": script_safe(to_json(document).decode()),
    }
    return environment().get_template(f"{name}.html.j2").render(own | every)


def coded(text: str) -> Markup:
    """Mark escaped text as code between backticks; 61 % is written as 61%."""
    from markupsafe import Markup, escape

    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text)))
    return Markup(re.sub(r"(\d) %", r"\1%", safe))


def tied(text: str) -> str:
    """Tie numbers in ``text`` to their units, so that no line breaks between them."""
    units = "hours?|h|minutes?|days|ms|GiB|GB|epochs"
    return re.sub(rf"(\d) (?=(?:{units})\b)", "\\1\u00a0", text)


def sentence(text: str) -> str:
    """Write ``text`` as a sentence of the page: a capital, a stop, and × for a count."""
    text = re.sub(r"(\d)x (?=the\b)", r"\1 times ", text)
    text = re.sub(r"\b(\d+) x (?=\w)", r"\1 × ", text)
    ends = (".", "?", ":", "。", "？", "：")
    stop = "." if text.isascii() else say(".")  # what has no translation ends as in English
    return capital(text) + ("" if not text or text.endswith(ends) else stop)


def script_safe(json: str) -> str:
    """Return JSON that cannot end the ``<script>`` element it stands in."""
    return json.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
