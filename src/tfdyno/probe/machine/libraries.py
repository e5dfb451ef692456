"""The shared libraries that TensorFlow loads for a GPU: which file, which version, which copies."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.doctor.machine_facts import Distribution, LibraryFacts, MachineFacts
from tfdyno.probe.base.attempt import Part, failed, found, not_run
from tfdyno.probe.base.distributions import join
from tfdyno.probe.base.folders import configured, everywhere, loader_path, package_folders

if TYPE_CHECKING:
    from tfdyno.core.doctor.machine_facts import BuildInfo, System
    from tfdyno.core.messages.nvidia import LibraryTold
    from tfdyno.probe.base.children import Answers
    from tfdyno.probe.base.host import Host

# Where there is no device none of them is asked about: ``re`` compiles them when one is.
FILE = r"lib([A-Za-z]+)\.so(?:\.(\d[\d.]*))?$"
DLL = r"(?i:([A-Za-z]+)64_(\d+)\.dll$|(msvcp140_1)\.dll$)"
Files = dict[str, tuple[str, ...]]
TABLE = Path(__file__).parents[1] / "data" / "libraries.csv"
NCCL_SINCE = (12, 0)
"""The CUDA before which the wheels hold NCCL inside, checked by its absence from their loader
messages."""


def wanted_here(facts: MachineFacts) -> tuple[Wanted, ...]:
    """Return what the TensorFlow of this Python will load; nothing for a build without CUDA."""
    build = facts.python.build
    return wanted(build, facts.system) if build and build.is_cuda_build else ()


def why_none(facts: MachineFacts) -> str:
    """Return why no library is looked for; empty where some are."""
    build = facts.python.build
    if build is None:
        return "TensorFlow is not installed for this Python"
    if not build.is_cuda_build:
        return "this TensorFlow is built without CUDA"
    return "" if wanted_here(facts) else f"the libraries of CUDA {build.cuda} are not known"


def libraries(host: Host, facts: MachineFacts, answers: Answers) -> Part:
    """Return every library with the file that was loaded, and with all its copies.

    A child process loads them where one was started. For a recorded machine, and for what comes
    after a library on which the child died, the search of the loader is followed on the folders.
    """
    none = why_none(facts)
    if none:
        return not_run(none)
    files = copies(host, everywhere(host, facts))
    names = wanted_here(facts)
    if host.is_live and not answers.started:
        return not_run(answers.reason)
    from tfdyno.core.messages.nvidia import LibraryTold  # only where there is a card

    told = {one.name: one for one in answers.every(LibraryTold)}
    untold = [one.soname for one in names if one.soname not in told]
    have = tuple(
        _told(one, told.get(one.soname), facts, files)
        if one.soname in told or (host.is_live and one.soname == untold[0])
        else _searched(host, one, facts, files)
        for one in names
    )
    cudnn = next((one.version for one in have if "cudnn" in one.soname and one.version), "")
    fields: dict[str, Any] = {"libraries": have} | ({"cudnn": cudnn} if cudnn else {})
    is_whole = not (host.is_live and answers.reason)
    return found(**fields) if is_whole else failed(answers.reason, **fields)


def copies(host: Host, folders: tuple[str, ...]) -> Files:
    """List real files by library name, each once, in the order of the folders."""
    have: dict[str, dict[str, str]] = {}
    for folder in folders:
        for name in host.names(folder):
            library = library_of(name)
            if library:
                path = join(host, folder, name)
                have.setdefault(library, {}).setdefault(host.real(path), "")
    return {library: tuple(files) for library, files in have.items()}


def library_of(file: str) -> str:
    """Return ``cudnn`` of ``libcudnn.so.9.1.0`` or ``cudnn64_8.dll``; empty for another kind."""
    match = re.match(FILE, file)
    if match:
        return match[1]
    dll = re.match(DLL, file)
    return (dll[1] or dll[3]) if dll else ""


def version_of(path: str, packages: tuple[Distribution, ...], package: str) -> str:
    """Return version of a library by its file name, or by the package that owns it."""
    folder = re.match(r"(.*?[/\\](?:site|dist)-packages)[/\\]nvidia[/\\]", path)
    for one in packages if folder else ():
        if one.name == package and one.folder.startswith(folder[1] if folder else ""):
            return one.version
    number = re.search(r"\.so\.(\d+\.\d+[\d.]*)$", path)
    return number[1] if number else ""


def readable(library: str, number: int) -> str:
    """Return the number that a library tells as a version: cuDNN 90501 is 9.5.1, 8907 is 8.9.7."""
    if number <= 0:
        return ""
    if library == "cudart":
        return f"{number // 1000}.{number % 1000 // 10}"
    thousand = 10000 if number >= 10000 else 1000
    return f"{number // thousand}.{number % thousand // 100}.{number % 100}"


def _told(one: Wanted, told: LibraryTold | None, facts: MachineFacts, files: Files) -> LibraryFacts:
    """Return what the child told; a library on which it died is one that cannot be loaded."""
    died = f"{one.soname}: the process that loaded it did not survive"
    from tfdyno.core.messages.nvidia import LibraryTold

    told = told or LibraryTold(name=one.soname, error=died)
    version = readable(one.library, told.version)
    version = version or version_of(told.path, facts.python.distributions, one.package)
    return LibraryFacts(
        soname=one.soname,
        path=told.path,
        version=version,
        error=told.error,
        copies=files.get(one.library, ()),
    )


def _searched(host: Host, one: Wanted, facts: MachineFacts, files: Files) -> LibraryFacts:
    """Follow the order of the loader on the folders of a recorded machine."""
    order = (*loader_path(host), *package_folders(host), *configured(host))
    paths = (join(host, folder, one.soname) for folder in order)
    path = next((host.real(path) for path in paths if host.exists(path)), "")
    error = f"{one.soname}: cannot open shared object file: No such file or directory"
    have = LibraryFacts(soname=one.soname, path=path, copies=files.get(one.library, ()))
    if not path:
        return replace(have, error=error)
    return replace(have, version=version_of(path, facts.python.distributions, one.package))


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
