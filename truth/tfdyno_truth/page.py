"""``docs/accuracy-plots.html``: one self-contained page that reads without JavaScript."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jinja2 import ChoiceLoader, FileSystemLoader
from markupsafe import Markup, escape

from tfdyno.catalog.time_model import time_model
from tfdyno.view.base.template import environment
from tfdyno.view.draw import palette, svg
from tfdyno_truth import cells, figure_measured, report
from tfdyno_truth.rows import TRUTH
from tfdyno_truth.score import judged
from tfdyno_truth.ways import WAYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment

    from tfdyno_truth.accuracy import Accuracy
    from tfdyno_truth.sections import Section

TEMPLATES = TRUTH / "tfdyno_truth" / "templates"


def render(found: Accuracy) -> str:
    """Make the page; figures are of the predictions with the card left out."""
    made = _environment()
    unseen = judged(found.fitted, WAYS["gpu"].title)
    first = found.sheets["gpu"].whole[0]
    return made.get_template("accuracy.html.j2").render(
        headline=f"{first.label} step times on a GPU never seen: "
        f"{cells.share(first.score.mean)} mean error",
        answer=report.answer(found),
        method=report.method(found),
        boxes=_boxes(found),
        figures=(
            ("By generation of the card", figure_measured.families(unseen)),
            ("By precision", figure_measured.precisions(unseen)),
            ("By class of model", figure_measured.models(unseen)),
        ),
        sections=tuple(report.sections(found)),
        figures_missing=not svg.available(),
        version=time_model().version,
        variables=palette.variables,
        paint_rules=palette.paint_rules,
    )


def render_sections(sections: Sequence[Section]) -> str:
    """Some of the page's sections as it has them."""
    return _environment().get_template("sections.html.j2").render(sections=sections)


def _environment() -> Environment:
    made = environment()
    loaders = [FileSystemLoader(TEMPLATES)] + ([made.loader] if made.loader else [])
    made.loader = ChoiceLoader(loaders)
    made.filters["prose"] = _prose
    return made


def _boxes(found: Accuracy) -> tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]:
    """TensorFlow's and PyTorch's figures with the card left out, beside the model left out."""
    boxes = []
    for line in found.sheets["gpu"].whole:
        other = next(o for o in found.sheets["model"].whole if o.label == line.label)
        score, order = line.score, line.order
        numbers = [
            ("new card", cells.share(score.mean), f"mean of {score.groups} groups"),
            ("new model", cells.share(other.score.mean), f"mean of {other.score.groups} groups"),
            ("9 of 10 below", cells.share(score.p90), "new card"),
            ("interval holds", f"{score.coverage:.0%}", f"±{score.half_width:.0%} wide"),
        ]
        if order:
            in_order = cells.share(order.in_order), cells.share(order.close_in_order)
            numbers.append(("in order", in_order[0], f"of {order.pairs:,} pairs"))
            numbers.append(("close pairs", in_order[1], f"of {order.close_pairs:,} in order"))
        boxes.append((line.label, tuple(numbers)))
    return tuple(boxes)


def _prose(text: str) -> Markup:
    """`code`, *emphasis* and paragraphs as HTML; everything else is escaped."""
    safe = str(escape(text))
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    safe = re.sub(r"\*([^*\s][^*]*)\*", r"<em>\1</em>", safe)
    return Markup('</p><p class="lead">'.join(safe.split("\n\n")))
