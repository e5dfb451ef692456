"""``tfdyno compare``: which measurement is faster, how sure that is, what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import JSON
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.bench.compare import compare_all

if TYPE_CHECKING:
    from tfdyno.core.choose.recalibration import Gap
    from tfdyno.jobs.bench.compare import Side
    from tfdyno.view.bench.compare_text import Column


@click.command()
@click.argument("measurements", nargs=-1, required=True, metavar="A B…")
@click.option("--estimate", is_flag=True, help="Say how far the estimate of each is off.")
@click.option(
    "--recalibrate", is_flag=True,
    help="Keep measured over estimated: later estimates of the same model use it.",
)  # fmt: skip
@JSON
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
def compare(
    measurements: tuple[str, ...], estimate: bool, recalibrate: bool, as_json: bool, quiet: bool
) -> int:
    """Say which measurement is faster, how surely, and at what cost.

    A, B, … are JSON files, folders of results (their newest) or FOLDER:ID.
    """
    asked = estimate or recalibrate
    sides = compare_all(measurements, least=1 if asked else 2)
    found = _gaps(sides, recalibrate, quiet) if asked else (None,) * len(sides)
    columns = [_column(side, gap) for side, gap in zip(sides, found, strict=True)]
    if as_json:
        _print_json(columns, sides, found)
    else:
        _print_text(columns, kept=recalibrate)
    clashes = [one for one in sides if one.comparison]
    refused = clashes and all(
        one.comparison and one.comparison.verdict == "not_comparable" for one in clashes
    )
    return UsageError.exit_code if refused else 0


def _gaps(sides: tuple[Side, ...], kept: bool, quiet: bool) -> tuple[Gap | None, ...]:
    from tfdyno.cli.progress import progress_line
    from tfdyno.jobs.choose.gap import gaps

    with progress_line(quiet=quiet, verbose=False) as progress:
        return gaps([side.measurement for side in sides], kept=kept, progress=progress)


def _column(side: Side, gap: Gap | None) -> Column:
    from tfdyno.view.bench.compare_text import Column
    from tfdyno.view.bench.compare_words import gap_words, price_words

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


def _print_text(columns: list[Column], *, kept: bool) -> None:
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.bench.compare_text import compare_text

    colour = colour_wanted()
    click.echo(compare_text(columns, width=terminal_width(), colour=colour), color=colour)
    for column in columns if kept else ():
        if column.estimate:
            title = column.measurement.task.title
            click.echo(f"\nKept: estimates of {title} start from {column.name} from now on.")


def _print_json(
    columns: list[Column], sides: tuple[Side, ...], gaps: tuple[Gap | None, ...]
) -> None:
    from tfdyno.core.base.codec import to_builtins, to_json
    from tfdyno.view.bench.compare_document import compare_document

    document: dict[str, Any] = compare_document(columns)
    for told, side, gap in zip(document["measurements"], sides, gaps, strict=True):
        told["price_performance"] = to_builtins(side.priced.offers)
        told["price_reason"] = side.priced.reason
        factor = {"ratio": gap.anchor.factor_ratio} if gap else {}
        told["gap"] = {**factor, **to_builtins(gap)} if gap else None
    click.echo(to_json(document, indent=2).decode())
