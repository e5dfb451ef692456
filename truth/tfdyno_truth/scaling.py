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

from tfdyno.model.precision import gradient_bytes
from tfdyno.model.scaling import EVEN_LOSS, communication_s
from tfdyno_truth.design import design_of
from tfdyno_truth.records import read_record
from tfdyno_truth.scaling_rows import APART, Pair, pairs_of
from tfdyno_truth.ways import SEEN, WAYS
from tfdyno_truth.weighted import quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from tfdyno.core.hardware import Cluster
    from tfdyno.core.time_model import Constants, TimeModel
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
)
WIDTH = "allreduce_width"
LEFT_OUT = ("model", "gpu")
PRIOR_WEIGHT = 0.3
FIRST_FIT, LATER_FITS = 30, 6
COVERAGE = 0.9
ALL, NODES, BRIDGES = "all", "several nodes", "NVLink bridges"
WITH_APART = "all, with those judged apart"


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

    def predict(self, constants: Constants) -> Floats:
        """Predicted efficiency of every run."""
        return np.array([self._step_s(i, pair.base, constants) / self._step_s(
            i, pair.cluster, constants) for i, pair in enumerate(self.pairs)])  # fmt: skip

    def _step_s(self, index: int, cluster: Cluster, constants: Constants) -> float:
        _, exposed_s = communication_s(
            gradient_bytes=float(self.payload_bytes[index]),
            cluster=cluster,
            device_s=float(self.device_s[index]),
            execution=self.pairs[index].row.execution,
            constants=constants,
        )
        return float(self.alone_s[index]) + exposed_s

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
    held: float
    """Share of the runs with the kind of model left out that the interval holds."""
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


def fit_scaling(
    runs: Runs,
    model: TimeModel,
    *,
    start: Mapping[str, float] | None = None,
    evaluations: int = FIRST_FIT,
) -> dict[str, float]:
    """Fit the free constants by robust least squares on log(efficiency), group by group."""
    sizes = Counter(pair.group for pair in runs.pairs)
    weight = np.array([sizes[pair.group] ** -0.5 for pair in runs.pairs])
    free = [model.parameters[name] for name in FREE]
    scale = np.array([p.high - p.low for p in free])
    low, high, prior = (np.array([getattr(p, end) for p in free]) / scale
                        for end in ("low", "high", "prior"))  # fmt: skip
    begin = np.array([start[name] for name in FREE]) / scale if start else prior

    def residuals(x: Floats) -> Floats:
        constants = model.values | dict(zip(FREE, (x * scale).tolist(), strict=True))
        error = np.log(runs.predict(constants) / runs.measured) * weight
        return np.concatenate([error, (x - prior) * PRIOR_WEIGHT])

    found = least_squares(
        residuals,
        np.clip(begin, low + 1e-3, high - 1e-3),
        bounds=(low, high),
        loss="soft_l1",
        f_scale=0.1,
        diff_step=1e-3,
        max_nfev=evaluations,
    )
    return dict(zip(FREE, (found.x * scale).tolist(), strict=True))


def leave_out(
    runs: Runs, model: TimeModel, by: Callable[[Row], str], start: Mapping[str, float]
) -> Floats:
    """Predict every run by constants fitted without any run that shares its ``by`` value."""
    labels = np.array([by(pair.row) for pair in runs.pairs])
    learned = np.array([not pair.apart for pair in runs.pairs])
    predicted = np.empty(len(labels))
    for label in np.unique(labels):
        seen = runs.take(np.flatnonzero(learned & (labels != label)))
        constants = fit_scaling(seen, model, start=start, evaluations=LATER_FITS)
        mine = np.flatnonzero(labels == label)
        predicted[mine] = runs.take(mine).predict(model.values | constants)
    return predicted


def scaling_scores(
    runs: Runs, model: TimeModel, tell: Callable[[str], None], worst: int
) -> ScalingScores:
    """Fit on everything that is learned from, and judge with models and cards left out."""
    learned = np.array([not pair.apart for pair in runs.pairs])
    constants = fit_scaling(runs.take(np.flatnonzero(learned)), model)
    predicted = {SEEN: runs.predict(model.values | constants)}
    for name in LEFT_OUT:
        tell(f"runs on several GPUs, {WAYS[name].title}")
        predicted[name] = leave_out(runs, model, WAYS[name].label, constants)
    width = _width(runs, learned, [predicted[name] for name in LEFT_OUT])
    unseen = predicted[LEFT_OUT[0]]
    reasons = np.array([pair.apart for pair in runs.pairs])
    within = np.abs(np.log(unseen / runs.measured)) <= width * _scale(unseen)
    return ScalingScores(
        constants=constants | {WIDTH: width},
        spreads={
            name: {label: spread(runs, each, mine) for label, mine in _sets(runs, learned).items()}
            for name, each in predicted.items()
        },
        apart={why: spread(runs, unseen, reasons == why) for why in APART if why in reasons},
        held=float(np.average(within[learned], weights=_weights(runs)[learned])),
        worst=_worst(runs, unseen, learned)[:worst],
    )


def _sets(runs: Runs, learned: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    def each(keep: Callable[[Pair], bool]) -> NDArray[np.bool_]:
        return np.array([keep(pair) for pair in runs.pairs]) & learned

    found = {
        ALL: each(lambda _pair: True),
        "TensorFlow": each(lambda pair: pair.row.framework == "tensorflow"),
        "PyTorch": each(lambda pair: pair.row.framework == "pytorch"),
        NODES: each(lambda pair: pair.cluster.nodes > 1),
        BRIDGES: each(lambda pair: pair.cluster.bridge is not None),
        WITH_APART: np.ones(len(runs.pairs), dtype=bool),
    }
    return {label: mine for label, mine in found.items() if mine.any()}


def spread(runs: Runs, predicted: Floats, chosen: NDArray[np.bool_]) -> Spread:
    """Errors over the groups of the chosen runs."""
    errors: defaultdict[Hashable, list[float]] = defaultdict(list)
    for i in np.flatnonzero(chosen):
        errors[runs.pairs[i].group].append(abs(predicted[i] / runs.measured[i] - 1.0))
    values = np.array([np.mean(each) for each in errors.values()])
    return Spread(
        groups=len(values),
        mean=round(float(values.mean()), 6),
        median=round(float(np.median(values)), 6),
        p90=round(float(np.quantile(values, 0.9)), 6),
    )


def _weights(runs: Runs) -> Floats:
    sizes = Counter(pair.group for pair in runs.pairs)
    return np.array([1.0 / sizes[pair.group] for pair in runs.pairs])


def _scale(predicted: Floats) -> Floats:
    return EVEN_LOSS - np.log(np.minimum(predicted, 1.0))


def _width(runs: Runs, learned: NDArray[np.bool_], predicted: list[Floats]) -> float:
    """What ``efficiency_width`` multiplies to hold ``COVERAGE`` of the runs not seen."""
    relative = [np.abs(np.log(each / runs.measured)) / _scale(each) for each in predicted]
    values = np.concatenate([each[learned] for each in relative])
    weights = np.tile(_weights(runs)[learned], len(predicted))
    return round(float(quantile(values, weights, COVERAGE)), 3)


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
