"""What a TensorFlow wheel holds for a GPU, as a fact."""

from __future__ import annotations

from typing import Literal

from tfdyno.core.base.dataclass import dataclass

Support = Literal["native", "jit", "cannot", "unknown"]
Outcome = Literal["native", "jit", "graph", "fails", "cannot", "unknown"]
REFUSING: tuple[Outcome, ...] = ("fails", "cannot")
"""Outcomes with which the wheel is of no use on the card."""


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
    has_old_libraries: bool
    """Its CUDA libraries are a major version older than the card: expect it to fail at run time."""
    driver_linux: str
    """Smallest NVIDIA driver on Linux; empty where unknown."""
    detail: str
    """One sentence for a person."""
    source: str
    known_faults: tuple[str, ...] = ()
    """Faults of XLA in this release on such a card, a sentence each; where this release does not
    run, those of the smallest that does."""
    xla_fails: bool = False
    """Whether its XLA compiles nothing for the card."""

    @property
    def outcome(self) -> Outcome:
        """The verdict, or what takes from it.

        ``fails``: the kernels are there and its CUDA libraries are too old; ``graph``: it runs in
        graph execution alone.
        """
        if self.has_old_libraries:
            return "fails"
        return "graph" if self.xla_fails else self.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What the official wheels of one TensorFlow release were made for."""

    tensorflow: str
    """major.minor."""
    python_versions: tuple[str, ...]
    cuda: str
    cudnn: str
    min_driver_linux: str
    min_driver_windows: str
    """The driver of native Windows up to 2.10, of the Windows host of WSL2 after it."""
    requirement: str
    """What to install for a GPU: ``tensorflow[and-cuda]``, ``tensorflow``, ``tensorflow-gpu``."""
    has_native_windows_gpu: bool
    keras: str
    """Requirement on Keras, ``keras>=3.12.0``; a version where it was part of TensorFlow."""
    numpy_limit: str
    compute_capabilities: tuple[str, ...]
    """Machine code ``sm_80`` and PTX ``compute_90`` as the build says."""
    first_wheel: str
    last_wheel: str
    """``2.21.0``; of a release that is not out yet its candidate, ``2.22.0rc0``."""
    source: str
    date: str
    """When the row was read, ``2026-11-26``."""

    @property
    def is_candidate(self) -> bool:
        """Whether only a release candidate is known."""
        return "rc" in self.last_wheel


BehindBy = Literal["release", "candidate", "age"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """The tables of releases are older than a release that is asked about, or may be."""

    why: BehindBy
    """release: it comes after the last row; candidate: its row was read from its candidate; age:
    a newer one may have come out since."""
    date: str
    """When the newest row was read."""
    last: str
    """Version of the newest row."""
    age_days: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaDriver:
    """The NVIDIA driver that a CUDA toolkit came with and the oldest one that runs it."""

    cuda: str
    """``12.8``; the first release of that toolkit."""
    linux: str
    windows: str
    oldest_linux: str
    """Within the same major version; PTX still needs the toolkit's own driver."""
    oldest_windows: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """The part of the catalogue that rules need for one machine or log."""

    release: Release | None = None
    """The release of the TensorFlow in question."""
    releases: tuple[Release, ...] = ()
    """All that are out, oldest first."""
    candidate: Release | None = None
    """The release candidate after them; None: none is known."""
    support: tuple[WheelSupport, ...] = ()
    """How that TensorFlow runs on each card of the machine that the catalogue knows, in their
    order."""
    cuda_drivers: tuple[CudaDriver, ...] = ()
    """Newest first."""
