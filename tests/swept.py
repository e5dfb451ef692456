"""Sweeps made up for tests: of a few kernels whose times follow from round numbers."""

from __future__ import annotations

from typing import Any

from tfdyno.core.base.interval import Scaled
from tfdyno.core.choose.card_file import CardFile, SweptKernel
from tfdyno.core.choose.program import Kernel


def loop(elements: int, kernel_s: float, name: str = "multiply", **fields: Any) -> SweptKernel:
    """An operation on float32 elements that reads one tensor and writes one."""
    kernel = Kernel(
        kind="loop", dtype="f32", name=name, flops=Scaled(fixed=elements),
        read_bytes=Scaled(fixed=4 * elements), write_bytes=Scaled(fixed=4 * elements),
        dims={"elements": (elements,), "per_thread": (4,)},
    )  # fmt: skip
    return swept(kernel, kernel_s, **fields)


def product(size: int, kernel_s: float, dtype: str = "f32", **fields: Any) -> SweptKernel:
    """A product of two square matrices."""
    width = 4 if dtype == "f32" else 2
    kernel = Kernel(
        kind="gemm", dtype=dtype, name="dot_general", direction="forward",
        flops=Scaled(fixed=2.0 * size**3), read_bytes=Scaled(fixed=2 * width * size**2),
        write_bytes=Scaled(fixed=width * size**2),
        dims={"m": (size,), "n": (size,), "k": (size,), "batch": (1,)},
    )  # fmt: skip
    return swept(kernel, kernel_s, **fields)


def swept(kernel: Kernel, kernel_s: float, **fields: Any) -> SweptKernel:
    """A kernel with what it takes, known to 3 %."""
    usual = {"execution": "graph", "tf32": False, "spread_ratio": 0.03, "windows": 9}
    return SweptKernel(kernel=kernel, kernel_s=kernel_s, **{**usual, **fields})


def card_file(*kernels: SweptKernel, **fields: Any) -> CardFile:
    """A sweep of CPUs."""
    usual: dict[str, Any] = {
        "card": "cpu", "name": "A CPU", "framework": "tensorflow", "version": "2.21.0",
        "generation": "2026", "made_on": "2026-11-26", "sweep_s": 55.0, "processors": 2,
    }  # fmt: skip
    return CardFile(kernels=kernels, **{**usual, **fields})
