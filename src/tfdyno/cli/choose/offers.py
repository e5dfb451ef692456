"""``tfdyno offers``: priced machines with the date and age of each price."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

import click

from tfdyno.catalog.offers import rejected_in
from tfdyno.cli.options import JSON, Filled, OneOf
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.lookup.offers import PricedOffer, SortKey, list_offers
from tfdyno.view.base.text import colour_wanted, terminal_width
from tfdyno.view.lookup.offers_text import left_out_note, offer_list


@click.command()
@click.option("--gpu", type=Filled(), metavar="A,B,…", help="Only these GPUs.")
@click.option("--provider", type=Filled(), metavar="A,B,…", help="Only these providers.")
@click.option("--spot/--on-demand", default=None, help="Only one kind of price.")
@click.option(
    "--sort",
    type=OneOf("order", get_args(SortKey)),
    default="price",
    show_default=True,
    help="price is per GPU, machine per machine.",
)
@click.option(
    "--offers",
    "extra",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A price list of your own that goes first.",
)
@JSON
def offers(
    gpu: str | None,
    provider: str | None,
    spot: bool | None,
    sort: str,
    extra: Path | None,
    as_json: bool,
) -> None:
    """List cloud offers with price, date and age."""
    found = list_offers(
        gpu=gpu or "",
        provider=provider or "",
        spot=spot,
        sort=cast("SortKey", sort),
        extra=extra,
    )
    if as_json:
        _print_json(found)
        return
    if not found:
        raise UsageError("no offer matches", remedy="'tfdyno offers' lists all")
    _tell_left_out(extra)
    lines = [(one.offer, one.usd_per_gpu_h, one.age_days, one.staleness) for one in found]
    colour = colour_wanted()
    click.echo(offer_list(lines, width=terminal_width(), colour=colour), color=colour)


def _tell_left_out(extra: Path | None) -> None:
    """One line on the rows of the user's list that break a rule, before the prices."""
    reasons = [one.reasons for one in rejected_in(extra)] if extra else []
    if reasons:
        click.echo(f"{left_out_note(str(extra), reasons)}\n")


def _print_json(found: tuple[PricedOffer, ...]) -> None:
    from tfdyno.core.base.codec import to_json

    click.echo(to_json({"offers": found}, indent=2).decode())
