"""``tfdyno gpus``: list, filter, compare and show the GPUs of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfdyno.catalog import gpus as catalog
from tfdyno.catalog import software
from tfdyno.cli.options import JSON, Filled
from tfdyno.core.errors import UsageError
from tfdyno.jobs.gpus import SORT_KEYS, GpuCard, card, choose
from tfdyno.view.gpus_text import comparison, gpu_detail, gpu_list
from tfdyno.view.text import colour_wanted, terminal_width

if TYPE_CHECKING:
    from tfdyno.core.hardware import Gpu


@click.command()
@click.argument("name", required=False)
@click.option("--compare", type=Filled(), metavar="A,B,…", help="Put GPUs side by side.")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="EXPR",
    help="memory>=24GB, cc>=8.0, market=datacenter, tensor, or a word. May be repeated.",
)
@click.option("--sort", default="name", show_default=True, help=f"One of {', '.join(SORT_KEYS)}.")
@click.option("--mig", is_flag=True, help="List MIG slices too.")
@click.option(
    "--tensorflow",
    type=Filled(),
    default=software.NEWEST,
    show_default=True,
    metavar="X.Y",
    help="Release whose wheel is looked at.",
)
@JSON
def gpus(
    name: str | None,
    compare: str | None,
    filters: tuple[str, ...],
    sort: str,
    mig: bool,
    tensorflow: str,
    as_json: bool,
) -> None:
    """Show, filter and compare the GPUs of the catalogue.

    NAME is a slug, a marketing name ("RTX 4090"), a name as NVML reports it, or a MIG slice
    ("a100-sxm4-80gb:3g.40gb").
    """
    if name and (compare or filters):
        raise UsageError("give a name, or --compare, or --filter", why="they exclude each other")
    software.check_release(tensorflow)
    if name and "," not in name:
        chosen: tuple[Gpu, ...] = (catalog.find(name),)
    elif name or compare:
        chosen = catalog.parse_list(name or compare or "")
    else:
        chosen = choose(filters, sort, slices=mig)
    if not chosen:
        raise UsageError("no GPU passes these filters", remedy="'tfdyno gpus' lists all")
    cards = [card(gpu, tensorflow) for gpu in chosen]
    if as_json:
        _print_json(cards)
    else:
        text = _text(cards, detail=bool(name) and len(cards) == 1, side_by_side=bool(compare))
        click.echo(text, color=colour_wanted())


def _text(cards: list[GpuCard], *, detail: bool, side_by_side: bool) -> str:
    width, colour = terminal_width(), colour_wanted()
    found = [one.gpu for one in cards]
    peaks = [one.peak_flops_per_s for one in cards]
    if detail:
        one = cards[0]
        return gpu_detail(
            one.gpu, peaks[0], one.warnings, one.tensorflow, one.slices, width=width, colour=colour
        )
    if side_by_side:
        support = [one.tensorflow for one in cards]
        return comparison(found, peaks, support, width=width, colour=colour)
    return gpu_list(found, peaks, width=width, colour=colour)


def _print_json(cards: list[GpuCard]) -> None:
    from tfdyno.core.codec import to_json

    click.echo(to_json({"gpus": cards}, indent=2).decode())
