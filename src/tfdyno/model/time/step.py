"""From the cost of kernels to the time of a step: framework factors, host floor and the sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfdyno.model.time.kernel_table import LIBRARY_KINDS
from tfdyno.model.time.kernel_time import Rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tfdyno.core.choose.time_model import Constants
    from tfdyno.model.time.kernel_table import ClassWork, CostClass

    Floats = NDArray[np.float64]
    Number = float | Floats

HOST_FLOOR_POWER = 4.0
"""Sharpness of the change from GPU-bound to host-bound; the data do not identify it."""
TENSOR_CORES_ONLY = ("convolution", "layout")
"""Fields of ``Factors`` that matter where tensor cores compute in 16 bits."""
_PLAIN = ("pointwise", "winograd3")
"""Shapes of most convolutions: 1x1, and 3x3 with stride one."""
_NEUTRAL = {"host_convolution_s": 0.0}
"""Fields of ``Factors`` that add instead of multiplying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How the step is executed: decides fusion, library algorithms and cost per launch."""

    execution: str
    """xla, graph, or for scoring only eager-torch and compiled-torch (``torch.compile``)."""
    mode: str
    transformer: bool = False
    """Whether matrix products outweigh convolutions: eager PyTorch then moves more."""
    fused_optimizer: bool = True
    """Whether the optimizer is one kernel: eager PyTorch's is where the precision is mixed."""
    channels_last: bool = False
    """Whether eager PyTorch keeps tensors in the order that tensor cores want, as XLA does."""
    loss_scaled: bool = False
    """Whether the optimizer waits until all gradients are known to be finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What an execution does to the kernels of its program; 1.0 where it does nothing.

    A field may be an array with one value per target.
    """

    fusion: Number
    """Traffic of what no library computes."""
    library: Number
    """Rate of library kernels (layout, autotuning)."""
    convolution: Number
    """Rate of 16-bit 1x1 and 3x3 convolutions on top of that: XLA keeps the order they want."""
    launches: Number
    """Launches for each of the program."""
    host_s: Number
    """Host time per kernel of the program."""
    host_convolution_s: Number
    """Host time per convolution on top of that; 0.0 where it costs no more than other kernels."""
    layout: Number
    """Traffic of 16-bit convolutions: tensor cores want the dimensions in another order."""
    overlap: Number
    """Bytes that overlapping windows read again."""
    depthwise: Number
    """Traffic and arithmetic of depthwise convolutions: cuDNN's kernels are not the fastest."""
    update: Number
    """Traffic of the optimizer, which eager frameworks run operation by operation."""


class Causes(NamedTuple):
    """Seconds on the device by cause."""

    compute_s: Floats
    memory_s: Floats
    launch_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepTime:
    """Seconds of a step by cause; each of shape (targets,)."""

    compute_s: Floats
    memory_s: Floats
    step_s: Floats
    device_s: Floats
    """The kernels alone."""
    host_s: Floats
    """What the host needs for their launches, beside the device."""

    @property
    def launch_s(self) -> Floats:
        """The time with the wait for the host and the fixed time of a step."""
        return np.asarray(self.step_s - self.compute_s - self.memory_s)


def factors(setting: Setting, constants: Constants) -> Factors:
    """Look up the framework factors of a setting."""
    names = factor_names(setting)
    return Factors(
        **{
            field: constants[names[field]] if field in names else _NEUTRAL.get(field, 1.0)
            for field in Factors.__slots__
        }
    )


def factor_names(setting: Setting) -> dict[str, str]:
    """Name the constant behind each field of ``Factors``; a field without one is neutral."""
    mode = setting.mode
    if setting.execution == "xla":
        found = {
            "depthwise": "xla_depthwise",
            "overlap": "xla_overlap",
            "convolution": "xla_convolution",
            "host_s": "host_xla",
            "host_convolution_s": "host_xla_convolution",
        }
        if mode == "train":
            return found
        return {"fusion": "xla_fusion_infer", "library": "xla_library_infer", **found}
    if setting.execution == "graph":
        return {
            "fusion": f"graph_fusion_{mode}",
            "library": f"graph_library_{mode}",
            "launches": "graph_launches",
            "layout": "graph_layout",
            "host_s": f"host_graph_{mode}",
        }
    if setting.execution == "compiled-torch":
        return {"fusion": "compiled_fusion", "library": "compiled_library", "host_s": "host_xla"}
    model = "transformer" if setting.transformer else "cnn"
    return {
        "fusion": f"torch_fusion_{model}_{mode}",
        "library": f"torch_library_{mode}",
        "launches": "torch_launches",
        "host_s": "host_torch",
        **(
            {"convolution": "xla_convolution"}
            if setting.channels_last
            else {"layout": "torch_layout"}
        ),
        "depthwise": "torch_depthwise",
        **({} if setting.fused_optimizer else {"update": "torch_update"}),
    }


