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
from tfdyno.jobs.choose._scale_out import scale_outs, shardings
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
from tfdyno.jobs.choose.trace import Traced
from tfdyno.jobs.choose.verify import proved
from tfdyno.jobs.machine.card_files import sweep_notes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

DETAILED_CARDS = 8
"""Up to so many cards the answer carries layers and roofline; more would be megabytes."""
NOT_COMPILED = "Nothing was compiled: the step runs without XLA."


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


def estimate(question: EstimateRequest, *, progress: Callable[[str], None] = silent) -> Answer:
    """Answer a question; the quick route costs one trace, which is cached.

    Args:
        question: Workload, cards and settings.
        progress: Called with a line at every stage.

    Raises:
        UsageError: A setting is wrong or contradicts another, or the workload cannot be traced.
        ToolError: A child process failed.
    """
    check(question)
    question = counted(question)
    predictor = predictor_for(
        question.workload,
        question,
        batch_size=question.batch_size or _first_share(question),
        fresh=question.fresh,
        card_files=question.card_files,
        progress=progress,
    )
    predictor, notes = _by_route(predictor, question, progress)
    details = len(question.gpus) * len(question.replicas) <= DETAILED_CARDS
    found = tuple(
        _one(predictor, question, gpu, count, details)
        for gpu in question.gpus
        for count in question.replicas
    )
    if _verifies(question):
        found = tuple(verified_limit(predictor, one, progress) for one in found)
    compiling = None
    if question.route == "exact":
        compiling = partial(compiled_sharding, traced=predictor.traced, progress=progress)
    return Answer(
        estimates=found,
        trace=predictor.traced.trace,
        batch_source=_source(question, predictor),
        notes=(
            *notes,
            *network_notes(question, found),
            *without_xla(predictor, question.gpus if 1 in question.replicas else ()),
            *_measured(question, predictor),
            *sweep_notes(predictor.sweeps, tuple(one.swept_by for one in found)),
        ),
        scaling=scale_outs(
            question.gpus,
            found,
            lambda gpu: _one(predictor, question, gpu, 1, details=False),
            global_batch=bool(question.global_batch_size),
            samples_per_epoch=predictor.traced.trace.samples_per_epoch,
        ),
        sharding=shardings(question.gpus, found, predictor.cluster, compiling),
    )


def counted(question: EstimateRequest) -> EstimateRequest:
    """Tell ``nodes`` as replicas, and a network as one wherever it was named.

    What a network as the link joins is settled here, once for all counts of a series.
    """
    if question.link and is_network(find_link(question.link)):
        check_named_once(question.link, question.network)
        layout = 0 if question.nodes else layout_of(question.gpus, question.replicas)
        question = replace(question, link="", network=question.link,
                           gpus_per_node=question.gpus_per_node or layout)  # fmt: skip
    if not question.nodes:
        return question
    each = _gpus_of_a_node(question)
    replicas = tuple(count * each for count in question.nodes)
    return replace(question, replicas=replicas, gpus_per_node=each, nodes=())


def _gpus_of_a_node(question: EstimateRequest) -> int:
    return question.gpus_per_node or min(usual_in_a_node(gpu) for gpu in question.gpus)


def check(question: EstimateRequest) -> None:
    """Refuse a question that has no answer, before any work; raises ``UsageError``."""
    check_batch(question.batch_size)
    check_vendor(question.gpus)
    if question.batch_size and question.global_batch_size:
        raise UsageError(
            "give --batch-size or --global-batch, not both",
            why="one is the batch of a replica, the other the sum over all of them",
        )
    _check_processors(question)
    _check_link(question)
    _check_nodes(question)
    question = counted(question)
    _check_explained(question)
    if question.verify and question.route == "quick":
        raise UsageError("--verify needs the compiler", remedy="leave --route quick out")
    for count in question.replicas:
        if not 1 <= count <= MOST_REPLICAS:
            raise UsageError(
                f"{count} replicas are not possible", remedy=f"give 1 to {MOST_REPLICAS}"
            )
        if question.global_batch_size:
            check_batch(shared_batch(question.global_batch_size, count))
    _check_cluster(question)


def _check_processors(question: EstimateRequest) -> None:
    """Refuse what the processors of a machine do not do."""
    if not any(gpu.vendor == CPU_VENDOR for gpu in question.gpus):
        return
    wrong = {
        "--explain": question.explain,
        "--route exact": question.route == "exact",
        "--verify": bool(question.verify),
        "--execution xla": question.execution not in ("", "graph"),
        "--replicas": question.replicas != (1,) or bool(question.nodes),
        "a precision of 16 bits": question.precision not in ("", "float32", "tf32"),
    }
    for what, asked in wrong.items():
        if asked:
            raise UsageError(
                f"{what} is not for cpu", why="its sweep is of TensorFlow's graph in float32",
                remedy="leave it out",
            )  # fmt: skip


