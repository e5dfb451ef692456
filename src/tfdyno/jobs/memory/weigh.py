"""Where the memory of a step goes, whether it lies in fragments, and how to make it fit a card."""

from __future__ import annotations

import contextlib
import hashlib
import shlex
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.families import keeps_dear
from tfdyno.catalog.gpus import find
from tfdyno.core.base import settings
from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.base.settings import Route
from tfdyno.core.base.units import format_bytes
from tfdyno.core.choose.hardware import Gpu
from tfdyno.core.choose.memory_answer import MemoryAnswer
from tfdyno.core.choose.memory_map import CardMemory, MemoryMap
from tfdyno.core.choose.workload import Workload
from tfdyno.core.doctor.finding import Evidence, Finding
from tfdyno.core.messages.memory import MEMORY_MAP, MapMemory
from tfdyno.core.messages.wire import fields_of
from tfdyno.jobs.child.worker import run_child, silent
from tfdyno.jobs.choose.estimate import DETAILED_CARDS, EstimateRequest, estimate
from tfdyno.jobs.choose.predict import StepSettings, check_batch, check_vendor, predictor_for
from tfdyno.jobs.choose.trace import Traced, code_digest
from tfdyno.jobs.memory._fine_tunes import fine_tunes
from tfdyno.jobs.memory._plan import memory_plan
from tfdyno.jobs.memory._weighing import Wish
from tfdyno.jobs.memory.fitting_batch import named_cards
from tfdyno.rules.causes import cause
from tfdyno.rules.match import Match
from tfdyno.rules.wording import finding
from tfdyno.store.cache import default_cache
from tfdyno.words.base.amounts import of_gib
from tfdyno.words.base.language import say, spoken
from tfdyno.words.memory.plan import weighed_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.memory_map import AllocatorNeed
    from tfdyno.core.choose.memory_plan import MemoryPlan
    from tfdyno.core.choose.workload import HubModel, Trace
    from tfdyno.jobs.choose.predict import Predictor
    from tfdyno.jobs.doctor.doctor import Examined

