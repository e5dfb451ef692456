"""How far an estimate may be off: widths learned from rows that the fit had not seen."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.explanation import Width
from tfdyno.core.interval import Interval

if TYPE_CHECKING:
    from tfdyno.core.hardware import Gpu
    from tfdyno.core.time_model import TimeModel
    from tfdyno.model.kernel_table import KernelTable

CNN_SHARE = 0.5
"""A program is a CNN when convolutions do at least this share of its FLOPs."""
DEPTHWISE_SHARE = 0.05
"""Depthwise convolutions count when they move at least this share of the bytes."""
LIBRARY_SHARE = 0.01
"""FLOPs per byte of traffic below which a program has no library kernels worth naming."""
UNSEEN_FAMILY_LOG_WIDTH = 0.336
"""log(1.4): at least -+40 % where almost no card of the family has been measured."""
FIRST_UNSEEN_CAPABILITY = 10
LAUNCH_BOUND = "launch-bound"
LAUNCH_BOUND_SHARE = 0.3
"""Share of launch and host time in a step above which it counts as launch-bound."""


def model_family(table: KernelTable) -> str:
    """Name the kind of model: ``cnn``, ``depthwise``, ``transformer`` or ``other``."""
    flops = _by_class(table, table.flops)
    traffic = _by_class(table, table.traffic_bytes)
    convolution = np.array([c.kind == "convolution" for c in table.classes], dtype=bool)
    gemm = np.array([c.kind == "gemm" for c in table.classes], dtype=bool)
    depthwise = np.array([c.shape == "depthwise" for c in table.classes], dtype=bool)
    total = float(flops.sum())
    if total <= LIBRARY_SHARE * float(traffic.sum()):
        return "other"
    if float(traffic[depthwise].sum()) > DEPTHWISE_SHARE * float(traffic.sum()):
        return "depthwise"
    if float(flops[convolution].sum()) >= CNN_SHARE * total:
        return "cnn"
    return "transformer" if float(flops[gemm].sum()) >= CNN_SHARE * total else "other"


def _by_class(table: KernelTable, values: np.ndarray) -> np.ndarray:
    return np.bincount(table.class_index, values.sum(axis=1), minlength=len(table.classes))


def log_half_width(
    model: TimeModel, *, family: str, mode: str, execution: str, gpu: Gpu, launch_share: float
) -> float:
    """Half-width of the 90 % interval in log(time); see ``width``."""
    found = width(
        model, family=family, mode=mode, execution=execution, gpu=gpu, launch_share=launch_share
    )
    return found.log_half_width_ratio


def width(
    model: TimeModel, *, family: str, mode: str, execution: str, gpu: Gpu, launch_share: float
) -> Width:
    """How wide the 90 % interval is and why.

    The bucket is (family, mode, execution); one without measurements takes the widest of its
    family and ``default``. A step that mostly waits for launches (``launch_share``) takes at least
    the width of the launch-bound measurements, and a card of an unmeasured family at least ±40 %.
    """
    widths = model.interval_log_half_width
    bucket, reasons = f"{family}/{mode}/{execution}", []
    if bucket not in widths:
        reasons.append(f"nothing was measured of {bucket}: the widest of its family and default")
        alike = [one for one in widths if one.startswith(f"{family}/")]
        bucket = max(["default", *alike], key=widths.__getitem__)
    log_width = widths[bucket]
    if launch_share > LAUNCH_BOUND_SHARE and widths.get(LAUNCH_BOUND, 0.0) > log_width:
        reasons.append("launches and the host hold the step: measured steps of this kind vary more")
        bucket, log_width = LAUNCH_BOUND, widths[LAUNCH_BOUND]
    unseen = int(gpu.compute_capability.split(".")[0]) >= FIRST_UNSEEN_CAPABILITY
    if unseen and log_width < UNSEEN_FAMILY_LOG_WIDTH:
        reasons.append(
            f"at least ±40 %: hardly any card of compute capability {gpu.compute_capability} was "
            "measured"
        )
        log_width = UNSEEN_FAMILY_LOG_WIDTH
    return Width(bucket=bucket, log_half_width_ratio=log_width, groups=None, reasons=tuple(reasons))


def around(best: float, log_width: float) -> Interval:
    """The interval ``best / exp(w)`` to ``best * exp(w)``."""
    return Interval(low=best * exp(-log_width), best=best, high=best * exp(log_width))
