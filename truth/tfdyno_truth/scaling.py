"""Fits the constants of the gradient exchange to published runs on several GPUs, and judges them.

What is predicted is an efficiency: the time of a run on fewer GPUs, mostly one, over its time on
more. Every kind of model, and every card, is predicted by a fit that has seen none of its runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

from tfdyno.model.time.precision import gradient_bytes
from tfdyno.model.time.scaling import exchange
from tfdyno_truth.design import design_of
from tfdyno_truth.records import read_record
from tfdyno_truth.scaling_rows import APART, HALF, Pair, pairs_of
from tfdyno_truth.scaling_width import (
    Holding,
    Judged,
    bands,
    holding,
    judge,
    kept_share,
    shipped_widths,
)
from tfdyno_truth.ways import SEEN, WAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from tfdyno.core.choose.hardware import Cluster
    from tfdyno.core.choose.time_model import Constants, TimeModel
    from tfdyno_truth.rows import Row

    Floats = NDArray[np.float64]

FREE = (
    "allreduce_overlap",
    "allreduce_overlap_xla",
    "allreduce_overlap_torch",
    "allreduce_host",
    "allreduce_crowding",
    "allreduce_pcie",
    "allreduce_network",
    "allreduce_fixed",
    "allreduce_start",
)
HALF_LEFT = "allreduce_half"
LEFT_OUT = ("model", "gpu")
PRIOR_WEIGHT = 1.0
"""A constant that is a tenth of its range off its prior costs as much as a group that is 10 % off:
what the runs of a fold do not tell stays where it was known before."""
MOST_EVALUATIONS = 40
ALL, NODES, BRIDGES = "all", "several nodes", "NVLink bridges"
WITH_APART = "all, with those judged apart"
GRAPH, PACKED = "graphs, as they ran", "graphs, as if in one pack"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """Runs on several GPUs, and what their prediction needs."""

    pairs: tuple[Pair, ...]
    measured: Floats
    """Efficiency: time on fewer GPUs over time on more."""
    alone_s: Floats
    """Predicted step on one GPU."""
    device_s: Floats
    """Its device time."""
    payload_bytes: Floats

    @property
    def learned(self) -> NDArray[np.bool_]:
        """Which runs are learned from: those that are not judged apart."""
        return np.array([not pair.apart for pair in self.pairs])

    @property
    def several_nodes(self) -> NDArray[np.bool_]:
        """Which runs are on several nodes."""
        return np.array([pair.cluster.nodes > 1 for pair in self.pairs])

    @property
    def weights(self) -> Floats:
        """Of every run; those of a group add up to 1."""
        sizes = Counter(pair.group for pair in self.pairs)
        return np.array([1.0 / sizes[pair.group] for pair in self.pairs])

    def predict(self, constants: Constants, *, packed: bool = False) -> Floats:
        """Predicted efficiency of every run.

        Args:
            constants: Global constants of the time model.
            packed: As if all gradients went in one pack, as tf.distribute sends them.
        """
        return np.array([self._step_s(i, pair.base, constants, packed) / self._step_s(
            i, pair.cluster, constants, packed) for i, pair in enumerate(self.pairs)])  # fmt: skip

    def _step_s(self, index: int, cluster: Cluster, constants: Constants, packed: bool) -> float:
        if cluster.replicas == 1:
            return float(self.alone_s[index])
        found = exchange(
            gradient_bytes=float(self.payload_bytes[index]),
            cluster=cluster,
            device_s=float(self.device_s[index]),
            execution=self.pairs[index].row.execution,
            packed=packed,
            constants=constants,
        )
        return float(self.alone_s[index]) + found.exposed_s

    def take(self, chosen: NDArray[np.intp]) -> Runs:
        """Some of the runs."""
        return Runs(
            pairs=tuple(self.pairs[i] for i in chosen),
            measured=self.measured[chosen],
            alone_s=self.alone_s[chosen],
            device_s=self.device_s[chosen],
            payload_bytes=self.payload_bytes[chosen],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Errors of predicted efficiencies, one figure a group; stored as they are."""

    groups: int
    mean: float
    median: float
    p90: float
    coverage: float | None = None
    """Share of the runs that their intervals hold, whose widths have not seen them."""
    interval_score: float | None = None
    """Width of the intervals, and 20 times what a run lies outside: smaller is better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """All runs of a workload on so many cards of a kind, and how far off they are."""

    pair: Pair
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """Relative."""
        return abs(self.predicted / self.measured - 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingScores:
    """What the accuracy page says of several GPUs."""

    constants: dict[str, float]
    spreads: dict[str, dict[str, Spread]]
    """``seen``, ``model``, ``gpu`` -> set of runs -> errors."""
    apart: dict[str, Spread]
    """Why a run is judged apart -> errors with the kind of model left out."""
    bands: dict[str, dict[str, Holding]]
    """``model``, ``gpu`` -> predicted efficiency -> what its intervals hold."""
    worst: tuple[Worst, ...]
    """With the kind of model left out."""


def runs_of(
    rows: Iterable[Row], folder: Path, model: TimeModel, constants: Mapping[str, float]
) -> Runs:
    """The published runs on several GPUs whose model has a kernel record."""
    by_number = {pair.row.number: pair for pair in pairs_of(rows)}
    design = design_of([pair.row for pair in by_number.values()], folder, model.sustained_clock)
    pairs = tuple(by_number[row.number] for row in design.rows)
    timed = design.timed(constants)
    sizes = {
        (row.record, row.precision): _gradients(row, folder)
        for row in {(r.record, r.precision): r for r in design.rows}.values()
    }
    payload = [
        sizes[p.row.record, p.row.precision] * p.payload_ratio / p.row.accumulation for p in pairs
    ]
    return Runs(
        pairs=pairs,
        measured=np.array([pair.efficiency for pair in pairs]),
        alone_s=timed.step_s,
        device_s=timed.compute_s + timed.memory_s,
        payload_bytes=np.array(payload),
    )


def _gradients(row: Row, folder: Path) -> float:
    record = read_record(folder, row.record)
    return gradient_bytes(record.trainable_parameter_count, row.precision) if record else 0.0


def fit_scaling(runs: Runs, model: TimeModel) -> dict[str, float]:
    """Fit the free constants by robust least squares on log(efficiency), group by group.

    It begins at the priors, which no run has informed, and ends when it has converged: nothing of
    another fit is in it.
    """
    sizes = Counter(pair.group for pair in runs.pairs)
    weight = np.array([sizes[pair.group] ** -0.5 for pair in runs.pairs])
    free = [model.parameters[name] for name in FREE]
    scale = np.array([p.high - p.low for p in free])
    low, high, prior = (np.array([getattr(p, end) for p in free]) / scale
                        for end in ("low", "high", "prior"))  # fmt: skip

    def residuals(x: Floats) -> Floats:
        constants = model.values | dict(zip(FREE, (x * scale).tolist(), strict=True))
        error = np.log(runs.predict(constants) / runs.measured) * weight
        return np.concatenate([error, (x - prior) * PRIOR_WEIGHT])

    found = least_squares(
        residuals,
        np.clip(prior, low + 1e-3, high - 1e-3),
        bounds=(low, high),
        loss="soft_l1",
        f_scale=0.1,
        diff_step=1e-3,
        max_nfev=MOST_EVALUATIONS,
    )
    return dict(zip(FREE, (found.x * scale).tolist(), strict=True))


def labels_of(runs: Runs, way: str) -> NDArray[np.str_]:
    """What is left out together with each run."""
    return np.array([WAYS[way].label(pair.row) for pair in runs.pairs])


def folds(runs: Runs, model: TimeModel, labels: NDArray[np.str_]) -> dict[str, dict[str, float]]:
    """Label -> constants fitted without any run that has it."""
    learned = runs.learned
    return {
        str(label): fit_scaling(runs.take(np.flatnonzero(learned & (labels != label))), model)
        for label in np.unique(labels)
    }


def unseen(
    runs: Runs,
    model: TimeModel,
    labels: NDArray[np.str_],
    found: Mapping[str, Mapping[str, float]],
    *,
    packed: bool = False,
) -> Floats:
    """Predict every run by the constants of its fold."""
    predicted = np.empty(len(labels))
    for label, constants in found.items():
        mine = np.flatnonzero(labels == label)
        predicted[mine] = runs.take(mine).predict(model.values | dict(constants), packed=packed)
    return predicted


def scaling_scores(
    runs: Runs, model: TimeModel, tell: Callable[[str], None], worst: int
) -> ScalingScores:
    """Fit on everything that is learned from, and judge with models and cards left out."""
    learned = runs.learned
    constants = fit_scaling(runs.take(np.flatnonzero(learned)), model)
    spreads = {SEEN: _spreads(runs, runs.predict(model.values | constants))}
    judged: dict[str, Judged] = {}
    for way in LEFT_OUT:
        tell(f"runs on several GPUs, {WAYS[way].title}")
        labels = labels_of(runs, way)
        found = folds(runs, model, labels)
        judged[way] = judge(runs, labels, unseen(runs, model, labels, found))
        spreads[way] = _spreads(runs, judged[way].predicted, judged[way].widths)
        packed = unseen(runs, model, labels, found, packed=True)
        spreads[way][PACKED] = spread(runs, packed, _graphs(runs), judged[way].widths)
    first = judged[LEFT_OUT[0]]
    reasons = np.array([pair.apart for pair in runs.pairs])
    halves = reasons == HALF
    return ScalingScores(
        constants=constants
        | shipped_widths(runs, list(judged.values()))
        | ({HALF_LEFT: kept_share(runs, first, halves)} if halves.any() else {}),
        spreads=spreads,
        apart={why: spread(runs, first.predicted, reasons == why)
               for why in APART if why in reasons},
        bands={way: bands(runs, one) for way, one in judged.items()},
        worst=_worst(runs, first.predicted, learned)[:worst],
    )  # fmt: skip


def _graphs(runs: Runs) -> NDArray[np.bool_]:
    return np.array([not pair.apart and pair.row.execution == "graph" for pair in runs.pairs])


def _spreads(runs: Runs, predicted: Floats, widths: Floats | None = None) -> dict[str, Spread]:
    return {label: spread(runs, predicted, mine, widths) for label, mine in _sets(runs).items()}


def _sets(runs: Runs) -> dict[str, NDArray[np.bool_]]:
    def each(keep: Callable[[Pair], bool]) -> NDArray[np.bool_]:
        return np.array([keep(pair) for pair in runs.pairs]) & runs.learned

    found = {
        ALL: each(lambda _pair: True),
        "TensorFlow": each(lambda pair: pair.row.framework == "tensorflow"),
        "PyTorch": each(lambda pair: pair.row.framework == "pytorch"),
        NODES: each(lambda pair: pair.cluster.nodes > 1),
        BRIDGES: each(lambda pair: pair.cluster.bridge is not None),
        GRAPH: _graphs(runs),
        WITH_APART: np.ones(len(runs.pairs), dtype=bool),
    }
    return {label: mine for label, mine in found.items() if mine.any()}


def spread(
    runs: Runs, predicted: Floats, chosen: NDArray[np.bool_], widths: Floats | None = None
) -> Spread:
    """Errors over the groups of the chosen runs, and what intervals of these widths hold."""
    errors: defaultdict[Hashable, list[float]] = defaultdict(list)
    for i in np.flatnonzero(chosen):
        errors[runs.pairs[i].group].append(abs(predicted[i] / runs.measured[i] - 1.0))
    values = np.array([np.mean(each) for each in errors.values()])
    held = holding(runs, predicted, widths, chosen) if widths is not None else None
    return Spread(
        groups=len(values),
        mean=round(float(values.mean()), 6),
        median=round(float(np.median(values)), 6),
        p90=round(float(np.quantile(values, 0.9)), 6),
        coverage=round(held.coverage, 6) if held else None,
        interval_score=round(held.score, 6) if held else None,
    )


def _worst(runs: Runs, predicted: Floats, chosen: NDArray[np.bool_]) -> tuple[Worst, ...]:
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for i in np.flatnonzero(chosen):
        groups[runs.pairs[i].group].append(int(i))
    found = [
        Worst(
            pair=runs.pairs[mine[0]],
            predicted=float(np.mean(predicted[mine])),
            measured=float(np.mean(runs.measured[mine])),
        )
        for mine in groups.values()
    ]
    return tuple(sorted(found, key=lambda one: -one.error))
