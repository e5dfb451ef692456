"""Facts of Windows and macOS that their files or C libraries tell."""

from __future__ import annotations

import ctypes
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfdyno.probe.base.host import Host

WINDOWS_11_BUILD = 22000
WINDOWS_FEATURES = {"sse2": 10, "avx": 39, "avx2": 40, "avx512f": 41}
"""``PF_*_AVAILABLE`` of ``winnt.h``."""
MACOS_FEATURES = {
    "sse2": "sse2",
    "avx": "avx1_0",
    "avx2": "avx2_0",
    "avx512f": "avx512f",
    "fma": "fma",
}
"""Names under ``hw.optional``."""


class _MemoryStatus(ctypes.Structure):
    """``MEMORYSTATUSEX`` of Windows."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total_bytes", ctypes.c_uint64),
        ("other", ctypes.c_uint64 * 6),
    )


def windows(host: Host) -> dict[str, Any]:
    """Release, processor flags and memory of Windows."""
    numbers = [int(number) for number in re.findall(r"\d+", host.version)]
    name = "11" if len(numbers) > 2 and numbers[2] >= WINDOWS_11_BUILD else str(*numbers[:1])
    fields: dict[str, Any] = {"release": f"Windows {name}".strip(), "is_wsl": False}
    fields |= {"is_jetson": False, "container": "none"}
    if host.is_live and sys.platform == "win32":
        kernel = ctypes.WinDLL("kernel32")
        status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
        kernel.GlobalMemoryStatusEx(ctypes.byref(status))
        present = kernel.IsProcessorFeaturePresent
        flags = tuple(flag for flag, number in WINDOWS_FEATURES.items() if present(number))
        fields |= {"memory_bytes": status.total_bytes, "cpu_flags": flags}
    return fields


def macos(host: Host) -> dict[str, Any]:
    """Release, processor flags and memory of macOS."""
    plist = host.text("/System/Library/CoreServices/SystemVersion.plist")
    version = re.search(r"<key>ProductVersion</key>\s*<string>([\d.]+)", plist)
    fields: dict[str, Any] = {"release": f"macOS {version[1] if version else ''}".strip()}
    fields |= {"is_wsl": False, "is_jetson": False, "container": "none"}
    if host.is_live and sys.platform == "darwin":
        names = MACOS_FEATURES.items()
        fields["cpu_flags"] = tuple(flag for flag, name in names if _sysctl(f"hw.optional.{name}"))
        fields["memory_bytes"] = _sysctl("hw.memsize")
    return fields


def _sysctl(name: str) -> int:
    """Return a number that the kernel tells; 0 where it knows no such name."""
    value = ctypes.c_uint64(0)
    size = ctypes.c_size_t(ctypes.sizeof(value))
    library = ctypes.CDLL("libc.dylib")
    failed = library.sysctlbyname(name.encode(), ctypes.byref(value), ctypes.byref(size), None, 0)
    return 0 if failed else value.value
