"""Code for a card: what the wheel holds, what the card is, and what the driver refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.compiler import CompilePlace, faults_at
from tfdyno.rules.condition import version_key
from tfdyno.rules.cuda_files import Version, first_cuda, parse, toolkits_with
from tfdyno.rules.match import Match
from tfdyno.rules.values import values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.software import Knowledge
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.rules.log.explained import LogFacts

JIT = "gpu.arch_jit"
TOO_NEW = "gpu.arch_too_new"
TOO_OLD = "gpu.arch_too_old"
NOT_IN_BUILD = "gpu.arch_not_in_build"
REFUSED = "sym.invalid_handle"
PTX = "drv.ptx_too_new"
_NEWEST_KNOWN = "9.0"
"""The newest capability for which a wheel up to 2.22 has machine code."""
_OLDEST_CARD = "7.0"
"""The oldest: below this a card without code is too old for the wheel, from 8.0 on it is too new.
"""
_SM_90 = version_key("9.0")
_PTX_FOR_HOPPER_ONLY = ("2.16", "2.21")
"""The releases, from the first, below the second, with elementwise kernels as PTX of sm_90a, for
Hopper alone."""


def refine_code(
    matches: tuple[Match, ...], log: LogFacts, facts: MachineFacts, knowledge: Knowledge
) -> tuple[Match, ...]:
    """Tell first-run compilation from a card that is too new, too old, or not in the build.

    What speaks: the card's compute capability, what the wheel holds for it, the CUDA that was
    opened, and whether the card or the driver refused code in this log.
    """
    known = values(facts, knowledge)
    causes = {one.cause for one in matches if one.basis == "log" or not _leaves_graph(one)}
    refined = []
    for one in matches:
        capability = one.values.get("capability") or known.get("capability", "")
        if one.cause == TOO_NEW:
            refined.append(_too_new(one, capability or _capability(one), known))
        elif one.cause == JIT:
            refined.append(_compiled(one, capability, causes, known))
        elif one.cause == NOT_IN_BUILD:
            refined.append(_no_code(one, capability, log, known))
        elif one.cause == REFUSED and not causes & {PTX, TOO_NEW, JIT, NOT_IN_BUILD}:
            refined.append(_refused(one, capability))
        else:
            refined.append(one)
    if not causes & {JIT, TOO_NEW, TOO_OLD, NOT_IN_BUILD, PTX}:
        refined += _silent(log, known)
    return _without_xla(refined)


def _capability(match: Match) -> str:
    """Compute capability of the target that the compiler named: ``sm_120`` is 12.0."""
    sm = match.values.get("sm", "")
    return f"{sm[:-1]}.{sm[-1]}" if len(sm) > 1 else ""


def _too_new(match: Match, capability: str, known: Mapping[str, str]) -> Match:
    """Tell, where the compiler refused the target, if XLA's own CUDA is too old, or ptxas."""
    told = {"capability": capability} if capability else {}
    build = known.get("build_cuda", "")
    if capability and version_key(capability) <= _SM_90:
        told |= {"card_cuda": ".".join(map(str, first_cuda(capability)))}
    elif "required_ptx" not in match.values and "ptx" not in match.values:
        pass
    elif build and capability and first_cuda(capability) <= parse(build):
        told |= {"old_ptxas": build}
    elif known.get("wheel_verdict") != "cannot" and _xla_stops(capability, known):
        told |= {"xla_tensorflow": known["tensorflow_minor"]}
    return match.recast(TOO_NEW, match.verdict, **told)


def _xla_stops(capability: str, known: Mapping[str, str]) -> bool:
    """Return whether XLA of the wheel compiles nothing for such a card."""
    place = CompilePlace(framework="tensorflow", version=known.get("tensorflow_minor", ""),
                  compute_capability=capability)  # fmt: skip
    return any(fault.stops for fault in faults_at(place))


