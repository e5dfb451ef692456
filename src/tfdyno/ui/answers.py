"""Answers to a question: the documents that the commands print, made by the same jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.core.base.codec import to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import whole
from tfdyno.jobs.choose import advise as advising
from tfdyno.jobs.choose import estimate as estimating
from tfdyno.jobs.choose.market import Conditions
from tfdyno.jobs.project.walk import readable
from tfdyno.ui import settings
from tfdyno.view.base.documents import advice_document, estimate_document
from tfdyno.view.choose.figure_roofline import roofs
from tfdyno.words.base.amounts import capital
from tfdyno.words.project import report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.workload import Workload
    from tfdyno.jobs.choose.trace import Traced
    from tfdyno.jobs.project.live import LiveReader
    from tfdyno.jobs.project.results import Reader
    from tfdyno.ui.settings import Settings
    from tfdyno.ui.traces import Traces

MOST_PLACE = 2**53
MOST_FIGURES = 4
"""Of a result that are shown in its row."""
_SPOT = {"every": None, "no-spot": False, "spot": True}


def step_answer(asked: Settings, given: Workload | None, traces: Traces) -> bytes:
    """Answer what a step takes on the card: the document of ``estimate``, and what is drawn beside.

    Raises:
        NotTraced: The workload is being traced.
        TfdynoError: The question has no answer.
    """
    workload = settings.workload_of(asked, given)
    request = estimating.EstimateRequest(
        workload=traces.of(workload, asked.batch_size),
        gpus=(find(asked.gpu),),
        batch_size=asked.batch_size,
        replicas=(asked.count,),
        precision=asked.precision,
        execution=asked.execution,
    )
    estimating.check(request)
    found = estimating.estimate(request)
    document = estimate_document(found.estimates, found.trace, found.batch_source, found.notes,
                                 found.scaling, found.sharding)  # fmt: skip
    # float32 that nobody asked for is TF32 where the card has it
    precision = "tf32" if not asked.precision and found.trace.policy == "float32" else ""
    card = _card(find(asked.gpu), precision or found.estimates[0].precision)
    return _answer(settings.step_words(asked, workload), document, card)


def run_answer(asked: Settings, given: Workload | None, traces: Traces) -> bytes:
    """Answer what the run takes on the card: the document of ``advise`` for it alone."""
    workload = settings.workload_of(asked, given)
    conditions = Conditions(
        gpus=(find(asked.gpu),),
        counts=(asked.count,),
        spot=None if asked.usd_per_h else _SPOT[asked.offers],
        usd_per_h=asked.usd_per_h,
    )
    document = _advice(asked, traces.of(workload, asked.batch_size), conditions)
    return _answer(settings.run_words(asked, workload), document)


def ranking_answer(asked: Settings, given: Workload | None, traces: Traces) -> bytes:
    """Answer which cards serve the run best: the document of ``advise``."""
    workload = settings.workload_of(asked, given)
    conditions = Conditions(spot=_SPOT[asked.offers])
    document = _advice(asked, traces.of(workload, asked.batch_size), conditions)
    return _answer(settings.ranking_words(asked, workload), document)


def results_answer(reader: Reader) -> bytes:
    """Answer what results there are below the folder, the newest first."""
    found = reader.shelf()
    rest = (f"{found.left_out:,} older ones are not shown",) if found.left_out else ()
    rows = [
        {
            "id": one.id,
            "place": one.place,
            "title": one.told.run.step if one.is_step else "",
            "kind": one.told.kind,
            "kind_words": report.TITLES[one.told.kind],
            "when": report.when(one.made_at),
            "answer": one.told.answer,
            "figures": [report.titled_words(each) for each in one.told.figures[:MOST_FIGURES]],
        }
        for one in found.results
    ]
    notes = [*found.troubles, *rest]
    return to_json({"folder": readable(reader.folder.resolve()), "rows": rows, "notes": notes})


def live_answer(reader: LiveReader) -> bytes:
    """Answer what runs below the folder, or has just ended, the newest first."""
    found, notes = reader.running()
    rows = [
        {
            "id": one.id,
            "kind": one.kind,
            "place": one.place,
            "title": one.title,
            "state": one.state,
            "since": report.when(one.started_at) if one.started_at else "",
        }
        for one in found
    ]
    return to_json({"folder": readable(reader.folder.resolve()), "rows": rows, "notes": notes})


def events_answer(reader: LiveReader, query: Iterable[tuple[str, str]]) -> bytes:
    """Answer what one of them has written behind a place; raises ``UsageError``."""
    given = dict(query)
    if set(given) != {"id", "from"}:
        raise UsageError("events are of one run", remedy="give id and from")
    start = whole(given["from"], "place", least=0, most=MOST_PLACE)
    return to_json(reader.events(given["id"], start))


def difference_answer(reader: Reader, query: Iterable[tuple[str, str]]) -> bytes:
    """Answer what changed from one result to another; raises ``UsageError``."""
    given = dict(query)
    if set(given) != {"before", "after"}:
        raise UsageError("a difference is of two results", remedy="give before and after")
    gained = reader.difference(given["before"], given["after"])
    rows = [
        {
            "figure": f"{one.figure}, {one.of}" if one.of else one.figure,
            "before": report.figure_words(one.before),
            "after": report.figure_words(one.after),
            "verdict": one.verdict,
            "words": capital(report.verdict_words(one)),
        }
        for one in gained
    ]
    return to_json({"rows": rows})


def _advice(asked: Settings, traced: Traced, conditions: Conditions) -> object:
    request = advising.Request(
        workload=traced,
        conditions=conditions,
        batch_size=asked.batch_size,
        precision=asked.precision,
        execution=asked.execution,
        epochs=asked.epochs,
        samples=asked.samples,
        route="quick",
        details=False,
    )
    advising.check(request)
    outcome = advising.advise(request)
    return advice_document(outcome.advice, outcome.trace)


def _card(gpu: Gpu, precision: str) -> dict[str, object]:
    """Return what the roofline of a card is drawn of."""
    ceilings = [{"flops_per_s": one.flops_per_s, "name": one.name} for one in roofs(gpu, precision)]
    return {"name": gpu.name, "memory_bytes_per_s": gpu.memory_bytes_per_s, "roofs": ceilings}


def _answer(words: Sequence[str], document: object, card: object = None) -> bytes:
    """Put the document beside its command, as the command prints it."""
    named = {"command": settings.command_line([*words]), **({"card": card} if card else {})}
    return b"".join((to_json(named)[:-1], b',"document":', to_json(document), b"}"))
