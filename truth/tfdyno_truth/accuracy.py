"""Everything that the accuracy pages say, from one fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.catalog.time_model import time_model
from tfdyno_truth import ablation, baselines, cases, recalibrate, scaling, tables
from tfdyno_truth.ablation import Ablated
from tfdyno_truth.cases import Case
from tfdyno_truth.memory import MemoryScores, memory_scores
from tfdyno_truth.recalibrate import Gain
from tfdyno_truth.rows import TRUTH, read_rows
from tfdyno_truth.run import Fitted
from tfdyno_truth.scaling import ScalingScores
from tfdyno_truth.score import judged
from tfdyno_truth.sheet import Judged, Line, Sheet, sheet, whole
from tfdyno_truth.ways import ONE_NEW, SEEN, WAYS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


SHIPPED = "shipped"
"""Name of the scores with all rows seen, beside the names of the ways of leaving out."""
WORST = 10
PREDICTORS = TRUTH / "published" / "predictors.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """Another way to predict the same rows."""

    title: str
    whole: tuple[Line, ...]
    """TensorFlow, PyTorch, all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """Errors that others published of their own predictions; the columns of ``PREDICTORS``."""

    predictor: str
    mode: str
    cases: int
    mean: str
    median: str
    judged_on: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Accuracy:
    """What the pages are written from."""

    fitted: Fitted
    sheets: dict[str, Sheet]
    """``shipped``, ``gpu``, ``model`` and what else was left out -> scores."""
    learnable: dict[str, tuple[Line, ...]]
    """``gpu``, ``model`` -> the wholes without the rows that no fit learns from."""
    rivals: dict[str, tuple[Rival, ...]]
    """Way -> baselines on the same rows with the same rows left out."""
    predictors: tuple[Predictor, ...]
    neusight: dict[str, tuple[Line, ...]]
    """Mode -> our scores with the card and with the model left out on NeuSight's labels."""
    worst: tuple[Case, ...]
    ablated: tuple[Ablated, ...]
    gains: tuple[Gain, ...]
    """What one own measurement is worth, for models that no fit has seen."""
    memory: MemoryScores
    scaling: ScalingScores

    @property
    def exchange(self) -> dict[str, float]:
        """Constants of the gradient exchange."""
        return self.scaling.constants


def accuracy(
    fitted: Fitted, folder: Path, tell: Callable[[str], None], *, rivals: bool = True
) -> Accuracy:
    """Judge a fit in every respect; ``rivals`` says whether also beside simpler predictions."""
    ways = [name for name, way in WAYS.items() if way.title in fitted.by_name]
    tell("scores")
    sheets = {SHIPPED: sheet(judged(fitted, SEEN))}
    sheets |= {name: sheet(judged(fitted, WAYS[name].title)) for name in ways}
    tell("memory")
    memory = memory_scores(folder)
    tell("runs on several GPUs")
    runs = scaling.runs_of(read_rows(), folder, time_model(), fitted.constants)
    return Accuracy(
        fitted=fitted,
        sheets=sheets,
        learnable={
            name: whole(judged(fitted, WAYS[name].title).within(fitted.learnable))
            for name in ONE_NEW
        },
        rivals=_rivals(fitted, folder, tell) if rivals else {},
        predictors=tables.read(PREDICTORS, Predictor),
        neusight=_neusight(fitted),
        worst=cases.worst(judged(fitted, WAYS["gpu"].title), cases.read_reasons(), WORST),
        ablated=ablation.read_results(),
        gains=recalibrate.gains(judged(fitted, WAYS["model"].title)),
        memory=memory,
        scaling=scaling.scaling_scores(runs, time_model(), tell, WORST),
    )


def _rivals(
    fitted: Fitted, folder: Path, tell: Callable[[str], None]
) -> dict[str, tuple[Rival, ...]]:
    design = fitted.design
    raw = baselines.raw_times(design, folder)
    found = {}
    for name in ONE_NEW:
        rivals = []
        for key, title in baselines.TITLES.items():
            tell(f"{WAYS[name].title}: {title}")
            by = WAYS[name].label
            predicted = baselines.unseen_times(design, raw[key], key, fitted.learnable, by)
            against = Judged(
                design=design,
                main=fitted.main,
                predicted=predicted,
                width=fitted.row_widths[WAYS[name].title],
            )
            rivals.append(Rival(title=title, whole=whole(against)))
        found[name] = tuple(rivals)
    return found


def _neusight(fitted: Fitted) -> dict[str, tuple[Line, ...]]:
    rows = fitted.design.rows
    found = {}
    for mode in ("train", "infer"):
        mine = [row.source.startswith("NeuSight") and row.mode == mode for row in rows]
        lines = []
        for name in ONE_NEW:
            scored = whole(judged(fitted, WAYS[name].title).within(np.array(mine)))
            lines += [
                Line(label=WAYS[name].title, score=line.score, order=line.order) for line in scored
            ]
        found[mode] = tuple(lines)
    return found
