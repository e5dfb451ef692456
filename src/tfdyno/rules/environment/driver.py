"""The NVIDIA driver: not there, torn, too old, or not within reach of WSL or a container."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.condition import version_key
from tfdyno.rules.environment.seen import (
    ENGINES,
    WSL_FOLDER,
    cuda_works,
    gpu_evidence,
    has_gpu,
    has_node,
    seen,
)

if TYPE_CHECKING:
    from tfdyno.core.choose.software import Knowledge
    from tfdyno.core.doctor.finding import Verdict
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.rules.match import Match

KERNEL_FILE = "/proc/driver/nvidia/version"


def no_gpu(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find that there is no card, on the bus or with NVML."""
    looked = facts.pci_gpus == () and not facts.is_wsl and not facts.is_jetson
    if not looked or has_gpu(facts) or facts.system not in {"linux", ""}:
        return None
    return seen("gpu.none", "proven", ("PCI bus", "no device of vendor 0x10de"))


def not_installed(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find a card on the bus for which the kernel knows no driver."""
    if not facts.pci_gpus or facts.driver.version or facts.is_wsl or facts.container in ENGINES:
        return None
    return seen("drv.not_installed", "proven", gpu_evidence(facts), (KERNEL_FILE, "does not exist"))


def wsl(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find WSL, whose driver is that of Windows, under a folder of its own."""
    path = facts.driver.library_path
    if not facts.is_wsl or path.startswith(WSL_FOLDER) or facts.probes == ():
        return None
    if path:
        return seen("wsl.driver", "proven", ("libcuda.so.1", path), library=path)
    return seen("wsl.driver", "likely", ("libcuda.so.1", "not found in /usr/lib/wsl/lib"))


def container(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find the host's cards on the bus, but no device that was handed in."""
    if facts.container not in ENGINES or facts.device_nodes is None or has_node(facts):
        return None
    if facts.pci_gpus:
        return seen("ctr.no_gpu_flag", "proven", gpu_evidence(facts), ("/dev", "no nvidia device"))
    return None


def torn(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find kernel module and library of different versions."""
    kernel, library = facts.driver.version, facts.driver.library_version
    if not kernel or not library or version_key(kernel) == version_key(library) or facts.is_wsl:
        return None
    if facts.driver.is_forward_compat:
        return None  # there the library is meant to be newer
    return seen(
        "drv.kernel_user_mismatch",
        "proven",
        (KERNEL_FILE, kernel),
        (facts.driver.library_path or "libcuda.so.1", library),
        kernel_driver=kernel,
        library_driver=library,
    )


def too_old(facts: MachineFacts, knowledge: Knowledge) -> Match | None:
    """Find a driver below what the CUDA of this TensorFlow needs at least."""
    driver, release = facts.driver.version, knowledge.release
    if not driver or release is None or (facts.driver.is_forward_compat and cuda_works(facts)):
        return None
    is_windows = facts.system == "windows"
    if is_windows and not release.has_native_windows_gpu:
        return None
    of_windows = is_windows or facts.is_wsl
    needed = release.min_driver_windows if of_windows else release.min_driver_linux
    if not needed or version_key(driver) >= version_key(needed):
        return None
    return seen(
        "drv.too_old",
        "proven",
        ("driver" if of_windows else KERNEL_FILE, driver),
        (f"TensorFlow {release.tensorflow}", f"CUDA {release.cuda} needs {needed} or later"),
        driver=driver,
        min_driver=needed,
    )


def forward_compat(facts: MachineFacts, knowledge: Knowledge) -> Match | None:
    """Find a library of a compat folder over an older driver, where CUDA does not start."""
    driver = facts.driver
    if not driver.is_forward_compat or cuda_works(facts):
        return None
    evidence = (("libcuda.so.1", driver.library_path), ("driver", driver.version))
    if driver.init_error:
        return seen("drv.forward_compat", "likely", *evidence, ("cuInit", driver.init_error))
    return seen("drv.forward_compat", "likely", *evidence) if too_old(facts, knowledge) else None


def init_failed(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find driver and card there, and a CUDA that does not start."""
    error = facts.driver.init_error
    if not error or not has_gpu(facts):
        return None
    verdict: Verdict = "possible" if "NO_DEVICE" in error else "proven"
    return seen("drv.init_failed", verdict, ("cuInit", error), error=error)


DRIVER_RULES = (
    no_gpu,
    not_installed,
    wsl,
    container,
    torn,
    too_old,
    forward_compat,
    init_failed,
)
