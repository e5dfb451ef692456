"""All probes in their order: the machine as facts, in well under half a second."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.doctor.machine_facts import MachineFacts
from tfdyno.probe.base import driver
from tfdyno.probe.base.attempt import attempt
from tfdyno.probe.base.children import Child, start
from tfdyno.probe.base.distributions import distributions
from tfdyno.probe.base.folders import loader_path, package_folders
from tfdyno.probe.base.pci import no_device, pci
from tfdyno.probe.base.python import ASK_LIMIT_S, python
from tfdyno.probe.cards import nvml
from tfdyno.probe.machine import libraries
from tfdyno.probe.machine.system import system
from tfdyno.probe.machine.tools import tools
from tfdyno.probe.python.requirements import requirements
from tfdyno.probe.python.tensorflow_build import tensorflow_build

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.probe.base.host import Host

CARDS_LIMIT_S = 6.0
"""A cold driver of a machine with eight cards takes seconds to wake."""
LOADER_LIMIT_S = 8.0
GRACE_S = 1.0
BEFORE = (
    ("system", system, 2.0),
    ("python", python, ASK_LIMIT_S + GRACE_S),
    ("distributions", distributions, 3.0),
    ("tensorflow build", tensorflow_build, 2.0),
    ("requirements", requirements, 3.0),
    ("pci", pci, 2.0),
    ("driver", driver.driver, 2.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Children:
    """Those that ask NVIDIA's libraries."""

    nvml: Child
    driver: Child
    loader: Child


def examine(host: Host) -> MachineFacts:
    """Run every probe, each with a time limit; never raises.

    TensorFlow is not imported. Libraries of NVIDIA are loaded by child processes, which work while
    the other probes go on; without a device none is started.
    """
    facts = MachineFacts()
    for name, probe, limit_s in BEFORE:
        facts = attempt(name, probe, host, facts, limit_s=limit_s)
    with _children(host, facts) as running:
        facts = attempt("tools", tools, host, facts)
        by_cuda = running.driver.answers(CARDS_LIMIT_S)
        facts = attempt("cuda", lambda h, f: driver.cuda_driver(h, f, by_cuda), host, facts)
        cards = running.nvml.answers(CARDS_LIMIT_S)
        facts = attempt("nvml", lambda h, f: nvml.nvml(h, f, cards, by_cuda), host, facts)
        loaded = running.loader.answers(LOADER_LIMIT_S)
        return attempt("libraries", lambda h, f: libraries.libraries(h, f, loaded), host, facts)


def software(host: Host) -> MachineFacts:
    """Return the system and the Python packages only; never raises."""
    facts = MachineFacts()
    for name, probe, limit_s in BEFORE[:3]:
        facts = attempt(name, probe, host, facts, limit_s=limit_s)
    return facts


@contextlib.contextmanager
def _children(host: Host, facts: MachineFacts) -> Iterator[_Children]:
    """Start the children that ask NVIDIA's libraries, all at once and gone at the end."""
    reason = no_device(facts) or ("" if host.is_live else "this is a recorded machine")
    if reason:
        none = Child(name="", reason=reason)
        yield _Children(nvml=none, driver=none, loader=none)
        return
    wanted = [(one.library, one.soname) for one in libraries.wanted_here(facts)]
    folders = [*loader_path(host), *package_folders(host)]
    request = {"libraries": wanted, "folders": folders}
    missing = Child(name="", reason=libraries.why_none(facts))
    running = _Children(
        nvml=start("NVML", "child_nvml.py", host, {"names": nvml.names(facts)}),
        driver=start("cuInit", "child_driver.py", host, {"names": driver.names(facts)}),
        loader=start("loading", "child_loader.py", host, request) if wanted else missing,
    )
    try:
        yield running
    finally:
        for one in (running.nvml, running.driver, running.loader):
            one.stop()
