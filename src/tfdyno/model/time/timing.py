"""Time of a step on one card by the law of its software: kernel by kernel, and by cause."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.choose.hardware import CPU_VENDOR
from tfdyno.model.time import detail, graph_time, kernel_law, kernel_time, step
from tfdyno.model.time.calibrate.steps import step_on_cpus
from tfdyno.model.time.kernel_table import KernelTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.program import Program
    from tfdyno.core.choose.time_model import TimeModel

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timing:
    """A step that trains or serves on one card alone."""

    alone: step.StepTime
    causes: step.Causes
    """The causes of every kernel of the program."""
    cards: kernel_time.Targets
    work: kernel_law.Work | None = None
    """The work of the laws that price kernels one by one; None for the other."""
    graph: graph_time.GraphWork | None = None
    """Where they are primitive operations that TensorFlow runs without XLA."""

    @property
    def seconds(self) -> Floats:
        """Device seconds of every kernel."""
        return np.asarray(self.causes.compute_s + self.causes.memory_s + self.causes.launch_s)


def timing_of(
    program: Program,
    batch_size: float,
    gpu: Gpu,
    setting: step.Setting,
    model: TimeModel,
    *,
    tf32_allowed: bool,
) -> Timing:
    """Price a step by the law that the software runs by.

    Args:
        program: The kernels.
        batch_size: Samples on the card.
        gpu: The card.
        setting: How the step is executed.
        model: Constants of the generation of software.
        tf32_allowed: Whether float32 products may run in TF32.
    """
    clock_ratio = model.sustained_clock.get(gpu.slug.split(":")[0], 1.0)
    cards = _target(gpu, tf32_allowed, clock_ratio)
    if gpu.vendor == CPU_VENDOR and model.swept is not None:
        on_cpus, by_kernel = step_on_cpus(
            program, batch_size, model.swept.card, train=setting.mode == "train"
        )
        return Timing(alone=on_cpus, causes=by_kernel, cards=cards)
    table = KernelTable.of(program)
    if setting.execution not in model.kernel_executions or model.product_rates is None:
        how = step.factors(setting, model)
        rates = kernel_time.rates(table.classes, cards, model)
        return Timing(
            alone=step.step_time(table.work(batch_size), table.classes, rates, how, model),
            causes=detail.kernel_causes(table, batch_size, rates, how, model),
            cards=cards,
        )
    if setting.execution == "graph":
        graph = graph_time.work_of(
            program, batch_size, gpu, tf32_allowed=tf32_allowed, rates=model.product_rates,
            clock_ratio=clock_ratio, drains=setting.loss_scaled,
        )  # fmt: skip
        work, found = graph.law, graph_time.seconds(graph, model)
        alone = graph_time.step_of(graph, found, model)
    else:
        graph = None
        work = kernel_law.work_of(
            program, batch_size, gpu, tf32_allowed=tf32_allowed, rates=model.product_rates,
            clock_ratio=clock_ratio,
        )  # fmt: skip
        found = kernel_law.seconds(work, model)
        alone = kernel_law.step_of(work, found, model)
    causes = step.Causes(found.compute_s, found.memory_s, found.floor_s)
    return Timing(alone=alone, causes=causes, cards=cards, work=work, graph=graph)


@lru_cache(maxsize=256)
def _target(gpu: Gpu, tf32_allowed: bool, clock_ratio: float) -> kernel_time.Targets:
    """Return what the arithmetic needs of a card, at any batch of any program."""
    return kernel_time.targets([(gpu, tf32_allowed)], {gpu.slug.split(":")[0]: clock_ratio})
