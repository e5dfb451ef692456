"""What a TensorFlow wheel holds for a GPU, as a fact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Support = Literal["native", "jit", "cannot", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSupport:
    """How the official Linux wheel of one TensorFlow release runs on one GPU."""

    gpu: str
    tensorflow: str
    """Release asked about, major.minor."""
    verdict: Support
    """native: machine code for all kernels; jit: some or all are compiled at first use."""
    library_kernels: str
    """sass, jit, NO, or - where the wheel has none of this kind."""
    elementwise_kernels: str
    smallest_native: str
    """TensorFlow from which on every examined wheel is native; empty: not even the newest."""
    smallest_runnable: str
    """TensorFlow from which on every examined wheel runs, natively or by JIT; empty: none."""
    driver_linux: str
    """Smallest NVIDIA driver on Linux; empty where unknown."""
    detail: str
    """One sentence for a person."""
    source: str
