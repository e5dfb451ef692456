"""What the scripts tell that load NVIDIA's libraries, a line each.

They run in the user's interpreter without tfdyno and write these fields by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryTold:
    """A library was loaded, or not."""

    name: str
    path: str = ""
    error: str = ""
    version: int = 0
    """As it tells it; 0: it cannot be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaTold:
    """The newest CUDA of the driver: 12080."""

    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InitTold:
    """How ``cuInit`` ended."""

    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlTold:
    """NVML was loaded, or not."""

    error: str
    driver: str = ""
    cuda: int = 0
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CardTold:
    """One card; what is not supported there is left out."""

    name: str
    """Its number."""
    error: str = ""
    card: str = ""
    """Its name."""
    uuid: str = ""
    capability: str = ""
    memory_bytes: int = 0
    memory_used_bytes: int = 0
    is_mig: bool = False
    is_vgpu: bool = False
    ecc_errors: int = 0
    throttle: tuple[str, ...] = ()
    processes: tuple[tuple[int, str, int], ...] = ()
    """Identifier, name and bytes."""


Told = LibraryTold | CudaTold | InitTold | NvmlTold | CardTold
KINDS: dict[str, type[Told]] = {
    "library": LibraryTold,
    "cuda": CudaTold,
    "init": InitTold,
    "nvml": NvmlTold,
    "card": CardTold,
}
"""By the field ``kind``, which no noun needs."""
