"""Which shared libraries a TensorFlow loads, by the CUDA and cuDNN it was built for."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.core.doctor.machine_facts import BuildInfo, System

TABLE = Path(__file__).parents[1] / "data" / "libraries.csv"
NCCL_SINCE = (12, 0)
"""The CUDA before which the wheels hold NCCL inside, checked by its absence from their loader
messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One library by the name that the loader is asked for."""

    library: str
    """``cudnn``, ``cublasLt``: the name without prefix and version."""
    soname: str
    package: str = ""
    """The PyPI package that brings it."""


def wanted(build: BuildInfo, system: System) -> tuple[Wanted, ...]:
    """Return the libraries that TensorFlow loads for a GPU, in its order; cuDNN comes last.

    Args:
        build: Its CUDA decides the version in each name.
        system: Windows has DLLs of other names.
    """
    key = "dll" if system == "windows" else "soname"
    toolkit = _version(build.cuda)
    rows = _rows(toolkit)
    have = [Wanted(library=r["library"], soname=r[key], package=r["package"]) for r in rows]
    major = build.cudnn.partition(".")[0]
    if major and rows:
        name = f"cudnn64_{major}.dll" if system == "windows" else f"libcudnn.so.{major}"
        package = f"nvidia-cudnn-cu{toolkit[0]}"
        have.append(Wanted(library="cudnn", soname=name, package=package))
    if toolkit >= NCCL_SINCE and system == "linux":
        package = f"nvidia-nccl-cu{toolkit[0]}"
        have.append(Wanted(library="nccl", soname="libnccl.so.2", package=package))
    if system == "windows":
        have.append(Wanted(library="msvcp140_1", soname="msvcp140_1.dll"))
    return tuple(one for one in have if one.soname)


def _rows(toolkit: tuple[int, ...]) -> list[dict[str, str]]:
    """Return the newest toolkit's rows that is not newer than this one, of its major."""
    rows = _table()
    versions = {_version(row["cuda"]) for row in rows}
    fitting = [one for one in versions if one[:1] == toolkit[:1] and one <= toolkit]
    return [row for row in rows if fitting and _version(row["cuda"]) == max(fitting)]


@functools.cache
def _table() -> list[dict[str, str]]:
    import csv

    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _version(text: str) -> tuple[int, ...]:
    """Read major and minor; a major alone (``12``) counts as its ``.0``, nothing as nothing."""
    numbers = [int(part) for part in text.split(".")[:2] if part.isdecimal()]
    return tuple(numbers + [0] * (2 - len(numbers))) if numbers else ()
