"""``tfdyno compare``: which measurement is faster, how sure that is, what it costs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import TEXT, argument, command, flag
from tfdyno.cli.options import JSON, LANG
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import Language
from tfdyno.jobs.bench.compare import compare_all
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from tfdyno.core.choose.recalibration import Gap
    from tfdyno.jobs.bench.compare import Side
    from tfdyno.view.bench.compare_text import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    measurements: tuple[str, ...] = argument(type=TEXT, nargs=-1, required=True, metavar="A B…")
    estimate: bool = flag(help="Say how far the estimate of each is off.")
    recalibrate: bool = flag(
        help="Keep measured over estimated: later estimates of the same model use it."
    )
    as_json: bool = JSON
    quiet: bool = flag("-q", "--quiet", help="No progress.")
    lang: Language | None = LANG


@command(_Options)
def compare(options: _Options) -> Answer:
    """Say which measurement is faster, how surely, and at what cost.

    A, B, … are JSON files, folders of results (their newest) or FOLDER:ID.
    """
    from tfdyno.view.bench.compare_text import compare_text

    kept = options.recalibrate
    asked = options.estimate or kept
    sides = compare_all(options.measurements, least=1 if asked else 2)
    found = _gaps(sides, kept, options.quiet) if asked else (None,) * len(sides)
    columns = [_column(side, gap) for side, gap in zip(sides, found, strict=True)]
    clashes = [one.comparison for one in sides if one.comparison]
    refused = clashes and all(one.verdict == "not_comparable" for one in clashes)
    return Answer(
        document=partial(_document, columns, sides, found),
        text=partial(compare_text, columns),
        tail="".join(
            say(
                "\n\nKept: estimates of {title} start from {name} from now on.",
                title=one.measurement.task.title,
                name=one.name,
            )
            for one in columns
            if kept and one.estimate
        ),
        exit_code=UsageError.exit_code if refused else 0,
    )


def _gaps(sides: tuple[Side, ...], kept: bool, quiet: bool) -> tuple[Gap | None, ...]:
    from tfdyno.cli.progress import progress_line
    from tfdyno.jobs.choose.gap import gaps

    with progress_line(quiet=quiet, verbose=False) as progress:
        return gaps([side.measurement for side in sides], kept=kept, progress=progress)


def _column(side: Side, gap: Gap | None) -> Column:
    from tfdyno.view.bench.compare_text import Column
    from tfdyno.words.bench.comparison import gap_words, price_words

    task = side.measurement.task
    prices = tuple(
        price_words(task, one.offer, one.machines, one.samples_per_usd, one.usd_per_epoch)
        for one in side.priced.offers
    )
    return Column(
        name=side.name,
        place=side.place,
        measurement=side.measurement,
        summary=side.summary,
        comparison=side.comparison,
        prices=prices or (side.priced.reason,),
        estimate=gap_words(gap) if gap else "",
    )


def _document(
    columns: list[Column], sides: tuple[Side, ...], gaps: tuple[Gap | None, ...]
) -> dict[str, Any]:
    from tfdyno.core.base.codec import to_builtins
    from tfdyno.view.bench.compare_text import compare_document

    document: dict[str, Any] = compare_document(columns)
    for told, side, gap in zip(document["measurements"], sides, gaps, strict=True):
        told["price_performance"] = to_builtins(side.priced.offers)
        told["price_reason"] = side.priced.reason
        factor = {"ratio": gap.anchor.factor_ratio} if gap else {}
        told["gap"] = {**factor, **to_builtins(gap)} if gap else None
    return document
