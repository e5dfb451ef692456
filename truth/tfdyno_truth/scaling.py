"""Fits the constants of the gradient exchange to published runs on several GPUs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import least_squares

from tfdyno.catalog.gpus import find
from tfdyno.catalog.links import default_link
from tfdyno.core.hardware import Gpu, Link
from tfdyno.model.precision import gradient_bytes
from tfdyno.model.scaling import communication_s
from tfdyno_truth.design import Design, design_of
from tfdyno_truth.records import read_record
from tfdyno_truth.rows import Row

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from pathlib import Path

    from tfdyno.core.time_model import TimeModel

FREE = (
    "allreduce_overlap",
    "allreduce_overlap_torch",
    "allreduce_no_peer",
    "allreduce_crowding",
    "allreduce_pcie",
    "allreduce_fixed",
)
STAND_INS = ("V100-SXM3-32GB", "V100-SXM3-32GB-H", "TITAN X-12GB")
MOST_GPUS = 8
PRIOR_WEIGHT = 0.3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """Runs on several GPUs with the same run on one."""

    rows: tuple[Row, ...]
    measured: np.ndarray
    """Weak-scaling efficiency: time on one GPU over time on several."""
    alone_s: np.ndarray
    """Predicted step on one GPU."""
    gradients: tuple[float, ...]
    cards: tuple[tuple[Gpu, Link], ...]

    def predict(self, constants: Mapping[str, float]) -> np.ndarray:
        """Predicted efficiency of every run."""
        return np.array(
            [
                alone / (alone + _exposed_s(row, card, alone, payload, constants))
                for row, card, alone, payload in zip(
                    self.rows, self.cards, self.alone_s.tolist(), self.gradients, strict=True
                )
            ]
        )


def runs_of(
    rows: list[Row], folder: Path, model: TimeModel, constants: Mapping[str, float]
) -> Runs:
    """The training runs over the link that the cards have by themselves."""
    alone: defaultdict[Hashable, list[float]] = defaultdict(list)
    for row in rows:
        if row.gpus == 1 and row.step_s:
            alone[row.host].append(row.step_s)
    wanted = [row for row in rows if row.host in alone and _usual(row)]
    design: Design = design_of(wanted, folder, model.sustained_clock)
    payload = {
        (row.record, row.precision): _gradients(row, folder)
        for row in {(r.record, r.precision): r for r in design.rows}.values()
    }
    measured = [float(np.median(alone[row.host])) / row.step_s for row in design.rows]
    return Runs(
        rows=design.rows,
        measured=np.array(measured),
        alone_s=design.predict(constants),
        gradients=tuple(payload[row.record, row.precision] for row in design.rows),
        cards=tuple((find(r.slug), default_link(find(r.slug), r.gpus)) for r in design.rows),
    )


def _usual(row: Row) -> bool:
    """Whether the link is the card's own (bridges and clusters are not)."""
    if row.gpu in STAND_INS or "(" in row.interconnect or not 1 < row.gpus <= MOST_GPUS:
        return False
    board = "sxm" in row.slug or row.slug.startswith(("gb", "gh", "b200"))
    return (
        bool(row.step_s)
        and row.mode == "train"
        and row.interconnect in (("NVLink", "NVSwitch") if board else ("PCIe",))
    )


def _gradients(row: Row, folder: Path) -> float:
    record = read_record(folder, row.record)
    return gradient_bytes(record.trainable_parameter_count, row.precision) if record else 0.0


def _exposed_s(
    row: Row,
    card: tuple[Gpu, Link],
    alone_s: float,
    payload: float,
    constants: Mapping[str, float],
) -> float:
    gpu, link = card
    return communication_s(
        gradient_bytes=payload,
        replicas=row.gpus,
        gpu=gpu,
        link=link,
        device_s=alone_s,
        execution=row.execution,
        constants=constants,
    )[1]


def fit_scaling(runs: Runs, model: TimeModel) -> dict[str, float]:
    """Fit the free constants by robust least squares on log(efficiency)."""
    values = dict(model.values)
    sizes: defaultdict[Hashable, int] = defaultdict(int)
    for row in runs.rows:
        sizes[row.group, row.gpus] += 1
    weight = np.array([sizes[row.group, row.gpus] ** -0.5 for row in runs.rows])
    bounds = [(model.parameters[n].low, model.parameters[n].high) for n in FREE]
    prior = np.array([model.parameters[n].prior for n in FREE])
    scale = np.array([high - low for low, high in bounds])

    def residuals(x: np.ndarray) -> np.ndarray:
        constants = values | dict(zip(FREE, (x * scale).tolist(), strict=True))
        error = np.log(runs.predict(constants) / runs.measured) * weight
        return np.concatenate([error, (x - prior / scale) * PRIOR_WEIGHT])

    low, high = (np.array(ends) / scale for ends in zip(*bounds, strict=True))
    found = least_squares(
        residuals,
        np.clip(prior / scale, low + 1e-3, high - 1e-3),
        bounds=(low, high),
        loss="soft_l1",
        f_scale=0.1,
        diff_step=1e-3,
        max_nfev=30,
    )
    return dict(zip(FREE, (found.x * scale).tolist(), strict=True))


def efficiency_errors(runs: Runs, constants: Mapping[str, float]) -> np.ndarray:
    """Relative error of the efficiency by group (model, card, precision, mode, number of GPUs)."""
    groups: defaultdict[Hashable, list[float]] = defaultdict(list)
    error = np.abs(runs.predict(constants) / runs.measured - 1.0)
    for row, value in zip(runs.rows, error.tolist(), strict=True):
        groups[row.group, row.gpus].append(value)
    return np.array([np.mean(values) for values in groups.values()])
