"""Operating system, container, processor and limits."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from tfdyno.probe.base.attempt import Part, found

if TYPE_CHECKING:
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.probe.base.host import Host

FLAGS = ("sse2", "avx", "avx2", "avx512f", "fma")
"""Every x86_64 processor has the first, so none at all means that nothing is known."""
WANTED = re.compile(
    r"CUDA|CUDNN|TF_|XLA_|NCCL_|NVIDIA_|KERAS_|OMP_|SLURM_JOB|TENSORFLOW"
    r"|(LD_LIBRARY_PATH|LD_PRELOAD|DYLD_\w+|PYTHONPATH|PYTHONNOUSERSITE|PYTHONHOME"
    r"|VIRTUAL_ENV|CONDA_PREFIX|CONDA_DEFAULT_ENV)$"
)
CGROUPS = (
    ("kubepods", "kubernetes"),
    ("libpod", "podman"),
    ("docker", "docker"),
    ("containerd", "docker"),
    ("/lxc", "lxc"),
)


def system(host: Host, _facts: MachineFacts) -> Part:
    """Return what the machine is and which of its variables matter."""
    rest = linux(host) if host.system == "linux" else _elsewhere(host)
    return found(
        system=host.system,
        architecture=_architecture(host.architecture),
        environment=environment(host),
        **rest,
    )


def environment(host: Host) -> dict[str, str]:
    """Return the variables that change what TensorFlow does, as they are set."""
    given = host.environment
    return {name: given[name] for name in sorted(given) if WANTED.match(name)}


def linux(host: Host) -> dict[str, Any]:
    """Return facts of Linux from ``/proc``, ``/etc`` and ``/sys``."""
    kernel = host.text("/proc/version")
    return {
        "release": release(host.text("/etc/os-release")),
        "is_wsl": "microsoft" in kernel.lower() if kernel else None,
        "is_jetson": is_jetson(host),
        "container": container(host),
        "glibc": host.glibc,
        "cpu_flags": cpu_flags(host.text("/proc/cpuinfo", limit=8192)),
        "memory_bytes": memory_bytes(host),
        "shared_memory_bytes": shared_memory_bytes(host),
        "locked_memory_limit_bytes": locked_memory_bytes(host.text("/proc/self/limits")),
    }


def release(os_release: str) -> str:
    """Read ``Ubuntu 22.04`` from ``/etc/os-release``."""
    pairs = dict(re.findall(r'^(NAME|VERSION_ID)="?([^"\n]*)"?$', os_release, re.MULTILINE))
    return " ".join(filter(None, [pairs.get("NAME", ""), pairs.get("VERSION_ID", "")]))


def is_jetson(host: Host) -> bool:
    """Return whether this is an NVIDIA Tegra board."""
    model = host.text("/proc/device-tree/model") + host.text("/proc/device-tree/compatible")
    return host.exists("/etc/nv_tegra_release") or "nvidia,tegra" in model or "Jetson" in model


def container(host: Host) -> str:
    """Name of the container engine or notebook service, ``none`` outside of them."""
    given = host.environment
    if "KAGGLE_KERNEL_RUN_TYPE" in given or "KAGGLE_URL_BASE" in given:
        return "kaggle"
    if "COLAB_RELEASE_TAG" in given or "COLAB_GPU" in given:
        return "colab"
    if "KUBERNETES_SERVICE_HOST" in given:
        return "kubernetes"
    if "APPTAINER_NAME" in given or "SINGULARITY_NAME" in given:
        return "apptainer"
    if host.exists("/run/.containerenv"):
        return "podman"
    cgroup = host.text("/proc/1/cgroup")
    for mark, name in CGROUPS:
        if mark in cgroup:
            return name
    return "docker" if host.exists("/.dockerenv") else "none"


def cpu_flags(cpuinfo: str) -> tuple[str, ...]:
    """List of ``FLAGS`` those that the first processor has; empty on other architectures."""
    line = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    have = set(line[1].split()) if line else set()
    return tuple(flag for flag in FLAGS if flag in have)


def memory_bytes(host: Host) -> int:
    """Return memory of the machine, or of its control group where that is less; 0 where unknown."""
    total = re.search(r"MemTotal:\s+(\d+) kB", host.text("/proc/meminfo", limit=4096))
    amounts = [int(total[1]) * 1024] if total else []
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        limit = host.text(f"/sys/fs/cgroup/{name}").strip()
        amounts += [int(limit)] if limit.isdecimal() else []
    return min(amounts, default=0)


def shared_memory_bytes(host: Host) -> int:
    """Return size of ``/dev/shm``; 0 where unknown."""
    mount = re.search(r"^\S+ /dev/shm tmpfs \S*\bsize=(\d+)k", host.text("/proc/mounts"), re.M)
    if mount:
        return int(mount[1]) * 1024
    if not host.is_whole:
        return 0
    size = os.statvfs("/dev/shm")
    return size.f_blocks * size.f_frsize


def locked_memory_bytes(limits: str) -> int:
    """Return the soft limit of locked memory (``ulimit -l``); -1 for none or unknown."""
    line = re.search(r"^Max locked memory\s+(\d+)", limits, re.MULTILINE)
    return int(line[1]) if line else -1


def _elsewhere(host: Host) -> dict[str, Any]:
    from tfdyno.probe.machine.platforms import macos, windows

    readers = {"windows": windows, "macos": macos}
    return readers[host.system](host) if host.system in readers else {}


def _architecture(name: str) -> str:
    return {"AMD64": "x86_64", "amd64": "x86_64", "ARM64": "arm64"}.get(name, name)
