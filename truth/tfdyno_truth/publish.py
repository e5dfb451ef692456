"""Refit and write what ships: constants, pages and scores; nothing where a score got worse."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tfdyno.catalog.time_model import read_time_model, time_model
from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import UsageError
from tfdyno_truth import page, ratchet, report, scaling_report, toml
from tfdyno_truth.accuracy import Accuracy, accuracy
from tfdyno_truth.ratchet import Accepted
from tfdyno_truth.rows import TRUTH
from tfdyno_truth.run import ROOT, TIME_MODEL, fit_all
from tfdyno_truth.sections import markdown
from tfdyno_truth.ways import ONE_NEW, WAYS, WIDTHS_FROM

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno_truth.scaling import ScalingScores

SCORES = TRUTH / "scores.toml"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refit:
    """A fit that may be published, and what it makes worse."""

    accuracy: Accuracy
    worse: tuple[str, ...]
    rows_before: int = 0
    """Rows that the stored scores are of; 0 without any."""


def refit(
    folder: Path, without: frozenset[str], tell: Callable[[str], None], *, every_way: bool
) -> Refit:
    """Fit, judge, and compare with the stored scores.

    Args:
        folder: Kernel records.
        without: Terms to take out of the model.
        tell: Is given what is being done.
        every_way: Also leave pairs out, which takes the longest.

    Raises:
        UsageError: A term does not exist.
    """
    unknown = without - set(time_model().parameters)
    if unknown:
        raise UsageError(f"no such term: {', '.join(sorted(unknown))}")
    ways = tuple(WAYS) if every_way else (WIDTHS_FROM, *ONE_NEW)
    fitted = fit_all(folder, without, ways=ways, tell=tell)
    found = accuracy(fitted, folder, tell, rivals=every_way)
    stored = ratchet.read_scores(SCORES)
    if stored is not None and not every_way:
        kept = {way: entries for way, entries in stored.ways.items() if way in found.sheets}
        stored = replace(stored, ways=kept, accepted=())
    rows = len(fitted.design.rows)
    now = ratchet.scores_of(found.sheets, time_model(), rows, scaling=found.scaling)
    before = stored.rows if stored else 0
    return Refit(accuracy=found, worse=ratchet.worsened(stored, now), rows_before=before)


def worse_scaling(found: ScalingScores) -> tuple[str, ...]:
    """What a fit of the exchange alone makes worse, in words."""
    stored = ratchet.read_scores(SCORES)
    if stored is None:
        return ()
    now = ratchet.scores_of({}, time_model(), stored.rows, scaling=found)
    return ratchet.worsened(replace(stored, ways={}), now)


def publish_scaling(found: ScalingScores, worse: tuple[str, ...] = (), reason: str = "") -> None:
    """Write the constants of the exchange, their scores, and the sections of both pages.

    Args:
        found: The fit.
        worse: What got worse, in words.
        reason: Why that is accepted.

    Raises:
        UsageError: There are no scores or pages yet: those are the full fit's.
    """
    stored, docs = ratchet.read_scores(SCORES), ROOT / "docs"
    if stored is None:
        raise UsageError(f"there is no {SCORES}", remedy="run tfdyno-truth fit")
    model = time_model()
    toml.rewrite(TIME_MODEL, version=model.version, values=found.constants, widths=model.intervals)
    shipped = read_time_model(TIME_MODEL)
    accepted = stored.accepted
    if worse:
        accepted += (Accepted(on=_today(), reason=reason, worse=worse),)
    kept = ratchet.scores_of({}, shipped, stored.rows, accepted, found)
    ratchet.write_scores(SCORES, replace(kept, ways=stored.ways))
    sections = tuple(scaling_report.sections(found))
    told = "\n".join(markdown(section) + "\n" for section in sections)
    _put(docs / "accuracy.md", r"## Several GPUs\n.*?(?=\n## )", told)
    pattern = r'<section class="tables" id="several-gpus">.*?</section>'
    _put(docs / report.FIGURES, pattern, page.render_sections(sections).strip())


def _today() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d}"


def _put(path: Path, pattern: str, told: str) -> None:
    """Replace what matches in a page, atomically."""
    text, found = re.subn(pattern, lambda _old: told, path.read_text(), count=1, flags=re.S)
    if not found:
        raise UsageError(f"{path} has no such section", remedy="run tfdyno-truth fit")
    write_atomic(path, text.encode())


def publish(found: Refit, reason: str) -> None:
    """Write constants, pages and scores.

    Args:
        found: The fit.
        reason: Why worse scores are accepted; needed where something got worse.

    Raises:
        UsageError: Something got worse and there is no reason for it.
    """
    if found.worse and not reason:
        raise UsageError("worse scores need a reason", remedy='give --accept-worse "reason"')
    today = _today()
    stored = ratchet.read_scores(SCORES)
    accepted = stored.accepted if stored else ()
    if found.worse:
        accepted += (Accepted(on=today, reason=reason, worse=found.worse),)
    fitted = found.accuracy.fitted
    parameters = time_model().parameters
    toml.rewrite(
        TIME_MODEL,
        version=today,
        values={n: value for n, value in fitted.constants.items() if parameters[n].fitted}
        | found.accuracy.exchange,
        widths=fitted.widths,
    )
    shipped = read_time_model(TIME_MODEL)
    rows = len(fitted.design.rows)
    scaling = found.accuracy.scaling
    now = ratchet.scores_of(found.accuracy.sheets, shipped, rows, accepted, scaling)
    ratchet.write_scores(SCORES, now)
    docs = ROOT / "docs"
    text = docs / "accuracy.md"
    before = text.read_text() if text.exists() else ""
    write_atomic(text, report.page(found.accuracy, before).encode())
    write_atomic(docs / report.FIGURES, page.render(found.accuracy).encode())
