"""Which XLA an interpreter has, for which processor and cards, and which flags it knows.

Nothing is imported: versions are read from the names of metadata folders, flags from the library.
"""

from __future__ import annotations

import hashlib
import mmap
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tfdyno.core.base.process_limits import allowed
from tfdyno.probe.base import driver, processors
from tfdyno.probe.base.distributions import installed
from tfdyno.probe.base.python import interpreter
from tfdyno.probe.cards import cards

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.probe.base.host import Host

Framework = Literal["tensorflow", "jax"]
LIBRARIES: dict[Framework, tuple[str, ...]] = {
    "tensorflow": (
        "tensorflow/libtensorflow_cc.so.2",
        "tensorflow/python/_pywrap_tensorflow_internal.so",
    ),
    "jax": ("jaxlib/libjax_common.so", "jaxlib/xla_extension.so"),
}
"""Where XLA is; the second name is that of older releases."""
PACKAGES: dict[Framework, tuple[str, ...]] = {
    "tensorflow": ("tensorflow", "tf-nightly", "intel-tensorflow", "nvidia-"),
    "jax": ("jax", "jaxlib", "jax-cuda", "nvidia-"),
}
"""Beginnings of the names of packages that decide what XLA makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """XLA in an interpreter's packages."""

    framework: Framework
    library: Path
    size_bytes: int
    changed_at_ns: int
    versions: dict[str, str]
    """The versions of the packages that decide what it makes."""

    @property
    def version(self) -> str:
        """The version of the framework itself."""
        first = PACKAGES[self.framework][0]
        return next((v for name, v in sorted(self.versions.items()) if name.startswith(first)), "")


def compiler(host: Host, framework: Framework) -> Compiler | None:
    """Return what compiles in ``host.python``; None where there is none."""
    folders = interpreter(host).folders
    for folder in folders:
        for name in LIBRARIES[framework]:
            path = Path(folder, name)
            try:
                seen = path.stat()
            except OSError:
                continue
            versions = {
                one.name: one.version
                for one in installed(host, folders).values()
                if one.name.startswith(PACKAGES[framework])
            }
            return Compiler(framework=framework, library=path, size_bytes=seen.st_size,
                            changed_at_ns=seen.st_mtime_ns, versions=versions)  # fmt: skip
    return None


def known_flags(library: Path, names: Iterable[str]) -> frozenset[str]:
    """Return those of the names that stand in a library; reads all of it, in about a second."""
    try:
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as m:
            return frozenset(one for one in names if m.find(one.encode() + b"\0") >= 0)
    except (OSError, ValueError):
        return frozenset()


def machine(host: Host, visible: str | None) -> dict[str, str]:
    """Return what compiled code is made for: processor, cards that a process sees, driver.

    Args:
        host: The machine.
        visible: ``CUDA_VISIBLE_DEVICES`` of the process; None: not set.
    """
    text = host.text("/proc/cpuinfo", limit=1 << 14)
    able = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", text, re.MULTILINE)
    features = hashlib.sha256((able[1] if able else "").encode()).hexdigest()[:8]
    known = {"processor": processors.name(host), "features": features,
             "processors": str(len(allowed()))}  # fmt: skip
    with cards.opened() as nvml:
        found = [cards.card(nvml, handle, lambda _name: "") for _, handle in
                 (cards.handles(nvml, visible) if nvml else ())]  # fmt: skip
        version = cards.text(cards.ask(nvml, "nvmlSystemGetDriverVersion")) if found else ""
    if found:
        names = [f"{one.name}{' MIG' if one.mig else ''} {one.memory_bytes}" for one in found]
        known |= {"cards": ", ".join(names), "driver": version or driver.module_version(host)}
    return known
