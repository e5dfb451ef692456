"""From the cost of kernels to the time of a step: framework factors, host floor and the sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.model.kernel_table import LIBRARY_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tfdyno.core.time_model import Constants
    from tfdyno.model.kernel_table import ClassWork, CostClass
    from tfdyno.model.kernel_time import Rates

    Floats = NDArray[np.float64]
    Number = float | Floats

HOST_FLOOR_POWER = 4.0
"""Sharpness of the change from GPU-bound to host-bound; the data do not identify it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How the step is executed: decides fusion, library algorithms and cost per launch."""

    execution: str
    """xla, graph, or eager-torch (for scoring only)."""
    mode: str
    transformer: bool = False
    """Whether matrix products outweigh convolutions (eager PyTorch fuses attention then)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What an execution does to the kernels of the XLA program; 1.0 for training under XLA.

    A field may be an array with one value per target.
    """

    fusion: Number
    """Traffic of fusions: what is not fused is read and written again."""
    library: Number
    """Rate of library kernels (layout, autotuning)."""
    launches: Number
    """Launches for each of the XLA program."""
    host_s: Number
    """Host time per kernel of the XLA program."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepTime:
    """Seconds of a step by cause; each of shape (targets,)."""

    compute_s: Floats
    memory_s: Floats
    launch_s: Floats
    step_s: Floats


def factors(setting: Setting, constants: Constants) -> Factors:
    """Look up the framework factors of a setting."""
    mode = setting.mode
    if setting.execution == "xla":
        if mode == "train":
            return Factors(fusion=1.0, library=1.0, launches=1.0, host_s=constants["host_xla"])
        return Factors(
            fusion=constants["xla_fusion_infer"],
            library=constants["xla_library_infer"],
            launches=1.0,
            host_s=constants["host_xla"],
        )
    if setting.execution == "graph":
        return Factors(
            fusion=constants[f"graph_fusion_{mode}"],
            library=constants[f"graph_library_{mode}"],
            launches=constants["graph_launches"],
            host_s=constants["host_graph"],
        )
    model = "transformer" if setting.transformer else "cnn"
    return Factors(
        fusion=constants[f"torch_fusion_{model}_{mode}"],
        library=constants[f"torch_library_{mode}"],
        launches=constants["torch_launches"],
        host_s=constants["host_torch"],
    )


def step_time(
    work: ClassWork, classes: Sequence[CostClass], rates: Rates, how: Factors, constants: Constants
) -> StepTime:
    """Sum the kernels of a step.

        device = sum(launches * factor * t_launch + FLOPs * s_per_flop + bytes * s_per_byte)
        step   = (device^4 + (launches * host)^4)^(1/4) + t_step

    Args:
        work: Work by class at the batch; the last axis is that of ``classes``.
        classes: Cost classes, in the order of the arrays.
        rates: Costs per unit of work, shape (targets, classes).
        how: Framework factors of the setting.
        constants: Global constants of the time model.

    Returns:
        Seconds; the three causes add up to ``step_s``.
    """
    library = np.array([c.kind in LIBRARY_KINDS for c in classes])
    rate, fusion = np.asarray(how.library)[..., None], np.asarray(how.fusion)[..., None]
    traffic = np.where(library, 1.0 / rate, fusion)
    compute = 1.0 / how.library * np.sum(work.executed_flops * rates.s_per_flop, axis=-1)
    memory_by_class = work.traffic_bytes * rates.s_per_byte
    memory_by_class = memory_by_class + work.extra_bytes * rates.s_per_extra_byte
    memory = np.sum(memory_by_class * traffic, axis=-1)
    launches = np.sum(work.launches, axis=-1)
    device = compute + memory + launches * how.launches * constants["t_launch"]
    host = launches * how.host_s
    both = (device**HOST_FLOOR_POWER + host**HOST_FLOOR_POWER) ** (1.0 / HOST_FLOOR_POWER)
    step = both + constants["t_step"]
    return StepTime(
        compute_s=compute, memory_s=memory, launch_s=step - compute - memory, step_s=step
    )
