"""The sections of a joined report: one per step, with the figures of the step's own page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError
from tfdyno.view.bench.figure_load import rate_figure, spread_figure
from tfdyno.view.bench.figure_ratio import ratio_figure
from tfdyno.view.bench.figure_samples import samples_figure
from tfdyno.view.bench.figure_steps import steps_figure
from tfdyno.view.choose.sections import Panel, Section
from tfdyno.view.choose.sentences import Finding
from tfdyno.view.deploy.figure_edge import measured_figure
from tfdyno.view.deploy.figure_export import trade_off_figure
from tfdyno.view.diagnose.figure_course import course_figure
from tfdyno.view.diagnose.figure_split import compute_figure, split_figure
from tfdyno.view.diagnose.figure_stages import stages_figure
from tfdyno.view.draw.svg import Figure, Table
from tfdyno.view.project.document_readers import diagnosis_of, edge_of, export_of, load_of
from tfdyno.view.project.figure_project import offers_figure, trials_figure
from tfdyno.view.project.headings import heading
from tfdyno.words.base.amounts import capital
from tfdyno.words.bench.load import main_stage
from tfdyno.words.project.answers import answer
from tfdyno.words.project.key_figures import number, part
from tfdyno.words.project.report import (
    TITLES,
    basis_words,
    bounds_words,
    error_words,
    status_words,
    value_words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from tfdyno.core.measure.measurement import Comparison
    from tfdyno.core.measure.measurement_document import MeasurementReport
    from tfdyno.core.project.report import StepTold

    Raw = Mapping[str, Any]
    Benches = Mapping[str, tuple[Sequence[MeasurementReport], Comparison | None]]

_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z])")
_MOST_EPOCHS = 30


def step_section(step: StepTold, benches: Benches) -> Section:
    """Return what one step found, its figures and its key figures.

    Args:
        step: As the run has it.
        benches: By name of the step, what is read back of a bench.
    """
    name = step.run.step
    heading, lead = _finding(step)
    figures, trouble = _figures(step, benches)
    panel = Panel(
        topic=f"{TITLES[step.kind]}: {name}, {status_words(step)}",
        finding=Finding(heading=heading, lead=lead),
        figures=figures,
        table=_table(step),
        folded=_epochs(step.document) if step.kind == "train" else None,
        note=trouble,
    )
    return Section(id=f"step-{name}", short=name, panels=(panel,))


def _finding(step: StepTold) -> tuple[str, str]:
    """Return a heading, and what stands under it."""
    trouble, said = error_words(step), answer(step)
    if not step.reached:
        return f"{step.run.step} was not reached", "The run ended before it."
    if trouble and not step.document:
        what = "failed" if step.run.status == "failed" else "has no result to show"
        return f"{step.run.step} {what}", " ".join(filter(None, (trouble, said)))
    if brief := heading(step):
        return brief, " ".join(filter(None, (said, trouble)))
    first, *rest = _SENTENCE.split(said) if said else [f"{capital(step.run.step)} is done"]
    return first.rstrip("."), " ".join(filter(None, (*rest, trouble)))


def _table(step: StepTold) -> Table | None:
    """Return the key figures; None where there are none."""
    of = any(one.of for one in step.figures)
    rows = tuple(
        (one.title, *((one.of,) if of else ()), value_words(one), bounds_words(one) or "–",
         basis_words(one))
        for one in step.figures
    )  # fmt: skip
    headings = ("Figure", *(("Of",) if of else ()), "Value", "Interval", "Rests on")
    words = frozenset((0, 1, 3, 4) if of else (0, 2, 3))
    return Table(headings=headings, rows=rows, text_columns=words) if rows else None


def _figures(step: StepTold, benches: Benches) -> tuple[tuple[Figure, ...], str]:
    """Return the figures of the step's own page, and why there are none where there should be."""
    draw = _DRAWERS.get(step.kind)
    try:
        if step.run.step in benches:
            return tuple(_bench(*benches[step.run.step])), ""
        drawn = draw(step.document) if draw and step.document else ()
        return tuple(one for one in drawn if one), ""
    except (TfdynoError, ValueError, KeyError, TypeError, ArithmeticError) as error:
        return (), f"Its figures are left out: {error}"


def _bench(told: Sequence[MeasurementReport], comparison: Comparison | None) -> Iterator[Figure]:
    if comparison and (drawn := ratio_figure(comparison)):
        yield drawn
    yield steps_figure(told)
    yield samples_figure(told)


def _diagnose(document: Raw) -> Iterator[Figure | None]:
    told = diagnosis_of(document)
    diagnosis = told.proven.diagnosis
    yield split_figure(told)
    yield compute_figure(diagnosis)
    yield stages_figure(diagnosis, told.samples_of_step)
    yield course_figure(told.facts.timeline, diagnosis)


def _load(document: Raw) -> Iterator[Figure | None]:
    result = load_of(document)
    yield rate_figure(result)
    if not result.failed and main_stage(result).run.latency_s:
        yield spread_figure(main_stage(result))


def _epochs(document: Raw) -> tuple[str, Table] | None:
    """Return the metrics of each epoch; None where there are none."""
    history = {name: one for name, one in part(document, "history").items()
               if isinstance(one, list) and one}  # fmt: skip
    if not history:
        return None
    count = max(map(len, history.values()))
    first = max(0, count - _MOST_EPOCHS)
    rows = tuple(
        (f"{at + 1}", *("–" if (value := number(one, at)) is None else f"{value:.4g}"
                        for one in history.values()))
        for at in range(first, count)
    )  # fmt: skip
    title = "Metrics of each epoch" if not first else f"Metrics of the last {_MOST_EPOCHS} epochs"
    return title, Table(headings=("Epoch", *history), rows=rows)


_DRAWERS: dict[str, Callable[[Raw], Iterable[Figure | None]]] = {
    "advise": lambda document: (offers_figure(document),),
    "size": lambda document: (offers_figure(document),),
    "tune": lambda document: (trials_figure(document),),
    "diagnose": _diagnose,
    "export": lambda document: (trade_off_figure(export_of(document)),),
    "edge": lambda document: (measured_figure(edge_of(document)),),
    "load": _load,
}
