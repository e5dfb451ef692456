"""What ``tfdyno advise`` is asked, of a training or of a service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

from tfdyno.cli.command import PATH, flag, option
from tfdyno.cli.options import HTML, LANG, Filled, OneOf, Positive, Whole, Wholes
from tfdyno.cli.workload_options import PredictOptions
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.language import Language
from tfdyno.core.base.settings import MOST_STEPS
from tfdyno.core.choose.advice import Scenario

if TYPE_CHECKING:
    from tfdyno.jobs.choose.market import Conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(PredictOptions):
    """What is typed."""

    backends: bool = flag(
        help="Set TensorFlow's graph, TensorFlow with XLA and JAX side by side on --gpu instead."
    )
    all_fits: bool = flag(help="Add up every call of fit in the script: --fit names one.")
    steps: int | None = option(
        type=Whole("steps", most=MOST_STEPS), help="Optimizer steps, on any number of GPUs."
    )
    epochs: int | None = option(
        type=Whole("epochs"), help="Passes over the data, which GPUs share."
    )
    samples: int | None = option(type=Whole("samples"), help="Samples in one epoch.")
    deadline_h: float | None = option(
        type=Positive("deadline"), metavar="HOURS", help="Finish in time."
    )
    budget_usd: float | None = option(type=Positive("budget"), metavar="US$", help="Cost at most.")
    scenario: Scenario = option(
        type=OneOf("scenario", get_args(Scenario)), default="research", show_default=True,
        help="What the machine is for; see the how-to.",
    )  # fmt: skip
    provider: str | None = option(type=Filled(), metavar="A,B,…", help="Only these providers.")
    gpu: str | None = option(type=Filled(), metavar="A,B,…", help="Only these GPUs or MIG slices.")
    owned: str | None = option(type=Filled(), metavar="A,B,…", help="Cards that you have already.")
    offers: Path | None = option(type=PATH, metavar="FILE", help="Your own prices.")
    spot: bool | None = flag(
        "--spot/--no-spot", default=None, help="Only spot capacity, or none of it."
    )
    counts: tuple[int, ...] | None = option(
        "--count", "--replicas", type=Wholes("count"), help="Only so many GPUs at once."
    )
    max_nodes: int | None = option(
        type=Whole("nodes"), help="Weigh up to so many machines together."
    )
    network: str | None = option(
        type=Filled(), metavar="[PORTSx]SLUG",
        help="What joins the machines: 8xib-ndr-400, efa-v2-p5.",
    )  # fmt: skip
    feed: Path | None = option(
        type=PATH, metavar="FILE",
        help="Input as data bench measured it: vCPUs may hold GPUs back.",
    )  # fmt: skip
    requests_per_day: float | None = option(
        type=Positive("requests per day"), metavar="N", help="Serve: requests to answer."
    )
    p99_ms: float | None = option(
        type=Positive("p99"), metavar="MS", help="Serve: 99 of 100 are answered within."
    )
    peak_factor: float | None = option(
        type=Positive("peak factor"), metavar="K",
        help="Serve: busiest rate over the mean.  [default: 3]",
    )  # fmt: skip
    rows_per_request: int | None = option(
        type=Whole("rows per request"), help="Serve: samples in a request.  [default: 1]"
    )
    payload: str | None = option(
        type=OneOf("payload", ("json", "binary")),
        help="Serve: what requests come as.  [default: json]",
    )
    spare: int | None = option(
        type=Whole("spare machines", least=0, most=100),
        help="Serve: machines beyond the peak's; 1 is N+1.  [default: 0]",
    )
    measured: Path | None = option(
        type=PATH, metavar="FILE",
        help="Serve: latency by batch of a machine of yours, such as a CPU.",
    )  # fmt: skip
    usd_per_h: float | None = option(
        type=Positive("price"),
        metavar="US$",
        help="Your own price of the machine: of --gpu and --count, or of --measured.",
    )
    output: Path | None = option(type=PATH, metavar="FILE", help="Serve: write the answer as JSON.")
    show_all: bool = flag("--all", help="Show every row.")
    html: Path | None = HTML
    lang: Language | None = LANG


def conditions_of(options: Options) -> Conditions:
    """Return what is ruled out, and what there is already; raises ``UsageError``."""
    from tfdyno.catalog.gpus import parse_list
    from tfdyno.jobs.choose.market import Conditions

    names = (name.strip().lower() for name in (options.provider or "").split(","))
    return Conditions(
        gpus=parse_list(options.gpu) if options.gpu else (),
        providers=tuple(filter(None, names)),
        counts=options.counts or (),
        spot=options.spot,
        owned=parse_list(options.owned) if options.owned else (),
        offers_file=options.offers,
        scenario=options.scenario,
        max_nodes=options.max_nodes or 1,
        usd_per_h=0.0 if options.measured else options.usd_per_h or 0.0,
    )
