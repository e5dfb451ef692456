"""Packages and Python: what a log shows, seen with the machine and the table of releases.

Answers what a line alone cannot: which side of a clash to move, which Python or TensorFlow fits,
whether two lines of a package list are two TensorFlows, why Windows finds no GPU.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator

from tfdyno.core.choose.software import Knowledge, Release
from tfdyno.core.doctor.finding import Evidence
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.rules.condition import version_key
from tfdyno.rules.log.explained import Line, LogFacts
from tfdyno.rules.log.matches import holding
from tfdyno.rules.match import Match
from tfdyno.rules.values import minor

FIRST_WITHOUT_WINDOWS_GPU = "2.11"
"""compat.csv, native_windows_gpu."""
FIRST_PYTHON_WITHOUT_WINDOWS_GPU = "3.11"
"""Its first TensorFlow is 2.12; compat.csv, python_versions."""
_NO_GPU = ("sym.no_gpu", "sym.dlopen_failed", "pkg.cpu_only_build")
"""What native Windows explains; not a missing CUDA library: only CUDA builds look for one."""
_CONDA_BUILD = re.compile(r"\bh[0-9a-f]{6,}_\d+\b|(?:gpu|cuda\d*|mkl|eigen|cpu)_?py", re.IGNORECASE)
"""A line of ``conda list``: there tensorflow and tensorflow-gpu belong together."""
_SIZES = re.compile(r"numpy\.(\w+) size changed.*expected (\d+).*got (\d+)", re.IGNORECASE)
_API = re.compile(
    r"compiled against \w+ version (0x[0-9a-f]+).*numpy is (0x[0-9a-f]+)", re.IGNORECASE
)
_KERAS_3_WORDS = re.compile(
    r"['\"](?:batch_shape|module|registered_name|build_config)['\"]|dtypepolicy|keras\.src\.models"
    r"|could not locate class 'functional'",
    re.IGNORECASE,
)
_SAVED_MODEL_WORDS = re.compile(
    r"file format not supported|legacy savedmodel|only supports v3", re.I
)

_Change = Callable[[Match, LogFacts, MachineFacts, Knowledge], Match | None]


def refine_packages(
    matches: tuple[Match, ...], log: LogFacts, facts: MachineFacts, knowledge: Knowledge
) -> tuple[Match, ...]:
    """Refine the matches of packages, Python and Windows; other matches pass unchanged."""
    refined = (
        _CHANGES[one.cause](one, log, facts, knowledge) if one.cause in _CHANGES else one
        for one in matches
    )
    kept = tuple(one for one in refined if one is not None)
    return kept + _native_windows(kept, facts)


def _fitting_python(
    match: Match, log: LogFacts, facts: MachineFacts, knowledge: Knowledge
) -> Match:
    """Name the Python with the TensorFlow asked for, and the TensorFlow for this Python."""
    del log
    releases = knowledge.releases
    if not releases:
        return match
    python = minor(match.values.get("python", "") or facts.python.version)
    asked = minor(match.values.get("requested", ""))
    release = next((one for one in releases if one.tensorflow == asked), None)
    values = dict(match.values)
    if python:
        values |= {"python": python} | _of_python(python, releases)
    target = release or releases[-1]
    if python in target.python_versions:
        return match.told(values | {"python_fits": "yes"})  # the system or its 32 bits do not
    if release:
        values["pythons_for_requested"] = ", ".join(release.python_versions)
    candidate = knowledge.candidate
    if candidate and python in candidate.python_versions:
        values["candidate_for_python"] = candidate.last_wheel
    values |= {
        "requested": target.tensorflow,
        "use_python": target.python_versions[-2:][0],
        "use_tensorflow": target.last_wheel,
        "use_requirement": _requirement(target, facts),
    }
    return match.told(values)


def _of_python(python: str, releases: tuple[Release, ...]) -> dict[str, str]:
    """Return what the releases say of one Python; nothing where none has it and it is not new."""
    having = [one.tensorflow for one in releases if python in one.python_versions]
    if having:
        span = having[0] if len(having) == 1 else f"{having[0]} – {having[-1]}"
        return {"releases_for_python": span, "tensorflow_for_python": having[-1]}
    newest = max((v for one in releases for v in one.python_versions), key=version_key, default="")
    return {"newest_python": newest} if version_key(python) > version_key(newest) else {}


def _requirement(release: Release, facts: MachineFacts) -> str:
    name = "tensorflow" if facts.system in {"windows", "macos"} else release.requirement
    return f"{name}=={release.last_wheel}"


def _numpy_side(match: Match, log: LogFacts, facts: MachineFacts, knowledge: Knowledge) -> Match:
    """Say whether NumPy or another package must move, and to which NumPy."""
    found = match.values.get("found", "") or facts.python.installed.get("numpy", "")
    values = dict(match.values) | ({"found": found} if found else {})
    limit = numpy_requirement(knowledge.release)
    if limit:
        values |= {"numpy_limit": limit, "numpy_pin": limit}
    texts = [line.text for line in _lines(log, match.cause)]
    is_2_told = any("numpy 1.x" in text.lower() or "_ARRAY_API" in text for text in texts)
    version = found or ("2" if is_2_told else "")
    if any(_numpy_is_older(text) for text in texts):
        values |= {"numpy_move": "raise_numpy"} | ({} if limit else {"numpy_pin": ">=1.26"})
    elif limit and version and _is_above(version, limit):
        values["unfit"] = version
    elif limit and is_2_told and not _is_above("2", limit):
        values["numpy_move"] = "rebuild_other"
    return match.told(values)


def numpy_requirement(release: Release | None) -> str:
    """Return a release's limits on NumPy, ``<2.0.0,>=1.23.5``; empty where unknown."""
    text = release.numpy_limit if release else ""
    last = text.split("|")[-1].strip()
    return last.rpartition(": ")[2].partition(";")[0].strip()


