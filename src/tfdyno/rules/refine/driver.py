"""The version of the driver against what the CUDA in use needs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tfdyno.rules.condition import version_key
from tfdyno.rules.cuda_files import parse, toolkits_with
from tfdyno.rules.values import values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tfdyno.core.choose.software import Knowledge
    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.rules.log.explained import LogFacts
    from tfdyno.rules.match import Match

TOO_OLD = "drv.too_old"
CUDNN_START = "mem.cudnn_init"
_DOES_NOT_START = {"sym.no_device", "sym.no_gpu", "drv.init_failed"}
_FITS_ALL = "525.60.13"
"""A driver that runs every CUDA that a TensorFlow up to 2.21 was built with."""


def refine_driver(
    matches: tuple[Match, ...], log: LogFacts, facts: MachineFacts, knowledge: Knowledge
) -> tuple[Match, ...]:
    """Say which driver is needed, and doubt a suspicion that the versions do not bear out.

    TensorFlow names the driver whenever cuDNN does not start; mostly memory is short. Where CUDA
    does not start and the driver is below the need of the release, it is too old.
    """
    known = values(facts, knowledge)
    needed = _needed(matches, log, known, knowledge)
    found = [_told(_doubted(one, needed), needed, known) for one in matches]
    if any(one.cause == CUDNN_START for one in found):
        found = [one for one in found if (one.cause, one.verdict) != (TOO_OLD, "possible")]
    return (*found, *_below_need(found, needed, known))


def _needed(
    matches: tuple[Match, ...], log: LogFacts, known: Mapping[str, str], knowledge: Knowledge
) -> dict[str, str]:
    """Return the CUDA in use, by opened libraries or a container's demand, and its driver."""
    opened = (toolkits_with(line.values["soname"]) for line in log.watched.get("opened", ()))
    majors = [str(toolkits.first[0]) for toolkits in opened if toolkits]
    asked = [m.values["required_cuda"] for m in matches if m.values.get("required_cuda")]
    is_windows = known.get("platform") in {"windows", "wsl"}
    for cuda in asked + majors:
        drivers = [
            row.oldest_windows if is_windows else row.oldest_linux
            for row in knowledge.cuda_drivers
            if parse(row.cuda)[:1] == parse(cuda)[:1]
        ]
        smallest = min(filter(None, map(version_key, drivers)), default=())
        for driver in drivers:
            if smallest and version_key(driver) == smallest:
                return {"needed_cuda": cuda, "min_driver": driver}
    return {name: known[name] for name in ("needed_cuda", "min_driver") if name in known}


def _doubted(match: Match, needed: Mapping[str, str]) -> Match:
    driver = match.values.get("driver", "")
    if match.cause != TOO_OLD or match.verdict == "proven" or not driver:
        return match
    if version_key(driver) < version_key(needed.get("min_driver", _FITS_ALL)):
        return match
    return dataclasses.replace(match, verdict="possible")


def _told(match: Match, needed: Mapping[str, str], known: Mapping[str, str]) -> Match:
    """Add the driver that is needed; none where the driver of the log has it already."""
    if match.cause != TOO_OLD or match.values.get("min_driver"):
        return match
    driver = match.values.get("driver") or known.get("driver", "")
    if driver and needed and version_key(driver) >= version_key(needed.get("min_driver", "")):
        return match.told({"min_driver": ""})
    return dataclasses.replace(match, values={**needed, **match.values})


def _below_need(
    matches: list[Match], needed: Mapping[str, str], known: Mapping[str, str]
) -> list[Match]:
    driver, smallest = known.get("driver", ""), needed.get("min_driver", "")
    shown = [one for one in matches if one.cause in _DOES_NOT_START]
    if not shown or not driver or not smallest or known.get("platform") == "wsl":
        return []
    if version_key(driver) >= version_key(smallest) or any(m.cause == TOO_OLD for m in matches):
        return []
    return [dataclasses.replace(shown[0], cause=TOO_OLD, verdict="likely", values=dict(needed))]
