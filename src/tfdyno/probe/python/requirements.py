"""Whether what TensorFlow requires is installed, as ``pip check`` would for it alone."""

from __future__ import annotations

import operator
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.probe.base.attempt import Part, found, not_run
from tfdyno.probe.base.distributions import Installed, installed, join
from tfdyno.probe.base.host import KERNELS, SYSTEMS
from tfdyno.probe.base.python import interpreter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from packaging.requirements import Requirement

    from tfdyno.core.doctor.machine_facts import MachineFacts
    from tfdyno.probe.base.host import Host

EXTRA = "and-cuda"
NUMBERS = re.compile(r"\d+(?:\.\d+)*")
BOUND = re.compile(r"(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)")
PLAIN = re.compile(rf"[\w.-]+\s*\(?(?P<bounds>(?:{BOUND.pattern}\s*(?:,\s*|\)?$))*)", re.ASCII)
COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
PLATFORMS = {system: name for name, system in SYSTEMS.items()}


def requirements(host: Host, facts: MachineFacts) -> Part:
    """Return requirements of TensorFlow that are not met.

    Those of ``tensorflow[and-cuda]`` count only where such a package is installed in a version
    that does not fit: CUDA may come from elsewhere.
    """
    have = installed(host, interpreter(host).folders)
    owners = [have[name] for name in facts.python.tensorflow_owners if name in have]
    if facts.python.tensorflow_folder:
        return not_run("this TensorFlow has no package metadata")
    if not owners:
        return not_run("TensorFlow is not installed for this Python")
    lines = required(host.text(join(host, owners[0].folder, "METADATA")))
    try:
        broken = tuple(broken_requirements(lines, have, markers(host, facts)))
    except ImportError:
        return not_run("the package 'packaging' is not installed")
    return found(python=replace(facts.python, broken_requirements=broken))


def required(metadata: str) -> list[str]:
    """Return the values of ``Requires-Dist`` in the head of a METADATA file."""
    head = metadata.replace("\r\n", "\n").partition("\n\n")[0]
    mark = "Requires-Dist:"
    return [line[len(mark) :].strip() for line in head.splitlines() if line.startswith(mark)]


def markers(host: Host, facts: MachineFacts) -> dict[str, str]:
    """Return values of environment markers for the interpreter in question."""
    version = facts.python.version
    return {
        "python_version": ".".join(version.split(".")[:2]),
        "python_full_version": version,
        "sys_platform": PLATFORMS.get(host.system, ""),
        "platform_system": KERNELS.get(host.system, ""),
        "platform_machine": host.architecture,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
        "os_name": "nt" if host.system == "windows" else "posix",
    }


def broken_requirements(
    lines: Iterable[str], have: Installed, environment: dict[str, str]
) -> Iterator[str]:
    """List requirements that are not met, as ``numpy<2.2 (installed 2.3.1)``."""
    for line in lines:
        name = re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", line, maxsplit=1)[0]).lower()
        if name not in have and "extra ==" in line:
            continue
        if name in have and plainly_met(line.partition(";")[0], have[name].version):
            continue
        from packaging.requirements import InvalidRequirement, Requirement

        try:
            one = Requirement(line)
        except InvalidRequirement:
            continue
        version = have[name].version if name in have else ""
        applies = _applies(one, environment, "")
        if (applies and not version) or (
            version and (applies or _applies(one, environment, EXTRA)) and not _fits(one, version)
        ):
            state = f"installed {version}" if version else "not installed"
            yield f"{one.name}{one.specifier} ({state})"


def plainly_met(requirement: str, version: str) -> bool:
    """Return whether plain numbers show that a requirement is met; False: look closer.

    Loading ``packaging`` takes a seventh of the time that a light command may, and an environment
    in order does not need it. Only ``>= <= > < == !=`` of released versions are decided here.
    """
    match = PLAIN.fullmatch(requirement.strip())
    if not match or not NUMBERS.fullmatch(version):
        return False
    have = _numbers(version)
    return all(
        COMPARE[sign](have, _numbers(bound)) for sign, bound in BOUND.findall(match["bounds"])
    )


def _numbers(version: str) -> tuple[int, ...]:
    numbers = [int(number) for number in version.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _applies(one: Requirement, environment: dict[str, str], extra: str) -> bool:
    return one.marker is None or one.marker.evaluate({**environment, "extra": extra})


def _fits(one: Requirement, version: str) -> bool:
    from packaging.version import InvalidVersion, Version

    try:
        return one.specifier.contains(Version(version), prereleases=True)
    except InvalidVersion:  # a development build with a name of its own
        return True