OOM, HOST_OOM = "mem.oom_model", "mem.host_oom"
FRAGMENTED, NOTHING_FITS = "mem.fragmented", "mem.nothing_fits"
TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked."""

    workload: Workload | None = None
    """None: only the log is read."""
    gpus: tuple[Gpu, ...] = ()
    batch_size: int = 0
    """Samples of each replica; 0: the script's own, else Keras' default."""
    precision: str = ""
    execution: str = ""
    route: Route = "auto"
    fresh: bool = False
    plan: bool = False
    optimizers: tuple[str, ...] | None = None
    """The optimizers to weigh in a plan; None: where they may help."""
    log: str = ""
    """File of a run that ran out of memory; ``-``: standard input."""


def memory(asked: Asked, *, progress: Callable[[str], None] = silent) -> MemoryAnswer:
    """Answer: what the step holds on each card, what the log says, and the plan of each card.

    Args:
        asked: A workload with its cards, a log, or both.
        progress: Called with a line at every stage.

    Raises:
        UsageError: Neither a workload nor a log is given, a setting is wrong, the log cannot be
            read, or the workload cannot be traced.
        ToolError: A child process failed.
    """
    check(asked)
    log = _explained(asked.log) if asked.log else None
    found = _of_log(log) if log else MemoryAnswer(names={})
    if asked.workload is None:
        return found
    gpus = asked.gpus or (named_cards(log) if log else ())
    answer = _of_workload(asked.workload, replace(asked, gpus=gpus), progress)
    findings = (*found.findings, *answer.findings)
    return replace(answer, log=found.log, oom=found.oom, findings=findings)


def check(asked: Asked) -> None:
    """Refuse what has no answer, before any work; raises ``UsageError``."""
    if asked.workload is None:
        if not asked.log:
            raise UsageError("name a workload, or a log with --log")
        if asked.plan or asked.gpus:
            raise UsageError("a card and a plan go with a workload", remedy="name it first")
        return
    if not asked.gpus and not asked.log:
        raise UsageError("name the card with --gpu", remedy="see 'tfdyno gpus'")
    if len(asked.gpus) > DETAILED_CARDS:
        raise UsageError(
            f"the memory of {DETAILED_CARDS} cards is shown at most, not of {len(asked.gpus)}",
            remedy="name fewer, or ask 'tfdyno estimate' for all",
        )
    check_batch(asked.batch_size)
    check_vendor(asked.gpus)
    if asked.execution:
        settings.one_of(asked.execution, settings.TRAINED_EXECUTIONS, "execution")
    if asked.plan and asked.workload.kind == "step_function":
        what = f"there is no plan for {asked.workload.reference}"
        raise UsageError(what, why="a plan is for a training run by fit")


def _explained(log: str) -> Examined:
    """Return what the doctor says of a log; raises ``UsageError`` where no memory ran out in it."""
    from tfdyno.jobs.doctor.doctor import explain
    from tfdyno.probe.files.log_file import read_log

    found = explain(read_log(None if log == "-" else Path(log)), language=spoken())
    if found.oom is None and not any(
        one.cause in (OOM, HOST_OOM) for one in found.diagnosis.findings
    ):
        raise UsageError(
            f"{'the log' if log == '-' else log} shows no exhausted memory",
            remedy=f"ask 'tfdyno doctor --explain {log}' what it shows",
        )
    return found


def _of_log(log: Examined) -> MemoryAnswer:
    found = log.diagnosis
    return MemoryAnswer(names={}, log=found, oom=log.oom, findings=found.findings)


def _of_workload(workload: Workload, asked: Asked, progress: Callable[[str], None]) -> MemoryAnswer:
    if asked.plan and asked.precision and workload.hub:
        _trace_ahead(workload, workload.hub, asked)
    own = predictor_for(
        workload,
        StepSettings(precision=asked.precision, execution=asked.execution),
        batch_size=asked.batch_size,
        fresh=asked.fresh,
        progress=progress,
    )
    request = EstimateRequest(
        workload=own.traced,
        gpus=asked.gpus,
        batch_size=asked.batch_size,
        precision=asked.precision,
        execution=asked.execution,
        route=asked.route,
        verify=False if asked.route != "exact" else None,
    )
    answer = estimate(request, progress=progress)
    cards = tuple(
        CardMemory(estimate=one, map=memory_map(own, gpu, one, progress))
        for gpu, one in zip(asked.gpus, answer.estimates, strict=True)
    )
    wish = Wish(
        fixed_precision=bool(asked.precision),
        optimizers=asked.optimizers,
        route=asked.route,
    )
    plans = tuple(
        memory_plan(own, gpu, wish, progress=progress) for gpu in asked.gpus if asked.plan
    )
    return MemoryAnswer(
        cards=cards,
        names={gpu.slug: gpu.name for gpu in asked.gpus},
        trace=answer.trace,
        batch_source=own.batch_source,
        plans=plans,
        findings=tuple(memory_findings(cards, plans, answer.trace)),
        notes=answer.notes,
    )


def _trace_ahead(workload: Workload, hub: HubModel, asked: Asked) -> None:
    """Trace a preset's first other way to be trained while the preset itself is traced.

    It takes as long, and is wanted next where the preset does not fit. What comes of it lies in
    the cache; whoever wants it meanwhile waits for it there.
    """
    ways = fine_tunes(hub, 0)
    if not ways:
        return
    ahead = replace(workload, hub=replace(hub, fine_tune=ways[0]))
    settings_of_step = StepSettings(precision=asked.precision, execution=asked.execution)

    def trace() -> None:
        with contextlib.suppress(TfdynoError):  # who wants it is told
            predictor_for(
                ahead, settings_of_step, batch_size=asked.batch_size, fresh=asked.fresh,
                progress=silent,
            )  # fmt: skip

    threading.Thread(target=trace, daemon=True).start()


def memory_findings(
    cards: Sequence[CardMemory], plans: Sequence[MemoryPlan], trace: Trace
) -> Iterator[Finding]:
    """Yield all findings."""
    needs = (one.map.allocator for one in cards)
    yield from (_fragments(need) for need in needs if need and need.is_fragmented)
    yield from (_nothing_fits(plan, trace) for plan in plans if plan.chosen is None)


def _fragments(need: AllocatorNeed) -> Finding:
    """Say that one step alone does not fit for its fragments, by the allocator's own rules."""
    free, piece = format_bytes(need.free_bytes), format_bytes(need.largest_free_bytes)
    text = say(
        "{size} are asked for, {free} are free, the largest piece {piece}",
        size=format_bytes(need.failed_bytes),
        free=free,
        piece=piece,
    )
    source = say("one step replayed by the allocator's rules from an empty pool")
    match = Match(
        cause=FRAGMENTED,
        verdict="likely",
        evidence=(Evidence(text=text, source=source),),
        basis="facts",
        values={"free": free, "piece": piece, "memory": "gpu", "system": "linux"},
    )  # fmt: skip
    return finding(cause(FRAGMENTED), match, {}, spoken())


