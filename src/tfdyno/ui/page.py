"""What the browser is given: page, style, script, and what the controls offer."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import all_gpus
from tfdyno.catalog.tasks import PREFIX, standard_tasks
from tfdyno.core.base import settings
from tfdyno.core.base.codec import to_json
from tfdyno.core.base.language import LANGUAGES, Language
from tfdyno.core.base.version import PACKAGE
from tfdyno.core.choose.hardware import VENDOR
from tfdyno.ui.settings import APPLICATIONS, KERAS
from tfdyno.ui.texts import TEXTS
from tfdyno.view.base.template import script_safe
from tfdyno.view.draw.palette import variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.workload import Workload

FILES = PACKAGE / "ui" / "files"
STYLE = PACKAGE / "view" / "templates" / "report.css"
"""The style of the report page, which this one shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What sets a page apart from the others; words are those of ``TEXTS``."""

    file: str
    title: str
    link: str
    button: str = ""
    """Beside the links, with this id and word; empty: none."""
    scripts: tuple[str, ...]


PAGES = {
    "/": Page(file="page.html", title="title", link="what_if", button="share",
              scripts=("draw.js", "ui.js")),
    "/results": Page(file="results.html", title="results_title", link="results", button="again",
                     scripts=("results.js",)),
    "/live": Page(file="live.html", title="live_title", link="live",
                  scripts=("draw.js", "live.js")),
}  # fmt: skip
SCRIPTS = ("common.js", *dict.fromkeys(name for page in PAGES.values() for name in page.scripts))
FIRST = f"{KERAS}ResNet50"
FIRST_GPU = "a100-sxm4-80gb"
COUNTS = (1, 2, 4, 8, 16, 32, 64)
_NAME = re.compile(r"\{\{(\w+)\}\}")


def pages(path: str) -> dict[str, bytes]:
    """Return the page of a path by language."""
    return {language: _page(path, language).encode() for language in LANGUAGES}


def files() -> tuple[tuple[str, bytes, str], ...]:
    """Return path, content and type of what is the same in all languages."""
    return (
        ("/ui.css", _style().encode(), "text/css"),
        *((f"/{name}", (FILES / name).read_bytes(), "text/javascript") for name in SCRIPTS),
    )


def state(given: Workload | None) -> bytes:
    """Return what the controls offer, as JSON."""
    cards = [
        {"slug": gpu.slug, "name": gpu.name, "group": gpu.architecture}
        for gpu in all_gpus()
        if gpu.vendor.upper() == VENDOR
    ]
    first = given.reference if given else FIRST
    known = (
        *(f"{KERAS}{name}" for name in APPLICATIONS),
        *(f"{PREFIX}{name}" for name in standard_tasks()),
    )
    return to_json(
        {
            "workload": first,
            "workloads": list(dict.fromkeys((first, *known))),
            "gpu": FIRST_GPU,
            "gpus": cards,
            "counts": COUNTS,
            "precisions": settings.PRECISIONS,
            "executions": settings.TRAINED_EXECUTIONS,
        }
    )  # fmt: skip


def _page(path: str, language: Language) -> str:
    page, texts = PAGES[path], TEXTS[language]
    words = {name: html.escape(text) for name, text in texts.items()}
    other = LANGUAGES[LANGUAGES.index(language) - 1]
    button = (
        f'<p><button type="button" id="{page.button}" class="plain-button">{words[page.button]}'
        "</button></p>\n"
        if page.button
        else ""
    )
    frame = {
        "lang": language,
        "other": other,
        "json": script_safe(to_json(texts).decode()),
        "page_title": words[page.title],
        "pages": " · ".join(
            f"<b>{words[one.link]}</b>" if one is page else f'<a href="{to}">{words[one.link]}</a>'
            for to, one in PAGES.items()
        ),
        "button": button,
        "main": _filled(page.file, words),
        "scripts": "".join(
            f'<script src="/{name}"></script>\n' for name in ("common.js", *page.scripts)
        ),
    }
    return _filled("frame.html", words | frame)


def _filled(file: str, values: Mapping[str, str]) -> str:
    return _NAME.sub(lambda found: values[found[1]], (FILES / file).read_text("utf-8"))


def _style() -> str:
    themes = (
        f":root{{color-scheme:light dark;{variables('light')}}}",
        f"@media (prefers-color-scheme:dark){{:root{{{variables('dark')}}}}}",
    )
    return "\n".join([*themes, *(path.read_text("utf-8") for path in (STYLE, FILES / "ui.css"))])
