"""What a sweep makes of a step: constants and widths on a GPU, the whole time on CPUs."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.choose.card_file import CPU
from tfdyno.core.choose.explanation import Width
from tfdyno.core.choose.hardware import CPU_VENDOR
from tfdyno.core.choose.time_model import KERNELS, Swept
from tfdyno.model.measure.statistics import median
from tfdyno.model.time import step
from tfdyno.model.time.calibrate import constants, cpu_law

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfdyno.core.choose.card_file import CardFile
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.program import Program
    from tfdyno.core.choose.time_model import TimeModel

    Floats = NDArray[np.float64]

NORMAL_90 = 1.645
"""Half-width of the middle 90 % of a normal distribution, in standard deviations."""
SEEN_LOG_WIDTH = 0.26
"""What is left of the range on a card that was swept: the law's own error, which no sweep takes
away. Of 24 own steps, of a card that the fit had seen and with the kind of model left out, the
third largest error is 0.21 (``docs/accuracy.md``); a quarter more: they are steps of one card."""
CPU_LOG_WIDTH = 0.25
"""The same of a step on CPUs: ten small models, none of which the law was fitted to, were up to
0.25 off in turns with sweeps of five windows or more (``docs/explanation/cost-model.md``)."""
ENOUGH_WINDOWS, THIN_LOG_WIDTH = 5, 0.5
"""What is added where kernels of CPUs have fewer windows: in turns in which others took four
fifths of the processors and kernels had two or three, steps were up to 0.5 off."""


def with_sweep(
    model: TimeModel, gpu: Gpu, card: CardFile, *, same_software: bool,
    reference: constants.Reference | None = None,
) -> TimeModel:  # fmt: skip
    """Return the time model as it serves one swept card.

    Args:
        model: Constants that ship with the tool.
        gpu: The card.
        card: Its sweep.
        same_software: Whether the answer is for the generation of software that was swept; else
            only constants of the silicon are taken, and half of the range's square stays.
        reference: The sweep that tells by how much the law is off kernels that run alone.
    """
    told = card.words(same_software=same_software)
    if card.card == CPU:
        load = load_log_width(card.condition.other_cpu_ratio or 0.0, card.processors)
        left = math.hypot(CPU_LOG_WIDTH, load, THIN_LOG_WIDTH if is_thin(card) else 0.0)
        return replace(model, swept=Swept(card=card, words=told, log_width_ratio=left))
    moved = constants.moved_constants(
        model, gpu, card, same_software=same_software, reference=reference
    )
    if not moved:
        return model
    own = NORMAL_90 * math.sqrt(sum(one.deviation**2 for one in moved) / len(moved))
    left = math.hypot(SEEN_LOG_WIDTH, own)
    return replace(
        constants.with_constants(model, gpu, moved, told),
        swept=Swept(card=card, words=told, log_width_ratio=left, same_software=same_software),
    )


def is_thin(card: CardFile) -> bool:
    """Return whether most kernels have so few windows that a disturbed one may count."""
    return median([float(one.windows) for one in card.kernels]) < ENOUGH_WINDOWS


def load_log_width(others_ratio: float, processors: int) -> float:
    """Return what others add to the range where they used that much of the CPUs during the sweep.

    A sweep tells the work of its kernels whoever else computes, but of n processors it may not have
    had as many at a time as at another time: with a share f taken, a step may be 1 / (1 - f) times
    as fast then, n times at most; half of its logarithm either way.
    """
    free = max(1.0 - others_ratio, 1e-9)
    return 0.5 * min(-math.log(free), math.log(max(1, processors)))


def swept_width(
    plain: Width, program: Program, batch_size: float, gpu: Gpu, swept: Swept | None, work: object
) -> Width:  # fmt: skip
    """Return the range of a step as its card's sweep leaves it.

    Args:
        plain: The range on a card of its kind.
        program: The kernels.
        batch_size: Samples of the step.
        gpu: The card.
        swept: Its sweep; None: there is none.
        work: Of the law that prices kernels one by one; None: another law priced them, which a
            sweep does not move.
    """
    if swept is None:
        return plain
    if gpu.vendor == CPU_VENDOR:
        return width_on_cpus(program, batch_size, swept)
    return plain if work is None else width_of_sweep(plain, swept)


def warnings_on_cpus(fits: str, most: int | None, batch_size: int) -> tuple[str, ...]:
    """Return what an answer for the processors of a machine has to say beside its numbers."""
    found = [
        "Answered as TensorFlow's graph without XLA: Keras compiles nothing on a machine without "
        "GPUs. The time is that of an undisturbed step, with what Keras' fit does beside it; "
        "memory is that of the step's tensors, without TensorFlow itself; the energy of "
        "processors is not known."
    ]
    if fits == "unverified":
        found.append("Whether it fits has not been verified by a run.")
    if most is None:
        found.append(
            f"The largest batch is not known: the batch of {batch_size:,} is part of the model."
        )
    return tuple(found)


def width_of_sweep(plain: Width, swept: Swept) -> Width:
    """Return the range of a step on a swept card: never wider than without the sweep."""
    left = swept.log_width_ratio
    if not swept.same_software:
        left = math.sqrt((left**2 + plain.log_half_width_ratio**2) / 2.0)
    if left >= plain.log_half_width_ratio:
        return plain
    reason = f"narrower, by {swept.words}"
    return replace(plain, log_half_width_ratio=left, reasons=(*plain.reasons, reason))


def width_on_cpus(program: Program, batch_size: float, swept: Swept) -> Width:
    """Return the range of a step on swept CPUs: what kernels of each kind are off, and the law.

    Kernels of one group may all be off the same way, those of different groups are so one by one.
    """
    priced = _priced(program, batch_size, swept.card)
    total_s = float(priced.kernel_s.sum())
    of_group: defaultdict[cpu_law.Group, float] = defaultdict(float)
    for group, taken_s, deviation in zip(
        priced.groups, priced.kernel_s, priced.deviation, strict=True
    ):
        of_group[group] += float(taken_s * deviation) / total_s
    own = NORMAL_90 * math.sqrt(sum(share**2 for share in of_group.values()))
    return Width(
        bucket=f"{KERNELS}/cpu",
        log_half_width_ratio=math.hypot(swept.log_width_ratio, own),
        groups=len(swept.card.kernels),
        reasons=(f"made by {swept.words}",),
    )


def step_on_cpus(
    program: Program, batch_size: float, card: CardFile, *, train: bool
) -> tuple[step.StepTime, step.Causes]:
    """Return seconds of a step on swept CPUs, and of every kernel by cause.

    A train step is one of Keras' ``fit``: on a GPU the card works while ``fit`` makes the next one
    ready, on CPUs nothing hides that.
    """
    priced = _priced(program, batch_size, card)
    library = np.array([one.kind in ("gemm", "convolution") for one in program.kernels])
    counts = np.array([float(max(1, one.count)) for one in program.kernels])
    start = np.minimum(counts * cpu_law.rough_law(card).start_s, priced.kernel_s)
    body = priced.kernel_s - start
    causes = step.Causes(np.where(library, body, 0.0), np.where(library, 0.0, body), start)
    compute, memory = (np.array([float(part.sum())]) for part in causes[:2])
    device = float(priced.kernel_s.sum())
    host_s = card.pace.beside_step_s if train else 0.0
    step_s = np.array([device + card.pace.call_s + host_s])
    return step.StepTime(
        compute_s=compute, memory_s=memory, step_s=step_s,
        device_s=np.array([device]), host_s=np.array([host_s]),
    ), causes  # fmt: skip


def _priced(program: Program, batch_size: float, card: CardFile) -> cpu_law.Priced:
    return cpu_law.price(program.kernels, batch_size, batch_size / program.batch_size, card)
