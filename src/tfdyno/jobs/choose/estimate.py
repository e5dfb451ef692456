"""Estimate the step of a workload on the cards that the user names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tfdyno.catalog.clusters import check_named_once, cluster_of, find_network, layout_of
from tfdyno.catalog.gpus import find
from tfdyno.catalog.links import (
    cannot_join,
    find_link,
    is_network,
    most_in_one_machine,
    own_network,
    usual_in_a_node,
)
from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.base.settings import MOST_REPLICAS, Route
from tfdyno.core.choose.card_file import CPU
from tfdyno.core.choose.estimate import Estimate
from tfdyno.core.choose.hardware import CPU_VENDOR, Gpu
from tfdyno.core.choose.scale_out import ScaleOut
from tfdyno.core.choose.sharding import Sharding
from tfdyno.core.choose.workload import Trace, Workload
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose._anchors import notes_on
from tfdyno.jobs.choose._sharded import compiled_sharding
from tfdyno.jobs.choose.exact import add_cached, add_compiled, verified_limit
from tfdyno.jobs.choose.foretold import without_xla
from tfdyno.jobs.choose.predict import (
    Predictor,
    StepSettings,
    check_batch,
    check_vendor,
    predictor_for,
    shared_batch,
)
from tfdyno.jobs.choose.scale_out import scale_outs, shardings
from tfdyno.jobs.choose.trace import Traced
from tfdyno.jobs.choose.verify import proved
from tfdyno.jobs.machine.card_files import sweep_notes
from tfdyno.words.base.language import say, say_later

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DETAILED_CARDS = 8
"""Up to so many cards the answer carries layers and roofline; more would be megabytes."""
NOT_COMPILED = say_later("Nothing was compiled: the step runs without XLA.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest(StepSettings):
    """What is asked of every card."""

    workload: Workload | Traced
    gpus: tuple[Gpu, ...]
    batch_size: int = 0
    """Samples of each replica; 0: the script's own, else Keras' default."""
    global_batch_size: int = 0
    """Sum over the replicas, held fixed; 0: the batch per replica is held."""
    replicas: tuple[int, ...] = (1,)
    nodes: tuple[int, ...] = ()
    """Machines, in the place of ``replicas``; each has ``gpus_per_node``."""
    route: Route = "auto"
    verify: bool | None = None
    """Compile at the largest batch itself; None: where one card is compiled for anyway."""
    fresh: bool = False
    card_files: bool = True
    """Whether the user's sweeps of cards count."""
    explain: bool = False
    """Whether to list the kernels behind every time with their formulas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Estimates in the order asked, with the trace that they rest on."""

    estimates: tuple[Estimate, ...]
    trace: Trace
    batch_source: str
    notes: tuple[str, ...]
    scaling: tuple[ScaleOut, ...] = ()
    """What more of each card bring; empty where one number of replicas was asked for."""
    sharding: tuple[Sharding, ...] = ()
    """How several cards would hold the batch that one of them does not hold alone."""


def estimate(request: EstimateRequest, *, progress: Callable[[str], None] = silent) -> Answer:
    """Answer a question; the quick route costs one trace, which is cached.

    Args:
        request: Workload, cards and settings.
        progress: Called with a line at every stage.

    Raises:
        UsageError: A setting is wrong or contradicts another, or the workload cannot be traced.
        ToolError: A child process failed.
    """
    check(request)
    request = counted(request)
    predictor = predictor_for(
        request.workload,
        request,
        batch_size=request.batch_size or _first_share(request),
        fresh=request.fresh,
        card_files=request.card_files,
        progress=progress,
    )
    predictor, notes = _by_route(predictor, request, progress)
    details = len(request.gpus) * len(request.replicas) <= DETAILED_CARDS
    found = tuple(
        _one(predictor, request, gpu, count, details)
        for gpu in request.gpus
        for count in request.replicas
    )
    if _verifies(request):
        found = tuple(verified_limit(predictor, one, progress) for one in found)
    compiling = None
    if request.route == "exact":
        compiling = partial(compiled_sharding, traced=predictor.traced, progress=progress)
    return Answer(
        estimates=found,
        trace=predictor.traced.trace,
        batch_source=_source(request, predictor),
        notes=(
            *notes,
            *network_notes(request, found),
            *without_xla(predictor, request.gpus if 1 in request.replicas else ()),
            *_measured(request, predictor),
            *sweep_notes(predictor.sweeps, tuple(one.swept_by for one in found)),
        ),
        scaling=scale_outs(
            request.gpus,
            found,
            lambda gpu: _one(predictor, request, gpu, 1, details=False),
            global_batch=bool(request.global_batch_size),
            samples_per_epoch=predictor.traced.trace.samples_per_epoch,
        ),
        sharding=shardings(request.gpus, found, predictor.cluster, compiling),
    )


