"""Facts of one machine as probes find them, or as a file of another machine tells them."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from tfdyno.core.base.dataclass import dataclass

System = Literal["", "linux", "windows", "macos"]
ProbeState = Literal["ok", "not_run", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """How one probe ended."""

    name: str
    state: ProbeState
    reason: str = ""
    """Why it was not run or failed; empty for ``ok``."""
    elapsed_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """An installed Python package."""

    name: str
    """Normalised: lower case, dashes."""
    version: str
    folder: str = ""
    installer: str = ""
    """``pip``, ``conda``, ``uv`` as its metadata says; empty where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildInfo:
    """What ``build_info.py`` of the installed TensorFlow says, read without importing it."""

    is_cuda_build: bool
    cuda: str = ""
    cudnn: str = ""
    compute_capabilities: tuple[str, ...] = ()
    is_tensorrt_build: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFacts:
    """The interpreter whose TensorFlow is asked about."""

    version: str = ""
    bits: int = 64
    prefix: str = ""
    manager: Literal["", "pip", "uv", "conda", "poetry", "pixi", "system"] = ""
    """What manages the environment; decides the words of the commands in a fix."""
    distributions: tuple[Distribution, ...] = ()
    """TensorFlow, Keras, NumPy, protobuf, ``nvidia-*`` and what else matters; empty: not looked."""
    broken_requirements: tuple[str, ...] = ()
    """Requirements of TensorFlow that are not met: ``numpy<2.2 (installed 2.3.1)``."""
    tensorflow_owners: tuple[str, ...] = ()
    """Distributions that own files under ``tensorflow/``; more than one is a mixed install."""
    tensorflow_folder: str = ""
    """The folder of a TensorFlow without package metadata, as on ``PYTHONPATH``; empty: there is
    none."""
    build: BuildInfo | None = None

    @property
    def installed(self) -> dict[str, str]:
        """Versions of the distributions by name."""
        return {one.name: one.version for one in self.distributions}


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that holds memory of a card."""

    pid: int
    name: str
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """A card in this machine; zero and empty mean unknown."""

    name: str = ""
    slug: str = ""
    """Its row of the catalogue."""
    compute_capability: str = ""
    uuid: str = ""
    memory_bytes: int = 0
    memory_used_bytes: int = 0
    is_mig_enabled: bool = False
    is_vgpu: bool = False
    ecc_errors_uncorrected: int = 0
    throttle: tuple[str, ...] = ()
    """Reasons why the clock is held down now, as NVML names them."""
    processes: tuple[Process, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFacts:
    """The NVIDIA driver: its kernel module and its library."""

    version: str = ""
    """The version of the kernel module, else of the library; empty: none found or not known."""
    library_version: str = ""
    library_path: str = ""
    cuda: str = ""
    """Newest CUDA that the driver supports, ``12.8``."""
    init_error: str = ""
    """Name of the error that ``cuInit`` gave; empty when it worked or was not run."""
    is_forward_compat: bool = False
    restricts_profiling: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFacts:
    """One shared library that TensorFlow loads on a GPU machine."""

    soname: str
    path: str = ""
    """What the loader resolved; empty: not loaded."""
    version: str = ""
    error: str = ""
    copies: tuple[str, ...] = ()
    """Every file of that name, or of another major version, on the search roots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildFacts:
    """What TensorFlow did in a child process."""

    version: str = ""
    import_s: float = 0.0
    gpus: tuple[str, ...] = ()
    checks: tuple[tuple[str, float, float], ...] = ()
    """Name of a check, seconds of its first and of its second call."""
    failed: str = ""
    """Name of the check that failed, ``import`` among them; empty: none."""
    error: str = ""
    exit_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """A machine; an empty or None field is unknown, never "no"."""

    system: System = ""
    release: str = ""
    """``Ubuntu 22.04``, ``Windows 11``, ``macOS 14.5``."""
    architecture: str = ""
    """``x86_64``, ``aarch64``, ``arm64``."""
    is_wsl: bool | None = None
    container: str = ""
    """``docker``, ``podman``, ``kubernetes``, ``colab``, ``kaggle``, or ``none``."""
    is_jetson: bool | None = None
    glibc: str = ""
    cpu_flags: tuple[str, ...] = ()
    """Those of ``sse2 avx avx2 avx512f fma`` that the CPU has; every x86_64 has the first, so empty
    means not known."""
    memory_bytes: int = 0
    shared_memory_bytes: int = 0
    """Size of ``/dev/shm``."""
    locked_memory_limit_bytes: int = -1
    """``ulimit -l``; -1: no limit or not known."""
    environment: dict[str, str] = field(default_factory=dict)
    """Those that matter: ``CUDA_*``, ``TF_*``, ``XLA_FLAGS``, ``LD_LIBRARY_PATH``, ``NCCL_*``."""
    python: PythonFacts = PythonFacts()
    tensorflow: str = ""
    """Version that is installed, or that the user told."""
    keras: str = ""
    cuda: str = ""
    """Toolkit that the user told or that was found under ``/usr/local``."""
    cudnn: str = ""
    pci_gpus: tuple[str, ...] | None = None
    """NVIDIA devices on the PCI bus by address; empty: looked and found none."""
    device_nodes: tuple[str, ...] | None = None
    """The nodes among ``/dev/nvidia*`` and ``/dev/dxg``."""
    driver: DriverFacts = DriverFacts()
    gpus: tuple[GpuFacts, ...] | None = None
    """Cards by NVML or as the user told; empty: looked and found none."""
    libraries: tuple[LibraryFacts, ...] = ()
    ptxas: str = ""
    libdevice: str = ""
    tools_searched: tuple[str, ...] = ()
    """Folders in which ptxas and libdevice were looked for, in XLA's order; empty: not looked."""
    child: ChildFacts | None = None
    probes: tuple[ProbeResult, ...] = ()

    @property
    def first_gpu(self) -> GpuFacts:
        """The card that speaks for the machine; one of which nothing is known where none is."""
        return self.gpus[0] if self.gpus else GpuFacts()
