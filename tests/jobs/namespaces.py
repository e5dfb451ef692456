"""Two machines as far as the network knows: namespaces with a cable between them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ADDRESSES = ("10.213.87.1", "10.213.87.2")


@dataclass(frozen=True, kw_only=True)
class Cable:
    """What connects the namespaces of these names."""

    names: tuple[str, str]

    def inside(self, rank: int) -> tuple[str, ...]:
        """Words in front of a command that is to run in a namespace."""
        return ("ip", "netns", "exec", self.names[rank])

    def cut(self) -> None:
        """Nothing arrives any more, and nobody is told."""
        self._set("down")

    def mend(self) -> None:
        """As before."""
        self._set("up")

    def _set(self, state: str) -> None:
        # The end that nobody uses: both keep their addresses and routes.
        words = [*self.inside(0), "ip", "link", "set", "bridge", state]
        subprocess.run(words, check=True)


@contextlib.contextmanager
def connected() -> Iterator[Cable]:
    """Two namespaces with addresses that reach each other; skips where none can be made."""
    if os.geteuid() or not shutil.which("ip"):
        pytest.skip("only root with the program ip can make network namespaces")
    names = (f"tfdyno-{os.getpid()}-0", f"tfdyno-{os.getpid()}-1")
    made: list[str] = []
    try:
        for name in names:
            done = _ip("netns", "add", name, check=False)
            if done.returncode:
                pytest.skip(f"no network namespace can be made: {done.stderr.strip()}")
            made.append(name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", names[0], "link", "add", "bridge", "type", "bridge")
        for rank, name in enumerate(names):
            pair = ["link", "add", f"end{rank}", "type", "veth", "peer", "name", "cable"]
            _ip("-n", names[0], *pair, "netns", name) if rank else _ip("-n", names[0], *pair)
            _ip("-n", name, "address", "add", f"{ADDRESSES[rank]}/24", "dev", "cable")
            _ip("-n", name, "link", "set", "cable", "up")
            _ip("-n", names[0], "link", "set", f"end{rank}", "master", "bridge", "up")
        _ip("-n", names[0], "link", "set", "bridge", "up")
        yield Cable(names=names)
    finally:
        for name in made:
            _ip("netns", "del", name, check=False)


def _ip(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ip", *words], check=check, capture_output=True, text=True)