def counted(request: EstimateRequest) -> EstimateRequest:
    """Tell ``nodes`` as replicas, and a network as one wherever it was named.

    What a network as the link joins is settled here, once for all counts of a series.
    """
    if request.link and is_network(find_link(request.link)):
        check_named_once(request.link, request.network)
        layout = 0 if request.nodes else layout_of(request.gpus, request.replicas)
        request = replace(request, link="", network=request.link,
                           gpus_per_node=request.gpus_per_node or layout)  # fmt: skip
    if not request.nodes:
        return request
    each = _gpus_of_a_node(request)
    replicas = tuple(count * each for count in request.nodes)
    return replace(request, replicas=replicas, gpus_per_node=each, nodes=())


def _gpus_of_a_node(request: EstimateRequest) -> int:
    return request.gpus_per_node or min(usual_in_a_node(gpu) for gpu in request.gpus)


def check(request: EstimateRequest) -> None:
    """Refuse a question that has no answer, before any work; raises ``UsageError``."""
    check_batch(request.batch_size)
    check_vendor(request.gpus)
    if request.batch_size and request.global_batch_size:
        raise UsageError(
            "give --batch-size or --global-batch, not both",
            why="one is the batch of a replica, the other the sum over all of them",
        )
    _check_processors(request)
    _check_link(request)
    _check_nodes(request)
    request = counted(request)
    _check_explained(request)
    if request.verify and request.route == "quick":
        raise UsageError("--verify needs the compiler", remedy="leave --route quick out")
    for count in request.replicas:
        if not 1 <= count <= MOST_REPLICAS:
            raise UsageError(
                f"{count} replicas are not possible", remedy=f"give 1 to {MOST_REPLICAS}"
            )
        if request.global_batch_size:
            check_batch(shared_batch(request.global_batch_size, count))
    _check_cluster(request)


def _check_processors(request: EstimateRequest) -> None:
    """Refuse what the processors of a machine do not do."""
    if not any(gpu.vendor == CPU_VENDOR for gpu in request.gpus):
        return
    wrong = {
        "--explain": request.explain,
        "--route exact": request.route == "exact",
        "--verify": bool(request.verify),
        "--execution xla": request.execution not in ("", "graph"),
        "--replicas": request.replicas != (1,) or bool(request.nodes),
        "a precision of 16 bits": request.precision not in ("", "float32", "tf32"),
    }
    for what, asked in wrong.items():
        if asked:
            raise UsageError(
                f"{what} is not for cpu", why="its sweep is of TensorFlow's graph in float32",
                remedy="leave it out",
            )  # fmt: skip


def _check_nodes(request: EstimateRequest) -> None:
    each = _gpus_of_a_node(request)
    for count in request.nodes:
        if not 1 <= count <= MOST_REPLICAS // each:
            raise UsageError(
                f"{count:,} nodes of {each} are not possible",
                why=f"they have {count * each:,} GPUs",
                remedy=f"give 1 to {max(1, MOST_REPLICAS // each)} nodes",
            )


def _check_cluster(request: EstimateRequest) -> None:
    """Refuse nodes that nothing joins, before any work."""
    if request.network:
        find_network(request.network)
    if not request.network and not request.gpus_per_node:
        return
    for gpu in request.gpus:
        for count in request.replicas:
            cluster_of(
                gpu,
                count,
                link=request.link,
                network=request.network,
                gpus_per_node=request.gpus_per_node,
            )


def _check_explained(request: EstimateRequest) -> None:
    rows = len(request.gpus) * len(request.replicas)
    if request.explain and rows > DETAILED_CARDS:
        raise UsageError(
            f"--explain answers for {DETAILED_CARDS} rows at most, not for {rows}",
            why="every card has a list of its own",
            remedy="name fewer cards, or fewer counts of replicas",
        )


