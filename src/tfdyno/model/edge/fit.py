"""Whether a model fits a small device, and how long it takes there at best and at worst."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.core.deploy.edge import INTERACTIVE_S, REAL_TIME_S, EdgeVerdict

if TYPE_CHECKING:
    from collections.abc import Collection

    from tfdyno.core.deploy.edge import Bound, EdgeDevice, EdgeNeed, LatencyClass

_SLOW_MEMORY_RATIO = 0.4
"""The share of the bandwidth on paper that plain loops reach at least."""


def verdict(
    need: EdgeNeed, device: EdgeDevice, *, operations: Collection[str] | None, half: bool
) -> EdgeVerdict:
    """Judge one model on one device.

    Memory is the most that its values take at once, with the tables of the runtime. Time is that
    of a roofline: arithmetic at a share of the peak, or bytes at a share of the bandwidth, the
    longer of the two, and the start of every operator on top; fast and slow shares are those of
    the runtime.

    Args:
        need: Of the model.
        device: Of the catalogue.
        operations: That its runtime has; None: all of LiteRT's.
        half: Whether the floats of the model are halves (weights of 16 bits).
    """
    memory_bytes, storage_bytes = _memory(need, device), _storage(need, device)
    unsupported = _unsupported(need, operations)
    obstacles = _obstacles(need, device, memory_bytes, storage_bytes, unsupported)
    fast, slow = _seconds(need, device, half, slow=False), _seconds(need, device, half, slow=True)
    return EdgeVerdict(
        device=device.slug,
        name=device.name,
        runtime=device.runtime.name,
        fits=not obstacles,
        storage_needed_bytes=storage_bytes,
        storage_bytes=device.storage_bytes,
        memory_needed_bytes=memory_bytes,
        memory_bytes=device.memory_bytes,
        unsupported=unsupported,
        latency_s=(sum(fast.values()), sum(slow.values())),
        latency_class=latency_class(sum(slow.values())),
        best_class=latency_class(sum(fast.values())),
        bound_by=max(slow, key=slow.__getitem__),
        obstacles=obstacles,
        advice=_advice(need, device, unsupported, memory_bytes, storage_bytes),
        source=device.source,
        unverified=device.unverified,
    )


def latency_class(latency_s: float) -> LatencyClass:
    """Class a latency: real time keeps up with a camera, interactive feels immediate."""
    if latency_s < REAL_TIME_S:
        return "real_time"
    return "interactive" if latency_s < INTERACTIVE_S else "batch"


def _memory(need: EdgeNeed, device: EdgeDevice) -> int:
    runtime = device.runtime
    tables = need.tensors * runtime.tensor_bytes + need.table_operators * runtime.operator_bytes
    if runtime.slug == "litert-micro":  # it reads weights where they are, in flash
        return need.live_bytes + tables + runtime.memory_bytes
    values = max(need.live_bytes, need.arena_bytes)
    return values + tables + runtime.memory_bytes + need.file_bytes


def _storage(need: EdgeNeed, device: EdgeDevice) -> int:
    return need.file_bytes + (device.runtime.code_bytes if device.storage_bytes else 0)


def _unsupported(need: EdgeNeed, operations: Collection[str] | None) -> tuple[str, ...]:
    lacking = [] if operations is None else [k for k in need.kinds if k not in operations]
    return (*lacking, *need.custom)


def _obstacles(
    need: EdgeNeed,
    device: EdgeDevice,
    memory_bytes: int,
    storage_bytes: int,
    unsupported: tuple[str, ...],
) -> tuple[str, ...]:
    found = []
    needed, free = format_bytes(memory_bytes), format_bytes(device.memory_bytes)
    if memory_bytes > device.memory_bytes:
        found.append(
            f"It needs {needed} of memory; {free} is free, "
            f"and {need.peak_operator} alone takes {format_bytes(need.live_bytes)}."
        )
    needed, free = format_bytes(storage_bytes), format_bytes(device.storage_bytes)
    if device.storage_bytes and storage_bytes > device.storage_bytes:
        found.append(f"It needs {needed} of flash; there is {free}.")
    # What an Edge TPU or a GPU lacks runs on the CPU beside it; a microcontroller has nothing else.
    if unsupported and device.runtime.slug == "litert-micro":
        found.append(f"{device.runtime.name} has no {', '.join(unsupported)}.")
    elif device.runtime.slug == "edgetpu" and need.float_arithmetic > need.integer_arithmetic:
        found.append("The Edge TPU computes in 8 bits only.")
    elif need.custom:
        found.append(f"{device.runtime.name} has no {', '.join(need.custom)}.")
    return tuple(found)


def _seconds(need: EdgeNeed, device: EdgeDevice, half: bool, *, slow: bool) -> dict[Bound, float]:
    """Sum the larger of arithmetic and memory, and the starts of operators."""
    runtime = device.runtime
    share = runtime.slowest_ratio if slow else runtime.fastest_ratio
    floats = device.half_ops_per_s if half and not slow else device.float_ops_per_s
    integers = max(device.integer_ops_per_s, floats)
    compute_s = (need.float_arithmetic / floats + need.integer_arithmetic / integers) / share
    memory_s = _moved_bytes(need, runtime.on_chip_bytes) / device.memory_bytes_per_s
    memory_s /= _SLOW_MEMORY_RATIO if slow else 1.0
    dispatch_s = need.operators * (runtime.slow_dispatch_s if slow else runtime.dispatch_s)
    longest: Bound = "compute" if compute_s >= memory_s else "memory_bandwidth"
    return {longest: max(compute_s, memory_s), "dispatch": dispatch_s}


def _moved_bytes(need: EdgeNeed, on_chip_bytes: int) -> int:
    """Count what goes through a device's memory, or to a chip that keeps weights and values."""
    if not on_chip_bytes:
        return need.moved_bytes
    return max(0, need.weight_bytes - on_chip_bytes) + need.port_bytes


def _advice(
    need: EdgeNeed,
    device: EdgeDevice,
    unsupported: tuple[str, ...],
    memory_bytes: int,
    storage_bytes: int,
) -> tuple[str, ...]:
    found = []
    is_small = device.runtime.slug in {"litert-micro", "edgetpu"}
    mostly_float = need.float_arithmetic > need.integer_arithmetic
    if is_small and mostly_float:
        found.append("Export it with --to litert-int8: a quarter of the size, and in integers.")
    elif memory_bytes > device.memory_bytes or (
        device.storage_bytes and storage_bytes > device.storage_bytes
    ):
        found.append("Make the input or the first layers smaller: they set the peak.")
    if device.runtime.slug == "edgetpu":
        found.append("Compile it with edgetpu_compiler, and for one sample at a time.")
        if unsupported:
            found.append(f"{', '.join(unsupported)} and what follows runs on the CPU beside it.")
    if device.runtime.slug == "tensorrt":
        found.append("Export it with --to onnx and build the engine on the Jetson with trtexec.")
    return tuple(found)
