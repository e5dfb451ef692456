"""``tfdyno gpus``: list, filter, compare and show the GPUs of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfdyno.catalog import gpus as catalog
from tfdyno.catalog import software
from tfdyno.cli.options import JSON, Filled
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.lookup.gpus import SORT_KEYS, GpuCard, card, choose, peaks_of
from tfdyno.view.base.text import colour_wanted, terminal_width
from tfdyno.view.lookup.gpus_text import comparison, gpu_detail, gpu_list

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu


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
    if tensorflow != software.NEWEST:
        software.check_release(tensorflow)
    if name and "," not in name:
        chosen: tuple[Gpu, ...] = (catalog.find(name),)
    elif name or compare:
        chosen = catalog.parse_list(name or compare or "")
    else:
        chosen = choose(filters, sort, slices=mig)
    if not chosen:
        raise UsageError("no GPU passes these filters", remedy="'tfdyno gpus' lists all")
    if as_json:
        _print_json([card(gpu, tensorflow) for gpu in chosen])
        return
    width, colour = terminal_width(), colour_wanted()
    peaks = [peaks_of(gpu) for gpu in chosen]
    if name and len(chosen) == 1:
        one = card(chosen[0], tensorflow)
        text = gpu_detail(
            one.gpu, peaks[0], one.warnings, one.tensorflow, one.slices, width=width, colour=colour
        )
    elif compare:
        support = [card(gpu, tensorflow).tensorflow for gpu in chosen]
        text = comparison(chosen, peaks, support, width=width, colour=colour)
    else:
        text = gpu_list(chosen, peaks, width=width, colour=colour)
    click.echo(text, color=colour)


def _print_json(cards: list[GpuCard]) -> None:
    from tfdyno.core.base.codec import to_json

    click.echo(to_json({"gpus": cards}, indent=2).decode())