def _is_above(version: str, limit: str) -> bool:
    upper = re.search(r"<(=?)\s*([\d.]+)", limit)
    if not upper:
        return False
    have, bound = version_key(version), version_key(upper[2])
    return have > bound or (have == bound and not upper[1])


def _numpy_is_older(text: str) -> bool:
    """Return whether the line says that the package was built for a later NumPy than is loaded."""
    api = _API.search(text)
    if api:
        return int(api[1], 16) > int(api[2], 16)
    sizes = _SIZES.search(text)
    if not sizes:
        return False
    expected, got = int(sizes[2]), int(sizes[3])
    return expected < got if sizes[1] == "dtype" else expected > got  # dtype shrank in NumPy 2


def _two_packages(
    match: Match, log: LogFacts, facts: MachineFacts, knowledge: Knowledge
) -> Match | None:
    """Return two TensorFlows in a list of packages; one alone is no evidence and is dropped."""
    del facts, knowledge
    lines = list(_lines(log, match.cause))
    listed, of_conda = _packages(lines)
    if list(listed) == ["tensorflow"] and "tensorflow-gpu" in of_conda:
        listed |= of_conda  # a CPU build of another channel lies under conda's GPU package
    if len(listed) > 1:
        text = ", ".join(f"{name} {version}".strip() for name, version in sorted(listed.items()))
        likely = dataclasses.replace(match, verdict="likely")
        return likely.told({"packages": text})
    return match if any("package" not in line.values for line in lines) else None


def _packages(lines: Iterable[Line]) -> tuple[dict[str, str], dict[str, str]]:
    """Return a list's packages with versions: of pip or unclear, and of conda's own builds."""
    listed: dict[str, str] = {}
    of_conda: dict[str, str] = {}
    for line in lines:
        name = line.values.get("package", "").lower().replace("_", "-")
        if name:
            group = of_conda if _CONDA_BUILD.search(line.text) else listed
            group.setdefault(name, line.values.get("version", ""))
    return listed, of_conda


def _saved_by(match: Match, log: LogFacts, facts: MachineFacts, knowledge: Knowledge) -> Match:
    """Return which generation of Keras wrote the file."""
    del knowledge
    text = "\n".join(line.text for line in _lines(log, match.cause))
    values = dict(match.values)
    is_keras_2 = not facts.tensorflow or not _at_least(facts.tensorflow, "2.16")
    if _SAVED_MODEL_WORDS.search(text):
        values["model_kind"] = "savedmodel"
    elif is_keras_2 and _KERAS_3_WORDS.search(text):
        values["model_kind"] = "saved_by_keras3"
    return match.told(values)


def _native_windows(matches: tuple[Match, ...], facts: MachineFacts) -> tuple[Match, ...]:
    """Give native Windows as the reason where a log shows no GPU and does not name it itself."""
    causes = {one.cause: one for one in matches}
    symptom = next((causes[name] for name in _NO_GPU if name in causes), None)
    if symptom is None or "win.native_no_gpu" in causes or facts.system != "windows":
        return ()
    version, python = facts.tensorflow, facts.python.version
    if version:
        reason, applies = f"TensorFlow {version}", _at_least(version, FIRST_WITHOUT_WINDOWS_GPU)
    else:
        reason, applies = f"Python {python}", _at_least(python, FIRST_PYTHON_WITHOUT_WINDOWS_GPU)
    if not applies:
        return ()
    told = Evidence(text=f"{facts.release or 'Windows'}, {reason}", source="machine")
    return (
        Match(
            cause="win.native_no_gpu",
            verdict="proven" if version else "likely",
            evidence=(*symptom.evidence, told),
            basis="log",
            line=symptom.line,
        ),
    )


def _at_least(version: str, bound: str) -> bool:
    return bool(version) and version_key(version) >= version_key(bound)


def _lines(log: LogFacts, cause: str) -> Iterator[Line]:
    """Yield lines of the cause's rules that hold in this log."""
    for one in holding(log):
        if one.cause == cause:
            yield from one.lines


_CHANGES: dict[str, _Change] = {
    "py.no_wheel": _fitting_python,
    "pkg.numpy_abi": _numpy_side,
    "pkg.mixed_install": _two_packages,
    "pkg.keras_model_format": _saved_by,
}
