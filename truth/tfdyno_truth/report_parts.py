"""Sections of the accuracy pages beside the scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno_truth import cells
from tfdyno_truth.ablation import NOTHING
from tfdyno_truth.cases import UNEXPLAINED
from tfdyno_truth.sections import Section, Table
from tfdyno_truth.sheet import ALL, FRAMEWORKS
from tfdyno_truth.ways import WAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno_truth.ablation import Ablated
    from tfdyno_truth.accuracy import Accuracy
    from tfdyno_truth.cases import Case
    from tfdyno_truth.sheet import Line

STALE = " Made with other constants or rows than the scores above: `tfdyno-truth ablate` is due."
SAME = 6e-4
"""Means nearer than this are of one fit: they are stored with four digits."""
SIMPLER = """\
The same rows, the same rows left out. FLOPs and bytes are those of the same kernels, peaks and
bandwidth those of the data sheet; each prediction is multiplied by a factor fitted for every kind
of model, mode, precision and execution. *One utilisation per model* carries the share of the peak
that the same model reached on other cards; of a model that was left out it knows nothing more
than *FLOPs over peak*."""
NEUSIGHT = """\
Transformers in float32 on eager PyTorch, labels of NeuSight (ASPLOS 2025). Its figures are those
of all its cases, recomputed from its own table of results; ours are of those cases that `truth/`
has and the command can express, each group counted once. tfdyno saw no kernel timings."""
OWN = """\
What `tfdyno compare --recalibrate` on one card is worth for the others: every card of a published
workload plays the measured one in turn, and its ratio is carried to all other chips by the rule
of the command. Models are left out, so that the workload is as new as a user's."""


WORST = """\
All batch sizes of one workload on one card together, largest ratio either way first. Reasons are
in `truth/reasons.csv`, those of rows that the fit does not learn from in `truth/suspicious.csv`;
what the measurements themselves do not show is called inferred."""
ABLATION = """\
Mean errors of fits without a term or a group of terms (`truth/ablation.toml`), what hurts most
first."""


def against_others(found: Accuracy) -> Iterator[Section]:
    """Simpler predictions on the same rows, and what NeuSight published."""
    yield Section(title="Against simpler predictions", prose=SIMPLER)
    headings = ["prediction"]
    for label in (*FRAMEWORKS.values(), ALL):
        headings += [f"{label}: mean", "90 % below"]
    for name, rivals in found.rivals.items():
        rows = [("tfdyno", *_rival_cells(found.sheets[name].whole))]
        ordered = sorted(rivals, key=lambda rival: -rival.whole[-1].score.mean)
        rows += [(rival.title, *_rival_cells(rival.whole)) for rival in ordered]
        yield Section(
            title=f"The same rows, {WAYS[name].title}",
            table=Table(headings=(*headings, *cells.ORDERED), rows=tuple(rows)),
            below=True,
        )
    yield Section(title="Against NeuSight", prose=NEUSIGHT, table=_neusight(found), below=True)


def _rival_cells(whole: tuple[Line, ...]) -> tuple[str, ...]:
    by_label = {line.label: line for line in whole}
    found: list[str] = []
    for label in (*FRAMEWORKS.values(), ALL):
        line = by_label.get(label)
        found += cells.shares(line.score.mean, line.score.p90) if line else ("–", "–")
    return (*found, *cells.ordered(whole[-1].order))


def _neusight(found: Accuracy) -> Table:
    rows: list[tuple[str, ...]] = []
    for mode, lines in found.neusight.items():
        for line in lines:
            score = line.score
            numbers = (str(score.rows), *cells.shares(score.mean, score.median))
            rows.append((f"tfdyno, {line.label}", mode, *numbers))
        for one in found.predictors:
            if one.mode == mode:
                known = [cells.share(float(x)) if x else "–" for x in (one.mean, one.median)]
                rows.append((one.predictor, mode, str(one.cases), *known))
    headings = ("predictor", "mode", "cases", "mean", "median")
    return Table(headings=headings, rows=tuple(rows), words=2)


def worst(found: Accuracy) -> Section:
    """The worst cases with their reasons."""
    return Section(
        title=f"The {len(found.worst)} worst, card left out",
        prose=WORST,
        table=Table(
            headings=("workload", "card", "source", "reason", "predicted / measured"),
            rows=tuple((*_case_words(case), f"{case.ratio:.2f}") for case in found.worst),
            words=4,
        ),
    )


def _case_words(case: Case) -> tuple[str, ...]:
    row = case.row
    low, high = case.batches[0], case.batches[-1]
    batch = f"batch {low:,}" if low == high else f"batch {low:,}–{high:,}"
    workload = f"{row.function}, {batch}, {row.precision}, {row.mode}, {row.execution}"
    reason = f"{case.reason.reason} ({case.reason.source})" if case.reason else UNEXPLAINED
    return workload, row.gpu, row.source, reason


def ablation(found: Accuracy) -> Section:
    """What each term buys."""
    title, by_name = "What each term buys", {one.name: one for one in found.ablated}
    if NOTHING not in by_name:
        return Section(title=title, prose="Not measured yet: run `tfdyno-truth ablate`.")
    base = by_name.pop(NOTHING)
    worst_first = sorted(by_name.values(), key=lambda one: -one.gpu_all_mean)
    scored = {line.label: line.score.mean for line in found.sheets["gpu"].whole}
    stale = abs(base.gpu_all_mean - scored.get(ALL, 0.0)) > SAME
    return Section(
        title=title,
        prose=ABLATION + (STALE if stale else ""),
        table=Table(
            headings=("left out of the model", "card left out: TensorFlow", "all", "90 % below",
                      "model left out: TensorFlow", "all", "90 % below"),
            rows=tuple(_ablated(one, base) for one in (base, *worst_first)),
        ),
    )  # fmt: skip


def _ablated(one: Ablated, base: Ablated) -> tuple[str, ...]:
    same = one.constants == base.constants
    return (
        one.title if same else f"{one.title} (of another model)",
        *cells.shares(one.gpu_tensorflow_mean, one.gpu_all_mean, one.gpu_all_p90),
        *cells.shares(one.model_tensorflow_mean, one.model_all_mean, one.model_all_p90),
    )


def own_measurement(found: Accuracy) -> Section:
    """What one measured card is worth for the others."""
    rows = tuple(
        (
            gain.label,
            f"{gain.cells:,}",
            f"{gain.pairs:,}",
            f"{gain.mean_before:.1%} → {gain.mean_after:.1%}",
            f"{gain.median_before:.1%} → {gain.median_after:.1%}",
            f"±{gain.half_width_before:.0%} → ±{gain.half_width_after:.0%}",
            f"±{gain.given_before:.0%} → ±{gain.given_after:.0%}",
            f"{gain.held_before:.0%} → {gain.held_after:.0%}",
        )
        for gain in found.gains
    )
    headings = ("rows of", "workloads on a card", "pairs", "mean error", "median error",
                "half-width that holds 90 %", "half-width given", "which holds")  # fmt: skip
    table = Table(headings=headings, rows=rows)
    return Section(title="One own measurement", prose=OWN, table=table)
