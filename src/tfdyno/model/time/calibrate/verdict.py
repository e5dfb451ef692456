"""Whether a card is as fast as its data sheet and other cards of its kind say, and why not."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.choose.card_file import CPU, Compared, Grade, Verdict
from tfdyno.model.measure.statistics import median
from tfdyno.model.time import kernel_law
from tfdyno.model.time.calibrate.constants import Reference, key_of, program_of, rows_of_xla

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.choose.card_file import CardFile, Condition
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.time_model import TimeModel

SLOWER = 0.85
"""Share of what the law expects below which a card counts as slow. Judgement: medians of kernels of
healthy cards that no fit had seen lie within 10 % of it (``docs/accuracy-products.md``)."""
LARGE_S = 2e-5
"""Smaller kernels tell of launches, not of the card."""
NEAR = 0.95
"""Share of a limit from which on a card is held by it."""
WORDS = {"gemm": "matrix products", "convolution": "convolutions", "loop": "traffic to memory",
         "reduce": "reductions", "transpose": "transposes"}  # fmt: skip
UNITS = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
BUSY = 0.1
"""Share of all processors that others used, above which a sweep of CPUs was disturbed."""


def verdict(
    card: CardFile, gpu: Gpu | None, model: TimeModel, reference: Reference | None = None
) -> Verdict:  # fmt: skip
    """Judge a swept card.

    Args:
        card: The sweep.
        gpu: Its row of the catalogue; None: it has none.
        model: Constants as they ship: what other cards of its kind reach in steps.
        reference: What kernels that run alone take beside that; those that it lacks are not judged.
    """
    reasons = tuple(_reasons(card.condition, gpu))
    if gpu is None or card.card == CPU or model.product_rates is None:
        return Verdict(grade="unknown", compared=(), reasons=reasons)
    compared = _compared(card, gpu, model, reference)
    slow = any(one.speed_ratio < SLOWER for one in compared)
    grade: Grade = "unknown" if not compared else "slower" if slow else "as it should"
    return Verdict(grade=grade, compared=compared, reasons=reasons)


def _compared(
    card: CardFile, gpu: Gpu, model: TimeModel, reference: Reference | None
) -> tuple[Compared, ...]:  # fmt: skip
    found: defaultdict[str, list[float]] = defaultdict(list)
    own = _speeds(card, gpu, model)
    law = _speeds(reference.card, reference.gpu, model) if reference else dict.fromkeys(own, 1.0)
    for one in card.kernels:
        name, key = WORDS.get(one.kernel.kind), key_of(one)
        if name and key in own and key in law:
            unit = "TF32" if one.tf32 else UNITS[one.kernel.dtype]
            words = f"{name}, {unit}" if one.kernel.kind in ("gemm", "convolution") else name
            found[words].append(own[key] / law[key])
    return tuple(
        Compared(what=name, kernels=len(ratios), speed_ratio=median(ratios))
        for name, ratios in sorted(found.items())
    )


def _speeds(card: CardFile, gpu: Gpu, model: TimeModel) -> dict[str, float]:
    """Return the seconds that the law expects of each large kernel over those that it took."""
    assert model.product_rates is not None
    found: dict[str, float] = {}
    for rows, tf32 in rows_of_xla(card):
        work = kernel_law.work_of(
            program_of(rows), 1.0, gpu, tf32_allowed=tf32, rates=model.product_rates
        )
        expected = np.asarray(kernel_law.seconds(work, model).total_s)
        for one, expected_s in zip(rows, expected, strict=True):
            if max(one.kernel_s, float(expected_s)) >= LARGE_S:
                found[key_of(one)] = float(expected_s) / one.kernel_s
    return found


def _reasons(state: Condition, gpu: Gpu | None) -> Iterator[str]:
    """Yield what holds a card down, as NVML told it while it was swept."""
    if state.slice_name:
        yield f"it is a slice of a card ({state.slice_name}): its neighbours share power and memory"
    if state.other_processes:
        yield f"{state.other_processes} other processes computed on it meanwhile"
    if state.throttle:
        yield f"its clocks were held down: {', '.join(state.throttle)}"
    limit, default = state.power_limit_w, state.default_power_limit_w
    if limit and default and limit < NEAR * default:
        yield f"its power limit is set to {limit:.0f} W; its own is {default:.0f} W"
    elif limit and state.power_w and gpu and gpu.tdp_w and limit < NEAR * gpu.tdp_w:
        yield f"its power limit is {limit:.0f} W; the data sheet says {gpu.tdp_w:.0f} W"
    lanes, most = state.pcie_width, state.pcie_width_limit
    if lanes and most and lanes < most:
        yield f"it has {lanes} of {most} PCIe lanes: transfers from the host are slower"
    if state.uncorrected_errors:
        yield f"its memory had {state.uncorrected_errors} errors that ECC could not correct"
    if state.ecc and gpu and gpu.memory_type.upper().startswith("GDDR"):
        yield "ECC is on, which takes about 6 % of the bandwidth of this kind of memory"
    if (state.other_cpu_ratio or 0.0) > BUSY:
        yield f"other programs used {state.other_cpu_ratio:.0%} of the processors meanwhile"
