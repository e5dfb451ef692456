"""The NVIDIA driver: its kernel module, its library, and what ``cuInit`` says."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.doctor.machine_facts import DriverFacts, MachineFacts
from tfdyno.probe.base.attempt import Part, failed, found, not_run
from tfdyno.probe.base.folders import configured, loader_path
from tfdyno.probe.base.pci import no_device

if TYPE_CHECKING:
    from tfdyno.probe.base.children import Answers
    from tfdyno.probe.base.host import Host

MODULE = r"Kernel Module.*?\s(\d+\.\d+(?:\.\d+)?)\s"
LIBRARY_VERSION = re.compile(r"libcuda\.so\.(\d{3,}\.\d+(?:\.\d+)?)$")
COMPAT = r"[/\\](compat|cuda-compat)[/\\]"
WINDOWS_LIBRARY = r"C:\Windows\System32\nvcuda.dll"


def driver(host: Host, facts: MachineFacts) -> Part:
    """Return the version of kernel module and library that is loaded, from files alone."""
    if host.system == "macos":
        return not_run("macOS has no NVIDIA driver")
    if host.system == "windows":
        path = WINDOWS_LIBRARY if host.exists(WINDOWS_LIBRARY) else ""
        return found(driver=replace(facts.driver, library_path=path))
    path, library = library_here(host)
    module = module_version(host)
    return found(
        driver=DriverFacts(
            version=module or library,
            library_version=library,
            library_path=path,
            is_forward_compat=bool(re.search(COMPAT, path)),
            restricts_profiling=restricts_profiling(host),
        )
    )


def module_version(host: Host) -> str:
    """Return version of the loaded kernel module; empty where none is loaded."""
    line = re.search(MODULE, host.text("/proc/driver/nvidia/version"))
    return line[1] if line else host.text("/sys/module/nvidia/version", limit=64).strip()


def library_here(host: Host) -> tuple[str, str]:
    """Return path and version of the ``libcuda.so.1`` that the loader finds first, or nothing."""
    for folder in (*loader_path(host), *configured(host)):
        path = f"{folder}/libcuda.so.1"
        if host.exists(path):
            real = host.real(path)
            version = LIBRARY_VERSION.search(real)
            return real, version[1] if version else ""
    return "", ""


def restricts_profiling(host: Host) -> bool | None:
    """Return whether only the administrator may read counters of the card; None where unknown."""
    line = re.search(
        r"^RmProfilingAdminOnly:\s*(\d)", host.text("/proc/driver/nvidia/params"), re.M
    )
    return line[1] == "1" if line else None


def names(facts: MachineFacts) -> list[str]:
    """Return what the loader is asked for, in turn."""
    return ["nvcuda.dll"] if facts.system == "windows" else ["libcuda.so.1", "libcuda.so"]


def cuda_driver(host: Host, facts: MachineFacts, answers: Answers) -> Part:
    """Return the driver's newest CUDA and the error of ``cuInit``, as a child told."""
    if not answers.started:
        return not_run(answers.reason or no_device(facts))
    from tfdyno.core.messages.nvidia import CudaTold, InitTold, LibraryTold  # only with a card

    library, init = answers.one(LibraryTold), answers.one(InitTold)
    cuda = answers.one(CudaTold)
    if library is None:
        return failed(answers.reason or "the driver's library told nothing")
    if library.error:
        return failed(library.error)
    path = host.real(library.path or facts.driver.library_path)
    version = LIBRARY_VERSION.search(path)
    known = facts.driver
    library_version = version[1] if version else known.library_version
    told = replace(
        known,
        version=known.version or library_version,
        library_version=library_version,
        library_path=path,
        is_forward_compat=bool(re.search(COMPAT, path)),
        cuda=readable_cuda(cuda.version if cuda else 0) or known.cuda,
        init_error=init.error if init else "no answer",
    )
    return failed(answers.reason, driver=told) if answers.reason else found(driver=told)


def readable_cuda(number: int) -> str:
    """Read 12080 as ``12.8``; 0 as nothing."""
    return f"{number // 1000}.{number % 1000 // 10}" if number > 0 else ""
