"""Installed packages, read from the names of their metadata folders."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.doctor.machine_facts import Distribution, MachineFacts
from tfdyno.probe.base.attempt import Part, found, not_run
from tfdyno.probe.base.python import interpreter

if TYPE_CHECKING:
    from tfdyno.probe.base.host import Host

FAMILY = frozenset(
    """tensorflow tensorflow-cpu tensorflow-gpu tf-nightly tf-nightly-cpu tf-nightly-gpu
    tensorflow-intel tensorflow-macos tensorflow-cpu-aws tensorflow-rocm intel-tensorflow
    tensorflow-directml""".split()
)
"""Distributions that bring a folder ``tensorflow``."""
MATTER = FAMILY | frozenset(
    """keras tf-keras keras-hub keras-nightly numpy protobuf h5py ml-dtypes typing-extensions
    absl-py tensorflow-metal tensorflow-directml-plugin tensorrt jax jaxlib torch horovod packaging
    cudatoolkit cudnn cuda-cudart cuda-nvcc cuda-version nccl tensorflow-base""".split()
)
PREFIXES = ("nvidia-", "jax-cuda", "tensorrt-", "tensorflow-")
NAME = re.compile(r"(.+?)-(\d[^-]*)(?:-py[\d.]+)?\.(?:dist-info|egg-info)$")
CONDA_NAME = r"(.+)-([^-]+)-[^-]+\.json$"
SETUP_VERSION = r"""(?m)^_VERSION = ['"]([\w.+-]+)['"]"""
"""The line of the version in ``tools/pip_package/setup.py``, which a wheel brings along."""
HEADER_VERSION = r"(?m)^#define TF_(MAJOR|MINOR|PATCH)_VERSION (\d+)"
PARTS = ("MAJOR", "MINOR", "PATCH")
Installed = dict[str, Distribution]


def distributions(host: Host, facts: MachineFacts) -> Part:
    """List TensorFlow, Keras, NumPy, protobuf, ``nvidia-*`` and the owners of ``tensorflow/``."""
    asked = interpreter(host)
    folders = asked.folders
    if not folders:
        return not_run("there is no site-packages folder to read")
    have = installed(host, folders)
    kept = tuple(_with_installer(host, one) for one in have.values() if matters(one.name))
    conda = conda_packages(host, facts.python.prefix)
    owners = tensorflow_owners(host, have)
    version = next((have[name].version for name in owners), "")
    bare = "" if owners else asked.tensorflow
    version = version or module_version(host, bare)
    keras = have.get("keras") or have.get("tf-keras")
    known = replace(facts.python, distributions=_sorted({*kept, *conda}), tensorflow_owners=owners,
                    tensorflow_folder=bare)  # fmt: skip
    return found(python=known, tensorflow=version, keras=keras.version if keras else "")


def installed(host: Host, folders: tuple[str, ...]) -> Installed:
    """Return every package by normalised name; the folder that comes first on the path wins."""
    have: Installed = {}
    for folder in folders:
        for entry in host.names(folder):
            match = NAME.match(entry)
            if match:
                name = re.sub(r"[-_.]+", "-", match[1]).lower()
                where = join(host, folder, entry)
                have.setdefault(name, Distribution(name=name, version=match[2], folder=where))
    return have


def matters(name: str) -> bool:
    """Return whether rules may look at this package."""
    return name in MATTER or name.startswith(PREFIXES)


def conda_packages(host: Host, prefix: str) -> tuple[Distribution, ...]:
    """Return packages of conda that have no Python metadata, such as ``cudatoolkit``."""
    folder = join(host, prefix, "conda-meta")
    entries = (re.match(CONDA_NAME, entry) for entry in host.names(folder)) if prefix else ()
    return tuple(
        Distribution(name=one[1], version=one[2], folder=folder, installer="conda")
        for one in entries
        if one and (one[1] in MATTER)
    )


def tensorflow_owners(host: Host, have: Installed) -> tuple[str, ...]:
    """Return packages that own files of ``tensorflow/``.

    On Windows and macOS ``tensorflow`` may be an empty package that asks for another, so where
    several are installed their lists of files are read.
    """
    family = [have[name] for name in sorted(FAMILY & have.keys())]
    if len(family) < 2:
        return tuple(one.name for one in family)
    own = [one.name for one in family if _owns(host, one)]
    return tuple(own) or tuple(one.name for one in family)


def join(host: Host, *parts: str) -> str:
    """Return parts of a path as the machine writes it."""
    return ("\\" if host.system == "windows" else "/").join(parts)


def module_version(host: Host, folder: str) -> str:
    """Return the version of a TensorFlow without metadata, by what it was built with; or nothing.

    Args:
        host: The machine.
        folder: Of the module; empty: there is none.
    """
    if not folder:
        return ""
    script = host.text(join(host, folder, "tools", "pip_package", "setup.py"))
    if told := re.search(SETUP_VERSION, script):
        return told[1]
    header = host.text(join(host, folder, "include", "tensorflow", "core", "public", "version.h"))
    parts = dict(re.findall(HEADER_VERSION, header))  # until 2.18 or so
    return ".".join(parts[name] for name in PARTS) if parts.keys() >= set(PARTS) else ""


def _owns(host: Host, one: Distribution) -> bool:
    record = host.text(join(host, one.folder, "RECORD"), limit=1 << 24)
    return "tensorflow/__init__.py," in record or "tensorflow_core/__init__.py," in record


def _with_installer(host: Host, one: Distribution) -> Distribution:
    installer = host.text(join(host, one.folder, "INSTALLER"), limit=100)
    return replace(one, installer=installer.strip().lower())


def _sorted(have: set[Distribution]) -> tuple[Distribution, ...]:
    return tuple(sorted(have, key=lambda one: (one.name, one.installer, one.version)))


def parent(folder: str) -> str:
    """Return the ``site-packages`` that holds a metadata folder."""
    return folder[: max(folder.rfind("/"), folder.rfind("\\"))] or os.curdir
