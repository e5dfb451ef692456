"""A page in a browser, whose controls a test moves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests import chromium

if TYPE_CHECKING:
    from tests.chromium import Page

needs_browser = pytest.mark.skipif(
    not chromium.BROWSER, reason="no Chromium: apt-get install chromium"
)
READY = "document.body.dataset.ready === 'true'"
SET = """const field = document.querySelector(`[name=${%s}]`) ?? document.getElementById(%s);
field.value = %s; field.dispatchEvent(new Event("input", {bubbles: true}));"""
WIDER = """const limit = document.documentElement.clientWidth + 0.5;
return [...document.querySelectorAll("main *, header *, footer *")].filter((one) =>
  one.getBoundingClientRect().right > limit && !one.closest(".scroll, svg, .skip, .out"))
  .map((one) => one.tagName + "#" + one.id + "." + one.className).slice(0, 5);"""


def put(tab: Page, name: str, value: object) -> None:
    """Move a control, and wait for all answers."""
    tab.run("document.body.dataset.ready = 'false';" + SET % (
        json.dumps(name), json.dumps(name), json.dumps(str(value))))  # fmt: skip
    tab.wait(READY)


def shown(tab: Page, selector: str) -> str:
    """Return the text that somebody sees; empty where the element is not there or is hidden."""
    found: str = tab.run(f"""const one = document.querySelector({json.dumps(selector)});
      return one?.getClientRects().length ? one.innerText : "";""")
    return found.replace("\u00a0", " ")