def _check_nodes(question: EstimateRequest) -> None:
    each = _gpus_of_a_node(question)
    for count in question.nodes:
        if not 1 <= count <= MOST_REPLICAS // each:
            raise UsageError(
                f"{count:,} nodes of {each} are not possible",
                why=f"they have {count * each:,} GPUs",
                remedy=f"give 1 to {max(1, MOST_REPLICAS // each)} nodes",
            )


def _check_cluster(question: EstimateRequest) -> None:
    """Refuse nodes that nothing joins, before any work."""
    if question.network:
        find_network(question.network)
    if not question.network and not question.gpus_per_node:
        return
    for gpu in question.gpus:
        for count in question.replicas:
            cluster_of(
                gpu,
                count,
                link=question.link,
                network=question.network,
                gpus_per_node=question.gpus_per_node,
            )


def _check_explained(question: EstimateRequest) -> None:
    rows = len(question.gpus) * len(question.replicas)
    if question.explain and rows > DETAILED_CARDS:
        raise UsageError(
            f"--explain answers for {DETAILED_CARDS} rows at most, not for {rows}",
            why="every card has a list of its own",
            remedy="name fewer cards, or fewer counts of replicas",
        )


def _check_link(question: EstimateRequest) -> None:
    link = find_link(question.link) if question.link else None
    reasons = [cannot_join(gpu, link) for gpu in question.gpus] if link else []
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
                f"More than {most} x {gpu.name} need several machines: the network between them "
                "is not in these numbers; name it with --network.",
            )
    return ()


def network_notes(question: EstimateRequest, found: Sequence[Estimate]) -> tuple[str, ...]:
    """Note networks: one that lacks, that no number has in it, or that was assumed."""
    if found[0].mode != "train":
        return ()
    notes = _without_network(found)
    if question.network and all(one.nodes == 1 for one in found):
        notes += (
            f"{question.network} joins machines, and one machine holds these GPUs: it is not in "
            "these numbers; give --nodes, or --gpus-per-node.",
        )
    if not question.network:
        joined = (one for one in found if one.nodes > 1)
        alone = next(((find(one.gpu), one.network) for one in joined), None)
        if alone and own_network(alone[0]):
            notes += (
                f"{alone[0].name} is the only GPU of its machine: {alone[1]} is taken between "
                "them; name another with --network.",
            )
    return notes


def _measured(question: EstimateRequest, predictor: Predictor) -> tuple[str, ...]:
    """Return a note where the user's own measurements moved the times."""
    cards = {gpu.slug: predictor.recalibration(gpu, replicas=question.replicas[0])
             for gpu in question.gpus}  # fmt: skip
    return notes_on(cards.items())


def _by_route(
    predictor: Predictor, question: EstimateRequest, progress: Callable[[str], None]
) -> tuple[Predictor, tuple[str, ...]]:
    if question.route == "quick":
        return predictor, ()
    if question.route == "auto" and not question.verify:
        return add_cached(predictor, question.gpus), ()

    def is_compiled(gpu: Gpu) -> bool:
        return any(predictor.execution_on(gpu, count) == "xla" for count in question.replicas)

    gpus = tuple(filter(is_compiled, question.gpus))
    if not gpus:
        return predictor, (NOT_COMPILED,)
    compiled, notes = add_compiled(predictor, gpus, progress=progress)
    if _single(question):
        try:
            size = _first_share(question) or compiled.batch_size
            compiled = proved(compiled, question.gpus[0], size, progress)
        except ToolError as error:
            notes += (f"Memory is that of a program for every batch: {str(error).rstrip('.')}.",)
    return replace(compiled, exact_time=True), notes


def _one(
    predictor: Predictor, question: EstimateRequest, gpu: Gpu, count: int, details: bool
) -> Estimate:
    total = question.global_batch_size
    size = shared_batch(total, count) if total else predictor.batch_size
    try:
        return predictor.estimate(
            gpu, replicas=count, batch_size=size, details=details, explained=question.explain
        )
    except ValueError as error:  # the arithmetic refuses: say for which card and why
        raise TfdynoError(f"no estimate for {count} x {gpu.name}", why=str(error)) from error


def _verifies(question: EstimateRequest) -> bool:
    if question.verify is None:
        return question.route == "exact" and _single(question)
    return question.verify


def _single(question: EstimateRequest) -> bool:
    return len(question.gpus) * len(question.replicas) == 1


def _first_share(question: EstimateRequest) -> int:
    total = question.global_batch_size
    return shared_batch(total, question.replicas[0]) if total else 0


def _source(question: EstimateRequest, predictor: Predictor) -> str:
    if question.global_batch_size:
        return f"a global batch of {question.global_batch_size:,}, shared"
    return predictor.batch_source
