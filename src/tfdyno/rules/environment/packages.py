"""Python packages that do not fit each other, the system or the GPU."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.rules.condition import version_key
from tfdyno.rules.environment.seen import gpu_evidence, has_gpu, seen

if TYPE_CHECKING:
    from tfdyno.core.choose.software import Knowledge
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.rules.match import Match

LAST_WINDOWS_GPU = (2, 10)
FIRST_NUMPY_2 = (2, 18)
"""The first TensorFlow that was compiled for NumPy 2."""
_PARTS = frozenset({"tensorflow-intel", "tensorflow-cpu-aws", "tensorflow-macos"})
"""What the package tensorflow itself brings on other systems: the same version, no conflict."""
_BROKEN = r"^(?P<name>[\w.-]+)(?P<wanted>[^(]*)\((?:installed (?P<found>[^)]+)|.*)\)"
_BY_PACKAGE = {
    "numpy": "pkg.numpy_abi",
    "protobuf": "pkg.protobuf_clash",
    "keras": "pkg.keras_mismatch",
    "tf-keras": "pkg.keras_mismatch",
    "h5py": "pkg.h5py_version",
}

_IMPORTED_LATER = frozenset({"keras", "tf-keras"})
"""Imported when it is first used: an import of TensorFlow says nothing of it."""


def no_tensorflow(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find an interpreter that has none."""
    looked = any(one.name == "distributions" and one.state == "ok" for one in facts.probes)
    if (
        facts.tensorflow
        or facts.python.tensorflow_folder
        or not (looked or facts.python.distributions)
    ):
        return None
    where = facts.python.prefix or "site-packages"
    return seen("py.wrong_interpreter", "proven", (where, "no package tensorflow"))


def mixed_install(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find several distributions that own the files of one folder."""
    owners = facts.python.tensorflow_owners
    if len(set(owners) - {"tensorflow"}) < 2 and set(owners) & _PARTS:
        return None
    if len(owners) < 2:
        return None
    names = ", ".join(owners)
    return seen("pkg.mixed_install", "proven", ("owners of tensorflow/", names), packages=names)


def broken_requirement(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find a package beside TensorFlow outside of what TensorFlow's metadata asks for."""
    for text in facts.python.broken_requirements:
        parts = re.match(_BROKEN, text)
        name = parts["name"].lower() if parts else text.split()[0].lower()
        if name.startswith("nvidia-"):
            continue  # a missing CUDA wheel is told by what fails to load
        found = (parts["found"] or "") if parts else ""
        if _imported(facts) and name not in _IMPORTED_LATER:
            continue  # ``outside_range`` tells of it
        return _broken(name, found, text, facts)
    return None


def outside_range(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find a package of another version than TensorFlow asks for, with which it was imported."""
    for text in facts.python.broken_requirements if _imported(facts) else ():
        parts = re.match(_BROKEN, text)
        if parts is None or not parts["found"]:
            continue  # of what is not installed, libclang say, TensorFlow imports nothing
        name = parts["name"].lower()
        if not name.startswith("nvidia-") and name not in _IMPORTED_LATER:
            values = {"culprit": parts["name"], "found": parts["found"]}
            return seen("pkg.outside_range", "proven", ("metadata of tensorflow", text), **values)
    return None


def _imported(facts: MachineFacts) -> bool:
    """Return whether TensorFlow was imported in a child, without what is not installed."""
    child = facts.child
    return child is not None and child.import_s > 0.0 and child.failed != "import"


def _broken(name: str, found: str, text: str, facts: MachineFacts) -> Match:
    cause = _BY_PACKAGE.get(name, "pkg.dependency_clash") if found else "pkg.dependency_clash"
    before = version_key(facts.tensorflow)[:2] < FIRST_NUMPY_2
    is_torn = name == "numpy" and version_key(found)[:1] >= (2,) and before
    evidence = ("metadata of tensorflow", text)
    values = {"culprit": name, "found": found} | ({} if found else {"absent": name})
    return seen(cause, "proven" if is_torn else "likely", evidence, **values)


def windows_without_gpu(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find native Windows and a TensorFlow after 2.10."""
    if facts.system != "windows" or facts.is_wsl or not facts.tensorflow:
        return None
    if version_key(facts.tensorflow)[:2] <= LAST_WINDOWS_GPU:
        return None
    system = facts.release or "Windows"
    return seen(
        "win.native_no_gpu", "proven", ("system", f"{system}, TensorFlow {facts.tensorflow}")
    )


def cpu_only_build(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find a wheel without CUDA on a Linux machine that has a card."""
    build = facts.python.build
    if build is None or build.is_cuda_build or facts.system != "linux" or not has_gpu(facts):
        return None
    is_arm = facts.architecture in {"aarch64", "arm64"}
    cause = "arm.no_gpu_wheel" if is_arm else "pkg.cpu_only_build"
    evidence = ("build_info.py", "is_cuda_build = False")
    return seen(cause, "proven", evidence, gpu_evidence(facts), build="is_cuda_build = False")


def mac_without_cuda(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find a Mac without Apple's plugin."""
    names = facts.python.installed
    if facts.system != "macos" or not names or "tensorflow-metal" in names:
        return None
    return seen("mac.no_cuda", "proven", ("site-packages", "no package tensorflow-metal"))


def no_avx(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find a processor whose flags were read and that has no AVX."""
    if facts.architecture != "x86_64" or not facts.cpu_flags or "avx" in facts.cpu_flags:
        return None
    flags = " ".join(facts.cpu_flags)
    return seen("cpu.no_avx", "likely", ("processor", flags), instructions="AVX")


PACKAGE_RULES = (
    no_tensorflow,
    mixed_install,
    broken_requirement,
    outside_range,
    windows_without_gpu,
    cpu_only_build,
    mac_without_cuda,
    no_avx,
)
