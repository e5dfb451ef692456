"""CUDA libraries that failed to load: missing, of another version, or out of the loader's reach."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.rules.condition import version_key
from tfdyno.rules.cuda_files import Toolkits, parse, toolkits_with
from tfdyno.rules.values import values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tfdyno.core.choose.software import Knowledge
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.rules.log.explained import LogFacts
    from tfdyno.rules.match import Match

MISSING = "lib.cuda_missing"
WRONG = "lib.cuda_wrong_version"
OUT_OF_REACH = "lib.not_on_loader_path"
CUDNN_MISSING = "lib.cudnn_missing"
MISMATCH = "lib.cudnn_version_mismatch"
DLOPEN = "sym.dlopen_failed"
_BRINGS_CUDA = "2.14"
"""The TensorFlow from which on pip installs the CUDA libraries."""
_OWN_CUDNN_MAJOR = 9
"""Major version of the cuDNN that the CUDA 12 wheels of today bring."""


def refine_libraries(
    matches: tuple[Match, ...], log: LogFacts, facts: MachineFacts, knowledge: Knowledge
) -> tuple[Match, ...]:
    """Tell a missing library from one of another version and from one that is out of reach.

    What speaks: the name of the file that failed, the CUDA version that was told or that the
    opened libraries show, the files that the log lists (they say nothing unless one of them is the
    file that failed), and what the TensorFlow release needs.
    """
    known = values(facts, knowledge)
    failed = _failed(matches, log)
    seen = _files_seen(log, facts)
    has_library = any(one.cause.startswith("lib.") for one in matches)
    refined: list[Match] = []
    for one in matches:
        if one.cause == MISSING:
            refined.append(_library(one, failed, seen, _opened(log), known))
        elif one.cause == CUDNN_MISSING:
            refined.append(_out_of_reach(one, seen, known) or one)
        elif one.cause == MISMATCH:
            refined.append(_cudnn(one))
        elif one.cause == DLOPEN and not has_library:
            refined.append(_unnamed(one, known))
        elif one.cause != OUT_OF_REACH or "library_folder" not in one.values:
            refined.append(one)
    return tuple(refined)


def _library(
    match: Match,
    failed: tuple[str, ...],
    seen: Mapping[str, str],
    opened: Toolkits | None,
    known: Mapping[str, str],
) -> Match:
    ranges = {name: found for name in failed if (found := toolkits_with(name))}
    told = known.get("cuda", "")
    for name, toolkits in ranges.items():
        if (told and not toolkits.holds(told)) or (not told and _is_other(toolkits, opened)):
            shown = {"library": name, "library_cuda": str(toolkits)} | _shown(told, opened)
            return match.recast(WRONG, "likely", **shown)
    reached = _out_of_reach(match, seen, known, failed)
    if reached:
        return reached
    if ranges and told and opened is None:
        return match.recast(OUT_OF_REACH, "likely", library=next(iter(ranges)), **_path(known))
    needed = known.get("needed_cuda", "")
    if not failed and told and is_older(known) and is_other_cuda(told, needed):
        return match.recast(WRONG, "likely")
    return match


def _out_of_reach(
    match: Match, seen: Mapping[str, str], known: Mapping[str, str], failed: Iterable[str] = ()
) -> Match | None:
    for name in (*failed, match.values.get("library", "")):
        folder = seen.get(_base(name)) if name else None
        if folder:
            found = {"library": _base(name), "library_folder": folder} | _path(known)
            return match.recast(OUT_OF_REACH, "likely", **found)
    return None


def _unnamed(match: Match, known: Mapping[str, str]) -> Match:
    """Compare what is installed with what is needed where the log names no library that failed."""
    told, needed = known.get("cuda", ""), known.get("needed_cuda", "")
    if told and is_other_cuda(told, needed):
        return match.recast(WRONG, "likely")
    if told and needed:
        return match.recast(OUT_OF_REACH, "likely", **_path(known))
    return match.recast(MISSING, "likely")


def _cudnn(match: Match) -> Match:
    """Return versions as people write them, and the package that brings the one that is wanted."""
    read = {name: _plain_cudnn(match.values.get(name, "")) for name in ("found", "wanted")}
    found = {name: version for name, version in read.items() if version}
    wanted = parse(found.get("wanted", ""))
    if wanted[:1] == (_OWN_CUDNN_MAJOR,):
        package = f"nvidia-cudnn-cu12>={wanted[0]}.{wanted[1]},<{wanted[0] + 1}"
        found["wanted_package"] = package
    return match.told(found)


def _plain_cudnn(version: str) -> str:
    """Read ``7201`` as ``7.2.1`` and ``90300`` as ``9.3.0``, the ways in which cuDNN counts."""
    if not version.isdigit() or not 4 <= len(version) <= 6:
        return version
    number = int(version)
    major, rest = divmod(number, 10000 if number >= 90000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _failed(matches: Iterable[Match], log: LogFacts) -> tuple[str, ...]:
    """Return names of CUDA libraries that did not load, each once."""
    lines = [line.values.get("soname", "") for line in log.watched.get("failed", ())]
    named = [
        one.values.get(key, "")
        for one in matches
        for key in ("library", "file")
        if one.cause == MISSING
    ]
    hits = [
        line.values.get(key, "")
        for one in log.hits
        for line in one.lines
        for key in ("library", "file")
        if one.cause == MISSING
    ]
    return tuple(dict.fromkeys(name for name in lines + named + hits if toolkits_with(name)))


def _opened(log: LogFacts) -> Toolkits | None:
    """Return the CUDA versions that all opened libraries allow."""
    both: Toolkits | None = None
    for line in log.watched.get("opened", ()):
        toolkits = toolkits_with(line.values.get("soname", ""))
        if toolkits:
            both = toolkits if both is None else both.overlap(toolkits) or both
    return both


def _files_seen(log: LogFacts, facts: MachineFacts) -> dict[str, str]:
    """List library files that the log lists or that a probe found, with their folders."""
    seen: dict[str, str] = {}
    for hits in log.hits:
        for line in hits.lines if hits.cause == OUT_OF_REACH else ():
            name, folder = line.values.get("library", ""), line.values.get("library_folder", "")
            if name and folder:
                seen.setdefault(name, folder)
    for library in facts.libraries:
        for copy in library.copies if not library.path else ():
            folder, _, name = copy.rpartition("/")
            seen.setdefault(name, folder)
    return seen


def _is_other(toolkits: Toolkits, opened: Toolkits | None) -> bool:
    """Return whether libraries of one toolkit were opened, and this one is of another.

    A single version in common counts as none where the opened ones allow more: TensorFlow 2.4 asks
    for libcusolver.so.10, which of CUDA 11 only 11.0 holds.
    """
    if opened is None:
        return False
    both = toolkits.overlap(opened)
    return both is None or (both.first == both.last and opened.first != opened.last)


def is_older(known: Mapping[str, str]) -> bool:
    """Return whether the TensorFlow is of the time when CUDA had to be installed by hand."""
    tensorflow = known.get("tensorflow_minor", "")
    return bool(tensorflow) and version_key(tensorflow) < version_key(_BRINGS_CUDA)


def is_other_cuda(told: str, needed: str) -> bool:
    """Return whether files of one CUDA have other names than those of the other."""
    have, want = parse(told), parse(needed)
    if not have or not want:
        return False
    length = 1 if want[0] >= 11 or len(have) == 1 else 2
    return have[:length] != want[:length]


def _shown(told: str, opened: Toolkits | None) -> dict[str, str]:
    return {"cuda": told} if told else {"cuda": str(opened)} if opened else {}


def _path(known: Mapping[str, str]) -> dict[str, str]:
    return {"variable": "PATH" if known.get("platform") == "windows" else "LD_LIBRARY_PATH"}


def _base(name: str) -> str:
    return re.split(r"[/\\]", name)[-1]