def traffic_field(cost_class: CostClass) -> str:
    """Name the field of ``Factors`` that multiplies a class's bytes; empty where none does."""
    if cost_class.shape == "update":
        return "update"
    if cost_class.kind not in LIBRARY_KINDS:
        return "fusion"
    if cost_class.shape == "depthwise":
        return "depthwise"
    ordered = cost_class.kind == "gemm" or cost_class.shape == "pointwise"
    return "" if ordered else "layout"


def rate_fields(cost_class: CostClass) -> tuple[str, ...]:
    """Name the fields of ``Factors`` that multiply a class's rate: none without a library."""
    if cost_class.kind not in LIBRARY_KINDS:
        return ()
    plain = cost_class.kind == "convolution" and cost_class.shape in _PLAIN
    return ("library", "convolution") if plain else ("library",)


def executed(rates: Rates, classes: Sequence[CostClass], how: Factors) -> Rates:
    """Return rates in an execution: its operations move more, its libraries keep another rate."""

    def times(field: str, chosen: list[bool]) -> Floats:
        applies = np.array(chosen) & (rates.tensor_cores | (field not in TENSOR_CORES_ONLY))
        return np.where(applies, np.asarray(getattr(how, field))[..., None], 1.0)

    rated = [rate_fields(c) for c in classes]
    fields = [traffic_field(c) for c in classes]
    rate = np.ones(len(classes))
    for field in ("library", "convolution"):
        rate = rate * times(field, [field in some for some in rated])
    traffic = 1.0 / rate
    for field in ("fusion", "layout", "depthwise", "update"):
        traffic = traffic * times(field, [field == one for one in fields])
    slower = times("depthwise", [one == "depthwise" for one in fields])
    return Rates(
        s_per_flop=rates.s_per_flop / rate * slower,
        s_per_byte=rates.s_per_byte * traffic,
        s_per_extra_byte=rates.s_per_extra_byte * traffic * np.asarray(how.overlap)[..., None],
        tensor_cores=rates.tensor_cores,
    )


def device_seconds(work: ClassWork, paid: Rates, how: Factors, constants: Constants) -> Causes:
    """Return the device's seconds by cause for every entry of the last axis: a class or kernel.

    compute = FLOPs * s_per_flop
    memory  = bytes * s_per_byte + bytes read again * s_per_extra_byte
    launch  = launches * factor * t_launch
    """
    return Causes(
        work.executed_flops * paid.s_per_flop,
        work.traffic_bytes * paid.s_per_byte + work.extra_bytes * paid.s_per_extra_byte,
        work.launches * np.asarray(how.launches)[..., None] * constants["t_launch"],
    )


def convolutions(work: ClassWork, classes: Sequence[CostClass]) -> Floats:
    """Count launches of convolutions: all but the last axis of ``work``."""
    chosen = np.array([c.kind == "convolution" for c in classes])
    return np.asarray(np.sum(work.launches * chosen, axis=-1))


def step_time(
    work: ClassWork, classes: Sequence[CostClass], rates: Rates, how: Factors, constants: Constants
) -> StepTime:
    """Sum the kernels of a step.

        device = sum over classes of compute + memory + launch (see ``device_seconds``)
        host   = launches * host_s + convolutions * host_convolution_s
        step   = (device^4 + host^4)^(1/4) + t_step

    Args:
        work: Work by class at the batch; the last axis is that of ``classes``.
        classes: Cost classes, in the order of the arrays.
        rates: Costs per unit of work, shape (targets, classes).
        how: Framework factors of the setting.
        constants: Global constants of the time model.

    Returns:
        Seconds; the three causes add up to ``step_s``.
    """
    paid = executed(rates, classes, how)
    causes = device_seconds(work, paid, how, constants)
    compute, memory, launch = (np.sum(seconds, axis=-1) for seconds in causes)
    device = compute + memory + launch
    host = (
        np.sum(work.launches, axis=-1) * how.host_s
        + convolutions(work, classes) * how.host_convolution_s
    )
    both = (device**HOST_FLOOR_POWER + host**HOST_FLOOR_POWER) ** (1.0 / HOST_FLOOR_POWER)
    step = both + constants["t_step"]
    return StepTime(
        compute_s=compute,
        memory_s=memory,
        step_s=step,
        device_s=device,
        host_s=np.broadcast_to(host, np.shape(step)),
    )
