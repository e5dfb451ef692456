"""``tfdyno gpus``: list, filter, compare and show the GPUs of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.catalog import gpus as catalog
from tfdyno.catalog import software
from tfdyno.cli.answer import Answer
from tfdyno.cli.command import TEXT, argument, command, flag, many, option
from tfdyno.cli.options import JSON, LANG, Filled
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import Language
from tfdyno.jobs.lookup.gpus import SORT_KEYS, card, choose, peaks_of
from tfdyno.view.lookup.gpus_text import comparison, gpu_detail, gpu_list

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    name: str | None = argument(type=TEXT, required=False)
    compare: str | None = option(type=Filled(), metavar="A,B,…", help="Put GPUs side by side.")
    filters: tuple[str, ...] = many(
        "--filter", type=TEXT, metavar="EXPR",
        help="memory>=24GB, cc>=8.0, market=datacenter, tensor, or a word. May be repeated.",
    )  # fmt: skip
    sort: str = option(
        type=TEXT, default="name", show_default=True, help=f"One of {', '.join(SORT_KEYS)}."
    )
    mig: bool = flag(help="List MIG slices too.")
    tensorflow: str = option(
        type=Filled(), default=software.NEWEST, show_default=True, metavar="X.Y",
        help="Release whose wheel is looked at.",
    )  # fmt: skip
    lang: Language | None = LANG
    as_json: bool = JSON


@command(_Options)
def gpus(options: _Options) -> Answer:
    """Show, filter and compare the GPUs of the catalogue.

    NAME is a slug, a marketing name ("RTX 4090"), a name as NVML reports it, or a MIG slice
    ("a100-sxm4-80gb:3g.40gb").
    """
    name, release = options.name, options.tensorflow
    if name and (options.compare or options.filters):
        raise UsageError("give a name, or --compare, or --filter", why="they exclude each other")
    if release != software.NEWEST:
        software.check_release(release)
    if name and "," not in name:
        chosen: tuple[Gpu, ...] = (catalog.find(name),)
    elif name or options.compare:
        chosen = catalog.parse_list(name or options.compare or "")
    else:
        chosen = choose(options.filters, options.sort, slices=options.mig)
    if not chosen:
        raise UsageError("no GPU passes these filters", remedy="'tfdyno gpus' lists all")

    def text(*, width: int, colour: bool) -> str:
        peaks = [peaks_of(gpu) for gpu in chosen]
        if name and len(chosen) == 1:
            one = card(chosen[0], release)
            return gpu_detail(one.gpu, peaks[0], one.warnings, one.tensorflow, one.slices,
                              width=width, colour=colour)  # fmt: skip
        if options.compare:
            support = [card(gpu, release).tensorflow for gpu in chosen]
            return comparison(chosen, peaks, support, width=width, colour=colour)
        return gpu_list(chosen, peaks, width=width, colour=colour)

    return Answer(document=lambda: {"gpus": [card(gpu, release) for gpu in chosen]}, text=text)
