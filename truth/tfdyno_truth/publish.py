"""Refit and write what ships: constants, pages and scores; nothing where a score got worse."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tfdyno.catalog.time_model import read_time_model, time_model
from tfdyno.core.codec import write_atomic
from tfdyno.core.errors import UsageError
from tfdyno_truth import page, ratchet, report, toml
from tfdyno_truth.accuracy import Accuracy, accuracy
from tfdyno_truth.ratchet import Accepted
from tfdyno_truth.rows import TRUTH
from tfdyno_truth.run import ROOT, TIME_MODEL, fit_all
from tfdyno_truth.ways import LEARNED_FROM, WAYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    ways = tuple(WAYS) if every_way else LEARNED_FROM
    fitted = fit_all(folder, without, ways=ways, tell=tell)
    found = accuracy(fitted, folder, tell, rivals=every_way)
    stored = ratchet.read_scores(SCORES)
    if stored is not None and not every_way:
        kept = {way: entries for way, entries in stored.ways.items() if way in found.sheets}
        stored = ratchet.Scores(constants=stored.constants, rows=stored.rows, ways=kept)
    now = ratchet.scores_of(found.sheets, time_model(), len(fitted.design.rows))
    before = stored.rows if stored else 0
    return Refit(accuracy=found, worse=ratchet.worsened(stored, now), rows_before=before)


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
    today = f"{datetime.now(UTC):%Y-%m-%d}"
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
    ratchet.write_scores(SCORES, ratchet.scores_of(found.accuracy.sheets, shipped, rows, accepted))
    docs = ROOT / "docs"
    write_atomic(docs / "accuracy.md", report.page(found.accuracy).encode())
    write_atomic(docs / report.FIGURES, page.render(found.accuracy).encode())