def _without_xla(matches: list[Match]) -> tuple[Match, ...]:
    """Tell, where the card refused the wheel's own code, that it is not XLA alone."""
    own = [one for one in matches if one.cause == TOO_NEW and one.basis == "log"]
    is_refused = any(one.verdict != "possible" for one in own)
    if not is_refused or any(map(_leaves_graph, own)):
        return tuple(matches)
    return tuple(one for one in matches if one.basis == "log" or not _leaves_graph(one))


def _leaves_graph(match: Match) -> bool:
    """Return whether it is XLA alone that the card is too new for."""
    return "xla_tensorflow" in match.values


def _compiled(match: Match, capability: str, causes: set[str], known: Mapping[str, str]) -> Match:
    """Note that TensorFlow says it compiles from PTX; some cards refuse that PTX."""
    if not capability or version_key(capability) <= _SM_90:
        return match
    told = {"capability": capability}
    if causes & {REFUSED, TOO_NEW, NOT_IN_BUILD} and PTX not in causes:
        return match.recast(TOO_NEW, "proven", **told)
    tensorflow = known.get("tensorflow_minor", "")
    low, high = map(version_key, _PTX_FOR_HOPPER_ONLY)
    if not tensorflow or low <= version_key(tensorflow) < high:
        return match.recast(TOO_NEW, "likely", **told)
    if _xla_stops(capability, known):
        return match.recast(JIT, match.verdict, too_new_for_xla=capability)
    return match


def _no_code(match: Match, capability: str, log: LogFacts, known: Mapping[str, str]) -> Match:
    if not capability:
        return match
    told = {"capability": capability}
    first = first_cuda(capability)
    if version_key(capability) > version_key(_NEWEST_KNOWN):
        return match.recast(TOO_NEW, "likely", **told)
    if first and any(first > cuda for cuda in _cuda(log, known)):
        return match.recast(TOO_NEW, "likely", **told)
    if is_too_old(capability, known):
        return match.recast(TOO_OLD, "likely", **told)
    return match.recast(NOT_IN_BUILD, match.verdict, **told)


def is_too_old(capability: str, known: Mapping[str, str]) -> bool:
    """Return whether the wheel has no code for this capability since the card is too old."""
    is_without = known.get("wheel_verdict") == "cannot" and bool(capability)
    return is_without and version_key(capability) < version_key(_OLDEST_CARD)


def _refused(match: Match, capability: str) -> Match:
    """Return an invalid handle alone: the card refused the code, most often because it is new."""
    is_new = bool(capability) and version_key(capability) > _SM_90
    told = {"capability": capability} if capability else {}
    return match.recast(TOO_NEW, "likely" if is_new else "possible", **told)


def _silent(log: LogFacts, known: Mapping[str, str]) -> list[Match]:
    """Old TensorFlow compiles for a newer card without a word: its CUDA is older than the card."""
    capability = known.get("capability", "")
    opened = [
        (line, toolkits)
        for line in log.watched.get("opened", ())
        if (toolkits := toolkits_with(line.values.get("soname", "")))
    ]
    first = first_cuda(capability) if capability else ()
    if not opened or not first or opened[0][1].last >= first:
        return []
    lines = (opened[0][0], *log.watched.get("gpu", ())[:1])
    return [
        Match(
            cause=JIT,
            verdict="likely",
            evidence=tuple(line.evidence for line in lines),
            basis="log",
            values={"capability": capability},
            line=lines[0].number,
        )
    ]


def _cuda(log: LogFacts, known: Mapping[str, str]) -> tuple[Version, ...]:
    """Return the newest CUDA that the opened libraries can be of; else what is needed and told."""
    for line in log.watched.get("opened", ()):
        toolkits = toolkits_with(line.values.get("soname", ""))
        if toolkits:
            return (toolkits.last,)
    told = (parse(known.get(name, "")) for name in ("needed_cuda", "cuda"))
    return tuple(filter(None, told))
