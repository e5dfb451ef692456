"""The machine that probes look at: this one, or a recorded folder tree of another."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.doctor.machine_facts import System

SYSTEMS: dict[str, System] = {"linux": "linux", "win32": "windows", "darwin": "macos"}
KERNELS: dict[System, str] = {"linux": "Linux", "windows": "Windows", "macos": "Darwin"}
"""The kernels as ``platform.system`` names them."""
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Where probes look.

    A recorded tree has the folders ``proc``, ``sys``, ``dev``, ``usr`` and so on under ``root``;
    a Windows drive ``C:`` is its folder ``C``. Nothing is started for a recorded machine.
    """

    root: Path = Path("/")
    system: System = "linux"
    architecture: str = ""
    """The architecture as the kernel names it: ``x86_64``, ``aarch64``, ``arm64``, ``AMD64``."""
    version: str = ""
    """The version of Windows, ``10.0.22631``; other systems tell it in files."""
    glibc: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    python: str = ""
    """Interpreter whose packages matter."""
    is_live: bool = False
    """Whether children may be started: it is the machine that this process runs on."""

    @property
    def is_whole(self) -> bool:
        """Whether files are those of the running machine, not of a folder tree."""
        return self.root == Path("/")

    def path(self, absolute: str) -> Path:
        r"""Return where ``/proc/version`` or ``C:\Windows`` lies."""
        if self.is_whole:
            return Path(absolute)
        name = absolute.replace("\\", "/").lstrip("/")
        if name[1:2] == ":":
            name = name[0] + name[2:]
        return self.root / name

    def text(self, absolute: str, *, limit: int = READ_BYTES) -> str:
        """Return the first ``limit`` bytes of a file; empty where it cannot be read."""
        try:
            with self.path(absolute).open("rb") as file:
                return file.read(limit).decode(errors="replace")
        except OSError:
            return ""

    def exists(self, absolute: str) -> bool:
        """Return whether there is such a file or folder; what may not be seen is not there."""
        return os.path.exists(self.path(absolute))  # noqa: PTH110  (never raises)

    def names(self, folder: str) -> tuple[str, ...]:
        """List the sorted names in a folder; none where it cannot be read."""
        try:
            return tuple(sorted(os.listdir(self.path(folder))))  # noqa: PTH208  (twice as fast)
        except OSError:
            return ()

    def real(self, absolute: str) -> str:
        """Return the file that a chain of links leads to, as its machine names it."""
        real = Path(os.path.realpath(self.path(absolute)))
        root = Path(os.path.realpath(self.root))
        if self.is_whole or not real.is_relative_to(root):
            return str(real)
        name = real.relative_to(root).as_posix()
        if self.system != "windows":
            return f"/{name}"
        drive, _, rest = name.partition("/")
        return f"{drive}:\\" + rest.replace("/", "\\")


def this_host(python: str = "") -> Host:
    """Return the machine that this process runs on.

    Args:
        python: Interpreter whose packages matter; the one that runs tfdyno when empty.
    """
    system = SYSTEMS.get(sys.platform, "linux" if sys.platform.startswith("linux") else "")
    if sys.platform == "win32":
        windows = sys.getwindowsversion()
        architecture = os.environ.get("PROCESSOR_ARCHITECTURE", "")
        version = f"{windows.major}.{windows.minor}.{windows.build}"
        glibc = ""
    else:
        architecture, version = os.uname().machine, os.uname().release
        glibc = _glibc() if system == "linux" else ""
    return Host(
        system=system,
        architecture=architecture,
        version=version,
        glibc=glibc,
        environment=dict(os.environ),
        python=python or sys.executable,
        is_live=True,
    )


def _glibc() -> str:
    try:
        name = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (OSError, ValueError):  # musl knows no such name
        return ""
    return name.rpartition(" ")[2]
