"""Folders in which the loader, TensorFlow and the tools of CUDA look for files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.probe.base.distributions import join
from tfdyno.probe.base.python import interpreter

if TYPE_CHECKING:
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.probe.base.host import Host

USUAL = (
    "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib",
)  # fmt: skip
"""Where the loader looks last, Debian's folders first."""
TOOLKIT_VARIABLES = (
    "CUDA_HOME", "CUDA_PATH", "CUDA_DIR", "CUDA_ROOT", "CUDATOOLKIT_HOME", "EBROOTCUDA",
    "CUDNN_HOME", "CUDNN_PATH", "CUDNN_ROOT", "EBROOTCUDNN",
)  # fmt: skip
"""Set by installers and by the modules of clusters."""
INSIDE = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/aarch64-linux/lib",
          "extras/CUPTI/lib64")  # fmt: skip
DLL_FOLDER = r"C:\Windows\System32"
TOOLKITS_WINDOWS = r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA"
NVIDIA_FOLDERS = 40


def loader_path(host: Host) -> tuple[str, ...]:
    """Return folders of ``LD_LIBRARY_PATH``, or of ``PATH`` on Windows."""
    if host.system == "windows":
        return tuple(filter(None, host.environment.get("PATH", "").split(";")))
    return tuple(filter(None, host.environment.get("LD_LIBRARY_PATH", "").split(":")))


def package_folders(host: Host) -> tuple[str, ...]:
    """List ``site-packages/nvidia/*/lib``, which TensorFlow searches by itself since 2.14."""
    have = []
    for folder in interpreter(host).folders:
        top = join(host, folder, "nvidia")
        names = host.names(top)[:NVIDIA_FOLDERS]
        have += [join(host, top, name, end) for name in names for end in ("lib", "bin")]
    return tuple(one for one in have if host.exists(one))


def configured(host: Host) -> tuple[str, ...]:
    """Return folders of ``/etc/ld.so.conf.d`` and the usual ones; System32 on Windows."""
    if host.system == "windows":
        return (DLL_FOLDER,)
    listed: list[str] = []
    for name in host.names("/etc/ld.so.conf.d"):
        text = host.text(f"/etc/ld.so.conf.d/{name}")
        listed += re.findall(r"^\s*(/[^\s#]+)", text, re.MULTILINE)
    return tuple(one for one in dict.fromkeys([*listed, *USUAL]) if host.exists(one))


def toolkits(host: Host) -> tuple[str, ...]:
    """List roots of installed toolkits: variables first, then the usual places."""
    named = [host.environment.get(name, "") for name in TOOLKIT_VARIABLES]
    if host.system == "windows":
        found = [f"{TOOLKITS_WINDOWS}\\{name}" for name in host.names(TOOLKITS_WINDOWS)]
    else:
        local = [name for name in host.names("/usr/local") if name.startswith("cuda")]
        found = [*(f"/usr/local/{name}" for name in local), "/opt/cuda", "/usr/lib/cuda"]
    every = dict.fromkeys(one.rstrip("/\\") for one in (*named, *found) if one)
    return tuple(one for one in every if host.exists(one))


def everywhere(host: Host, facts: MachineFacts) -> tuple[str, ...]:
    """Return every folder that may hold a copy of a CUDA library, those of the loader first."""
    ends = ("bin",) if host.system == "windows" else INSIDE
    roots = [join(host, root, end) for root in toolkits(host) for end in ends]
    prefix = facts.python.prefix
    conda = host.environment.get("CONDA_PREFIX", "")
    own = [join(host, one, "lib") for one in (prefix, conda) if one]
    own += [join(host, one, "Library", "bin") for one in (prefix, conda) if one]
    torch = [join(host, folder, "torch", "lib") for folder in interpreter(host).folders]
    every = [*loader_path(host), *package_folders(host), *configured(host), *roots, *own, *torch]
    return tuple(one for one in dict.fromkeys(every) if host.exists(one))