def _nothing_fits(plan: MemoryPlan, trace: Trace) -> Finding:
    assert plan.closest is not None
    least = plan.closest.option
    words = of_gib(least.device_memory_bytes.best, least.usable_memory_bytes)
    text = say("{weighed}; the closest needs {memory}", weighed=weighed_words(plan), memory=words)
    match = Match(
        cause=NOTHING_FITS,
        verdict="proven" if least.verified else "likely",
        evidence=(
            Evidence(text=text, source="estimate"),
        ),
        basis="facts",
        values={
            "workload": trace.title,
            "card": find(plan.gpu).name,
            "least": words,
            "reference": shlex.quote(trace.workload.reference),
        },
    )  # fmt: skip
    return finding(cause(NOTHING_FITS), match, {}, spoken())


def memory_map(
    own: Predictor, gpu: Gpu, found: Estimate, progress: Callable[[str], None]
) -> MemoryMap:
    """Return the memory of the step of an estimate, from the cache or from a child.

    Args:
        own: The traced step.
        gpu: The card.
        found: What was estimated on it.
        progress: Called with a line at every stage.

    Raises:
        ToolError: The child failed.
    """
    from tfdyno.model.time.peaks import has_bfloat16

    traced, xla = own.traced, own.execution_on(gpu) == "xla"
    request = MapMemory(
        tensors=traced.trace.tensors,
        mode=traced.trace.workload.mode,
        traced_batch_size=traced.trace.batch_size,
        marker=traced.trace.marker,
        batch_size=found.batch_size,
        execution="xla" if xla else "graph",
        widen=traced.widened is not None and not has_bfloat16(gpu),
        keeps=keeps_dear(gpu),
        pool_bytes=max(0.0, gpu.usable_memory_bytes - found.context_bytes),
        stablehlo=traced.stablehlo_on(float(gpu.compute_capability))
        if xla
        else traced.stablehlo_path,
    )

    def make(folder: Path) -> None:
        result = run_child(
            MEMORY_MAP,
            request,
            progress=progress,
            timeout_s=TIMEOUT_S,
            doing=say("laying out the memory of {title}", title=traced.trace.title),
        )
        (folder / "map.json").write_bytes(to_json(result))

    folder = default_cache().entry("memory", _key(traced, request), make)
    return from_json((folder / "map.json").read_bytes(), MemoryMap)


def _key(traced: Traced, request: MapMemory) -> str:
    facts = {
        **fields_of(request),
        "stablehlo": (traced.trace.stablehlo_sha256, request.stablehlo.name),
        "code": code_digest(),
    }
    return hashlib.sha256(to_json(facts)).hexdigest()
