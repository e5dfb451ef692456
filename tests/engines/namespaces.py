"""Network namespaces of this machine, joined by a bridge: three hosts with addresses of their own.

Only root may make them, and some machines let nobody.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SUBNET = "10.231.77"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Namespaces by their number."""

    names: tuple[str, ...]

    def address(self, number: int) -> str:
        """Its IP address."""
        return f"{SUBNET}.{number + 1}"

    def inside(self, number: int, words: Sequence[str]) -> list[str]:
        """Words that run others in a namespace."""
        return ["ip", "netns", "exec", self.names[number], *words]

    def block(self, one: int, other: int) -> None:
        """Let two of them not reach each other any more."""
        for here, there in ((one, other), (other, one)):
            run("ip", "-n", self.names[here], "route", "add", "prohibit", self.address(there))

    def slow_down(self, number: int, rate: str) -> None:
        """Limit what one of them sends: ``100mbit``."""
        run("tc", "-n", self.names[number], "qdisc", "add", "dev", "eth0", "root", "tbf",
            "rate", rate, "burst", "64kb", "latency", "200ms")  # fmt: skip


def why_not() -> str:
    """Why there can be no namespaces here; empty where there can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "needs root"
    if not shutil.which("ip") or not shutil.which("tc"):
        return "needs ip and tc"
    try:
        with joined(1):
            return ""
    except subprocess.CalledProcessError as error:
        return f"no network namespace may be made: {error.stderr.strip()[:80]}"


@contextlib.contextmanager
def joined(count: int) -> Iterator[Hosts]:
    """So many namespaces, each with an ``eth0`` on one bridge; they go when the block ends."""
    tag = f"td{os.getpid() % 100000}"
    hub, names = f"{tag}h", tuple(f"{tag}n{number}" for number in range(count))
    with contextlib.ExitStack() as stack:
        run("ip", "netns", "add", hub)
        stack.callback(run, "ip", "netns", "del", hub)
        run("ip", "-n", hub, "link", "add", "br0", "type", "bridge")
        run("ip", "-n", hub, "link", "set", "br0", "up")
        hosts = Hosts(names=names)
        for number, name in enumerate(names):
            run("ip", "netns", "add", name)
            stack.callback(run, "ip", "netns", "del", name)
            run("ip", "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name",
                f"port{number}", "netns", hub)  # fmt: skip
            run("ip", "-n", hub, "link", "set", f"port{number}", "master", "br0", "up")
            run("ip", "-n", name, "addr", "add", f"{hosts.address(number)}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                run("ip", "-n", name, "link", "set", device, "up")
        yield hosts


def run(*words: str) -> None:
    """Run a command; raises ``CalledProcessError``."""
    subprocess.run(words, check=True, capture_output=True, text=True)
