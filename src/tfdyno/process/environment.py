"""What a trace depends on: versions of packages, and files of the user's own code."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import site
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

PACKAGES = ("keras", "tf-keras", "jax", "jaxlib", "tensorflow", "tensorflow-cpu", "keras-hub")

AUTOGRAPH = "__autograph_generated_file"
"""What TensorFlow writes of the user's functions, under another name in each process."""


def versions() -> dict[str, str]:
    """Return versions of Python and of the packages that decide how a model is traced."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        if distribution := _distribution(name):
            found[name.removesuffix("-cpu")] = distribution.version
    return found


def files_used(reference: str) -> dict[str, str]:
    """Return path and SHA-256 of every file that, when it changes, makes a trace stale.

    These are the file that the workload names, the modules that the user's code imported from
    outside the installed packages, and the records of the packages that matter (another version
    lies at another path).
    """
    paths = {Path(reference.partition(":")[0]).resolve(), *_own_modules()}
    for name in PACKAGES:
        folder = getattr(_distribution(name), "_path", None)
        if folder:
            paths.add(Path(folder) / "METADATA")
    return {str(path): _sha256(path) for path in sorted(paths) if path.is_file()}


def _own_modules() -> list[Path]:
    installed = [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]
    package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120
    installed += [*site.getsitepackages(), package]
    places = tuple(
        {f"{one}{os.sep}" for name in installed for one in (name, os.path.realpath(name))}
    )
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    named = [
        name for name in files if name and not _in_real_folder(name).startswith(places)
    ]  # most are left out
    own = [Path(name).resolve() for name in named]
    return [
        path
        for path in own
        if path.suffix == ".py"
        and not path.name.startswith(AUTOGRAPH)
        and not str(path).startswith(places)
    ]


def _in_real_folder(name: str) -> str:
    """Return a file by the folder that it is in: a package may be linked among the installed."""
    folder, _, file = name.rpartition(os.sep)
    return f"{_real(folder)}{os.sep}{file}"


_real = functools.lru_cache(maxsize=4096)(os.path.realpath)


def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
