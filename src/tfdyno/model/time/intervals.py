"""How far an estimate may be off: widths learned from rows that the fit had not seen."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import exp
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.base.interval import Interval
from tfdyno.core.choose.explanation import Width
from tfdyno.core.choose.time_model import KERNELS
from tfdyno.model.time.kernel_table import KEPT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.time_model import BucketWidth

    Number = float | NDArray[np.float64]
    from tfdyno.model.time.kernel_table import KernelTable

CNN_SHARE = 0.5
"""A program is a CNN when convolutions do at least this share of its FLOPs."""
DEPTHWISE_SHARE = 0.05
"""Depthwise convolutions count when they move at least this share of the bytes."""
LIBRARY_SHARE = 0.01
"""FLOPs per byte of traffic below which a program has no library kernels worth naming."""
UNSEEN_LOG_WIDTH = 0.336
"""log(1.4): at least +40 % where no card of the generation has been measured."""
UNSEEN_CAPABILITY = {"xla": 10, "graph": 10}
"""Execution -> major compute capability from which on nothing was measured: Blackwell was measured
under PyTorch alone (``tests/truth`` holds this against the rows)."""
UNSEEN_FACTOR = 1.25
"""How much wider the range of a step is on a card of a compute capability that no step of today's
software was measured on. Judgement: of products, those of a card left out err 1.3 times as much
(8.2 against 6.3 %, ``docs/accuracy-products.md``); no step on such a card is there to say more."""
UNMEASURED_CALL_S = 1.5e-3
"""What the host may take of a call of inference without XLA beyond what is told. Four small
networks on an H200 took 0.8 to 1.9 ms more, in a call with three operations of some tenth of a
millisecond too many (``docs/accuracy.md``); no step of that kind was measured rightly."""
LAUNCH_BOUND_SHARE = 0.3
"""Share of launch and host time in a step above which it counts as launch-bound."""
LAUNCH_WIDENING = 3.0
"""Errors of launches and the host over those of the device, which add up like independent ones.

Without it, intervals of CNNs below batch 16 on cards and models left out held 62 %, by 3 they hold
86 %, by 4 89 %; of steps whose share of launches is above 0.3 72 %, 79 to 88 % and 80 to 91 %. The
mean width over all steps stays the same.
"""


@lru_cache(maxsize=KEPT)
def model_family(table: KernelTable) -> str:
    """Name the kind of model: ``cnn``, ``depthwise``, ``transformer`` or ``other``."""
    flops = _by_class(table, table.flops)
    traffic = _by_class(table, table.traffic_bytes)
    convolution = np.array([c.kind == "convolution" for c in table.classes], dtype=bool)
    gemm = np.array([c.kind in ("gemm", "attention") for c in table.classes], dtype=bool)
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


def width(
    widths: Mapping[str, BucketWidth],
    *,
    family: str,
    mode: str,
    execution: str,
    gpu: Gpu,
    launch_share: float,
    by_kernel: frozenset[str] | None = None,
) -> Width:
    """Return how wide the 90 % interval is and why.

    The bucket is (family, mode, execution); one without measurements takes the widest of its
    family, of its mode and execution, and of all. Its width grows with ``launch_share``, the share
    of launches and host in the step (see ``widening``). A card of a generation on which the
    execution was not measured takes at least ``UNSEEN_LOG_WIDTH``.

    Args:
        widths: Those of the time model, with ``default``.
        family: As ``model_family`` names it.
        mode: train or infer.
        execution: xla, graph, eager-torch or compiled-torch.
        gpu: The card.
        launch_share: 0 to 1.
        by_kernel: Compute capabilities that steps were measured on, where kernels are priced one
            by one: such steps have buckets of their own, and launches are in their rows as in
            those that are asked about. None: the other law.
    """
    if by_kernel is not None:
        return _of_kernels(widths, f"{family}/{mode}/{execution}", gpu, by_kernel)
    bucket, reasons = f"{family}/{mode}/{execution}", []
    if bucket not in widths:
        reasons.append(f"nothing was measured of {bucket}: the widest that is alike")
        bucket = _widest_alike(widths, bucket)
    log_width = widths[bucket].log_half_width_ratio * float(widening(launch_share))
    if launch_share > LAUNCH_BOUND_SHARE:
        reasons.append("launches and the host hold the step: measured steps of this kind vary more")
    if unseen(gpu, execution) and log_width < UNSEEN_LOG_WIDTH:
        reasons.append(
            f"at least ±40 %: no card of compute capability {gpu.compute_capability} was measured "
            f"under {execution}"
        )
        log_width = UNSEEN_LOG_WIDTH
    return Width(
        bucket=bucket,
        log_half_width_ratio=log_width,
        groups=widths[bucket].groups,
        reasons=tuple(reasons),
    )


def _of_kernels(
    widths: Mapping[str, BucketWidth], name: str, gpu: Gpu, measured: frozenset[str]
) -> Width:
    """Return the width of a step priced by kernels: wider on a card like none measured."""
    reasons, bucket = [], f"{KERNELS}/{name}"
    if bucket not in widths:
        reasons.append(f"too few steps were measured of {name}: as wide as all steps need")
        bucket = f"{KERNELS}/default"
    log_width = widths[bucket].log_half_width_ratio
    if gpu.compute_capability not in measured:
        reasons.append(
            f"wider by {UNSEEN_FACTOR - 1:.0%}: no card of compute capability "
            f"{gpu.compute_capability} was measured with software of today"
        )
        log_width *= UNSEEN_FACTOR
    return Width(
        bucket=bucket,
        log_half_width_ratio=log_width,
        groups=widths[bucket].groups,
        reasons=tuple(reasons),
    )


def _widest_alike(widths: Mapping[str, BucketWidth], bucket: str) -> str:
    family, _, how = bucket.partition("/")
    alike = [
        one
        for one in widths
        if one.startswith(f"{family}/")
        or (one.endswith(f"/{how}") and not one.startswith(f"{KERNELS}/"))
    ]
    return max(["default", *alike], key=lambda one: widths[one].log_half_width_ratio)


def widening(launch_share: Number) -> Number:
    """Widen a range for this share of launches and host: sqrt(1 + (w share)^2)."""
    return np.hypot(1.0, LAUNCH_WIDENING * launch_share)


def unseen(gpu: Gpu, execution: str) -> bool:
    """Return whether no card of this generation or a later one was measured under the execution."""
    first = UNSEEN_CAPABILITY.get(execution)
    return first is not None and int(gpu.compute_capability.split(".")[0]) >= first


def with_unmeasured_call(step_s: Interval, width: Width) -> tuple[Interval, Width]:
    """Return the range of inference without XLA with what the host may take, and its reasons."""
    more = f"{UNMEASURED_CALL_S * 1e3:g} ms"
    reason = f"up to {more} more: what the host takes of inference without XLA was not measured"
    return (
        replace(step_s, high=step_s.high + UNMEASURED_CALL_S),
        replace(width, reasons=(*width.reasons, reason)),
    )


def around(best: float, log_width: float) -> Interval:
    """Return the interval ``best / exp(w)`` to ``best * exp(w)``."""
    return Interval(low=best * exp(-log_width), best=best, high=best * exp(log_width))