def _check_link(request: EstimateRequest) -> None:
    link = find_link(request.link) if request.link else None
    reasons = [cannot_join(gpu, link) for gpu in request.gpus] if link else []
    if link and any(reasons):
        raise UsageError(
            f"{link.slug} does not join these cards",
            why=next(filter(None, reasons)),
            remedy="leave --link out, or name one that they have",
        )


def _without_network(found: Sequence[Estimate]) -> tuple[str, ...]:
    """Return a note where replicas fill more than one machine and no network was named."""
    for one in found:
        if one.gpu == CPU:
            continue
        gpu = find(one.gpu)
        most = most_in_one_machine(gpu)
        joined = one.network or (one.link and is_network(find_link(one.link)))
        if one.link and one.replicas > most and not joined:
            return (
                say(
                    "More than {most} x {gpu} need several machines: the network between them "
                    "is not in these numbers; name it with --network.",
                    most=most,
                    gpu=gpu.name,
                ),
            )
    return ()


def network_notes(request: EstimateRequest, found: Sequence[Estimate]) -> tuple[str, ...]:
    """Note networks: one that lacks, that no number has in it, or that was assumed."""
    if found[0].mode != "train":
        return ()
    notes = _without_network(found)
    if request.network and all(one.nodes == 1 for one in found):
        notes += (
            say(
                "{network} joins machines, and one machine holds these GPUs: it is not in "
                "these numbers; give --nodes, or --gpus-per-node.",
                network=request.network,
            ),
        )
    if not request.network:
        joined = (one for one in found if one.nodes > 1)
        alone = next(((find(one.gpu), one.network) for one in joined), None)
        if alone and own_network(alone[0]):
            notes += (
                say(
                    "{gpu} is the only GPU of its machine: {network} is taken between them; "
                    "name another with --network.",
                    gpu=alone[0].name,
                    network=alone[1],
                ),
            )
    return notes


def _measured(request: EstimateRequest, predictor: Predictor) -> tuple[str, ...]:
    """Return a note where the user's own measurements moved the times."""
    cards = {gpu.slug: predictor.recalibration(gpu, replicas=request.replicas[0])
             for gpu in request.gpus}  # fmt: skip
    return notes_on(cards.items())


def _by_route(
    predictor: Predictor, request: EstimateRequest, progress: Callable[[str], None]
) -> tuple[Predictor, tuple[str, ...]]:
    if request.route == "quick":
        return predictor, ()
    if request.route == "auto" and not request.verify:
        return add_cached(predictor, request.gpus), ()

    def is_compiled(gpu: Gpu) -> bool:
        return any(predictor.execution_on(gpu, count) == "xla" for count in request.replicas)

    gpus = tuple(filter(is_compiled, request.gpus))
    if not gpus:
        return predictor, (say(NOT_COMPILED),)
    compiled, notes = add_compiled(predictor, gpus, progress=progress)
    if _single(request):
        try:
            size = _first_share(request) or compiled.batch_size
            compiled = proved(compiled, request.gpus[0], size, progress)
        except ToolError as error:
            notes += (
                say(
                    "Memory is that of a program for every batch: {reason}.",
                    reason=str(error).rstrip("."),
                ),
            )
    return replace(compiled, exact_time=True), notes


def _one(
    predictor: Predictor, request: EstimateRequest, gpu: Gpu, count: int, details: bool
) -> Estimate:
    total = request.global_batch_size
    size = shared_batch(total, count) if total else predictor.batch_size
    try:
        return predictor.estimate(
            gpu, replicas=count, batch_size=size, details=details, explained=request.explain
        )
    except ValueError as error:  # the arithmetic refuses: say for which card and why
        raise TfdynoError(f"no estimate for {count} x {gpu.name}", why=str(error)) from error


def _verifies(request: EstimateRequest) -> bool:
    if request.verify is None:
        return request.route == "exact" and _single(request)
    return request.verify


def _single(request: EstimateRequest) -> bool:
    return len(request.gpus) * len(request.replicas) == 1


def _first_share(request: EstimateRequest) -> int:
    total = request.global_batch_size
    return shared_batch(total, request.replicas[0]) if total else 0


def _source(request: EstimateRequest, predictor: Predictor) -> str:
    if request.global_batch_size:
        return say(
            "a global batch of {batch:,}, shared",
            batch=request.global_batch_size,
        )
    return predictor.batch_source
