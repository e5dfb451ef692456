"""The shared libraries and tools that TensorFlow needs on a GPU machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.rules.condition import version_key
from tfdyno.rules.environment.seen import has_gpu, seen

if TYPE_CHECKING:
    from tfdyno.core.choose.software import Knowledge
    from tfdyno.core.doctor.machine_facts import LibraryFacts, MachineFacts
    from tfdyno.rules.match import Match

_MAJOR = r"\.so\.(\d+)|64_(\d+)\.dll"
_MOST_TELLING = (
    "win.msvc_runtime", "lib.not_on_loader_path", "lib.cuda_wrong_version", "lib.cuda_missing",
    "lib.cudnn_missing", "prof.cupti_missing",
)  # fmt: skip
"""What is there but out of reach or of another version explains more than what is not there."""


def not_loaded(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """Find the first library that the loader could not give, and what else of it there is."""
    if not has_gpu(facts):
        return None
    found = [_missing(one) for one in facts.libraries if one.error and not one.path]
    return min(found, key=lambda one: _MOST_TELLING.index(one.cause), default=None)


def _missing(one: LibraryFacts) -> Match:
    is_same = [copy for copy in one.copies if _is_same(copy, one.soname)]
    error = one.error if one.soname in one.error else f"{one.soname}: {one.error}"
    evidence = (("loader", error), *_copies(one))
    if "msvcp" in one.soname:
        return seen("win.msvc_runtime", "proven", *evidence, library=one.soname)
    if is_same:
        return seen("lib.not_on_loader_path", "proven", *evidence, library=one.soname,
                    folder=re.split(r"[/\\][^/\\]*$", is_same[0])[0])  # fmt: skip
    if "cupti" in one.soname:
        return seen("prof.cupti_missing", "proven", *evidence, library=one.soname)
    if "cudnn" in one.soname:
        return seen("lib.cudnn_missing", "proven", *evidence, library=one.soname)
    cause = "lib.cuda_wrong_version" if one.copies else "lib.cuda_missing"
    return seen(cause, "proven", *evidence, library=one.soname, library_cuda=_major(one.soname))


def _is_same(copy: str, soname: str) -> bool:
    """Return whether a file is the library: ``libcudart.so.11.2.152`` is ``libcudart.so.11.0``."""
    name = re.split(r"[/\\]", copy)[-1].lower()
    stem = re.split(r"\.so|64_", soname.lower())[0]
    return name == soname.lower() or (name.startswith(stem) and _major(name) == _major(soname))


def old_cudnn(facts: MachineFacts, knowledge: Knowledge) -> Match | None:
    """Find a loaded cuDNN that is older than the one TensorFlow was built with."""
    wanted = knowledge.release.cudnn if knowledge.release else ""
    loaded = next((one for one in facts.libraries if "cudnn" in one.soname and one.version), None)
    if loaded is None or not wanted:
        return None
    have, need = version_key(loaded.version), version_key(wanted)
    if have[:1] == need[:1] and have >= need:
        return None
    evidence = (("libcudnn", f"{loaded.path}: {loaded.version}"), *_copies(loaded))
    return seen("lib.cudnn_version_mismatch", "proven", *evidence, found=loaded.version,
                wanted=wanted)  # fmt: skip


def no_ptxas(facts: MachineFacts, _knowledge: Knowledge) -> Match | None:
    """XLA looks for ptxas and libdevice in folders of its own."""
    if not facts.tools_searched or not has_gpu(facts) or (facts.ptxas and facts.libdevice):
        return None
    if any(one.error and not one.path for one in facts.libraries):
        return None  # the packages that bring the libraries bring the tools too
    cause = "lib.ptxas_missing" if facts.libdevice else "lib.libdevice_missing"
    return seen(cause, "likely", ("searched", ", ".join(facts.tools_searched)))


def _copies(library: LibraryFacts) -> tuple[tuple[str, str], ...]:
    return (("found", ", ".join(library.copies)),) if library.copies else ()


def _major(soname: str) -> str:
    match = re.search(_MAJOR, soname)
    return next(filter(None, match.groups()), "") if match else ""


LIBRARY_RULES = (not_loaded, old_cudnn, no_ptxas)
