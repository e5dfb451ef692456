"""Which CUDA toolkits hold a library file of a given name, and which know a card."""

from __future__ import annotations

import functools
import re

from tfdyno.core.base.dataclass import dataclass
from tfdyno.rules.tables import read_rows

Version = tuple[int, ...]
# Compiled when a name is asked about: a look at a machine asks about none.
_SONAME = r"lib(?P<library>[A-Za-z]+)\.so\.(?P<version>\d+(?:\.\d+)?)"
_DLL = r"(?P<library>[A-Za-z]+)64_(?P<version>\d+)"
_SONAMES = ("library", "version", "first_cuda", "last_cuda", "source")
_CAPABILITIES = ("capability", "first_cuda", "source")
_OWN_VERSION = (10, 1)
"""The CUDA from which on the libraries have versions of their own; before it, that of CUDA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolkits:
    """The CUDA versions, from first to last, whose toolkits hold a file."""

    first: Version
    last: Version

    def holds(self, cuda: str) -> bool:
        """Return whether that CUDA is among them; one without a minor may be any of its major."""
        version = parse(cuda)
        length = min(len(version), 2)
        return self.first[:length] <= version[:length] <= self.last[:length]

    def overlap(self, other: Toolkits) -> Toolkits | None:
        """Return the versions that both have; None where there are none."""
        first, last = max(self.first, other.first), min(self.last, other.last)
        return Toolkits(first=first, last=last) if first <= last else None

    def __str__(self) -> str:
        """Write as a person does: ``11.0`` or ``11.0–11.8``; the open end of a major as ``12``."""
        first, last = (".".join(map(str, one)) for one in (self.first, self.last))
        if first == last:
            return first
        if self.first[0] == self.last[0] and self.first[1] == 0:
            return str(self.first[0])
        return f"{first}–{last}"


def parse(version: str) -> Version:
    """Return the numbers of a version: ``11.2.152`` is (11, 2, 152); empty where there is none."""
    found = re.match(r"\d{1,9}(?:\.\d{1,9})*", version.strip())
    return tuple(int(number) for number in found[0].split(".")) if found else ()


def toolkits_with(name: str) -> Toolkits | None:
    """List CUDA versions that hold a file such as ``libcusolver.so.10`` or ``cudart64_101.dll``.

    None for what is no CUDA library or carries no version.

    Raises:
        ToolError: The shipped table is corrupt.
    """
    file = name.replace("\\", "/").rpartition("/")[2]
    found = re.match(_SONAME, file, re.IGNORECASE) or re.match(_DLL, file, re.IGNORECASE)
    if found is None:
        return None
    library = found["library"].lower()
    digits = found["version"]
    if "." not in digits and len(digits) in {2, 3} and re.match(_DLL, file, re.IGNORECASE):
        digits = _dll_version(library, digits)
    rows = _sonames().get(library)
    if rows is None:
        return None
    for version, toolkits in rows.items():
        if parse(digits)[: len(version)] == version:
            return toolkits
    exact = parse(digits)
    if len(exact) == 2 and exact < _OWN_VERSION:
        return Toolkits(first=exact, last=exact)
    return None


def first_cuda(capability: str) -> Version:
    """Return the first CUDA that makes code for a compute capability; empty where unknown.

    Raises:
        ToolError: The shipped table is corrupt.
    """
    return _capabilities().get(parse(capability), ())


def _dll_version(library: str, digits: str) -> str:
    """Read ``101`` as 10.1 and ``90`` as 9.0; ``12`` of a newer library is a major version."""
    if len(digits) == 3 or (library == "cudart" and digits in {"80", "90", "91", "92"}):
        return f"{digits[:-1]}.{digits[-1]}"
    return f"{digits[0]}.{digits[1]}" if digits in {"80", "90", "91", "92"} else digits


@functools.cache
def _sonames() -> dict[str, dict[Version, Toolkits]]:
    found: dict[str, dict[Version, Toolkits]] = {}
    for row in read_rows("cuda_sonames.csv", _SONAMES):
        toolkits = Toolkits(first=parse(row["first_cuda"]), last=parse(row["last_cuda"]))
        found.setdefault(row["library"].lower(), {})[parse(row["version"])] = toolkits
    return found


@functools.cache
def _capabilities() -> dict[Version, Version]:
    rows = read_rows("capability_cuda.csv", _CAPABILITIES)
    return {parse(row["capability"]): parse(row["first_cuda"]) for row in rows}
