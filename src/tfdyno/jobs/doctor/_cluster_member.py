"""What a process of ``tfdyno doctor --cluster`` does when worker 0 asks for it."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.errors import OSErrorsAs, ToolError
from tfdyno.core.base.process_limits import allowed
from tfdyno.core.base.version import VERSION
from tfdyno.core.cluster.cluster import host_of, tf_config_of
from tfdyno.core.cluster.cluster_facts import NodeFacts
from tfdyno.core.messages.bench import ALL_REDUCE, MeasureAllReduce
from tfdyno.engines.rendezvous.calls import Ear, reach, stream_bytes_per_s
from tfdyno.engines.rendezvous.tf_config import loopback_variables
from tfdyno.jobs.child.worker import run_child, silent
from tfdyno.jobs.launch.node import TENSORFLOW
from tfdyno.jobs.machine.knowledge import capability_of
from tfdyno.probe.base import numa
from tfdyno.probe.base.host import this_host
from tfdyno.probe.cards import cards
from tfdyno.probe.cards.card_pairs import node_cards, printed_pairs
from tfdyno.probe.files import shared_folder
from tfdyno.probe.files.shared_folder import (
    read_bytes_per_s,
    seen_after_s,
    write_bytes_per_s,
    write_through,
)
from tfdyno.probe.machine import interfaces, limits
from tfdyno.probe.python.versions import version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.cluster.cluster import ProcessRank
    from tfdyno.core.cluster.cluster_facts import Exchange


CHILD_S = 240.0
"""A first import with a cold disk, NCCL's first connections, and the measurement itself."""
BUDGET_S = 12.0
"""The time of one series of all-reduces."""
SIZES = (4 << 10, 1 << 20, 16 << 20, 64 << 20)
CARD_SIZES = (*SIZES, 256 << 20)
"""The sizes between cards: over NVLink smaller ones say little of the bandwidth."""
PREFIX = ".tfdyno-doctor-"
PACKAGES = {
    "tensorflow": TENSORFLOW,
    "keras": ("keras",),
    "numpy": ("numpy",),
    "nccl": ("nvidia-nccl-cu12", "nvidia-nccl-cu13"),
    "cudnn": ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
}
"""What has to be the same, and the distributions that bring it, the first that is there."""
VARIABLES = ("NCCL_", "CUDA_", "TF_", "XLA_", "GRPC_", "UCX_", "FI_", "KMP_", "OMP_", "MKL_")
UNSHARED = ("TF_CONFIG", "CUDA_VISIBLE_DEVICES")
"""Differ between processes as they should."""


class Member:
    """One process, with what it has open."""

    def __init__(
        self,
        process: ProcessRank,
        folder: Path,
        environment: Mapping[str, str],
        *,
        progress: Callable[[str], None] = silent,
    ) -> None:
        """Take what it is; nothing is opened yet.

        Args:
            process: This one.
            folder: Of the run.
            environment: Variables of the process.
            progress: Told what goes on.
        """
        self._process, self._folder, self._environment = process, folder.absolute(), environment
        self._progress = progress
        self._ear: Ear | None = None
        self._token = ""

    def act(self, action: str, given: Mapping[str, Any]) -> Value:
        """Do what is asked; raises ``ToolError`` where it cannot be done."""
        actions: dict[str, Callable[..., Any]] = {
            "look": self._look, "clock": self._clock, "listen": self._listen,
            "call": self._call, "stream": self._stream, "quiet": self.close,
            "write": self._write, "see": self._see, "speed": self._speed, "read": self._read,
            "all_reduce": self._all_reduce,
        }  # fmt: skip
        if action not in actions:
            raise ToolError(f"there is no action {action}", remedy="install one tfdyno on all")
        with OSErrorsAs(ToolError, f"{action} failed"):
            return actions[action](**given)

    def close(self) -> None:
        """Listen no more."""
        if self._ear:
            self._ear.close()
            self._ear = None

    def _look(self) -> Value:
        self._progress("looking at this node")
        return to_builtins(look(self._process, self._folder, self._environment))

    def _clock(self) -> float:
        return time.time()

    def _listen(self, token: str) -> int:
        self._token = token
        self._ear = Ear(self._process, token)
        return self._ear.port

    def _call(self, ports: Mapping[str, int]) -> list[dict[str, Any]]:
        """Call all others at their own ports and at those that their systems chose."""
        self._progress("calling all others")
        found = []
        for text, port in ports.items():
            rank = int(text)
            if rank == self._process.rank:
                continue
            own = self._process.addresses[rank]
            for kind, address in (("own", own), ("any", f"{own.rpartition(':')[0]}:{port}")):
                ended = reach(address, self._token, rank)
                found.append({
                    "caller": self._process.rank, "callee": rank, "port": kind,
                    "connect_s": ended.connect_s, "error": ended.error,
                })  # fmt: skip
        return found

    def _stream(self) -> float:
        receiver = (self._process.rank + 1) % self._process.size
        return stream_bytes_per_s(self._process.addresses[receiver], self._token)

    def _path(self, name: str) -> Path:
        return self._folder / name

    def _write(self, name: str, text: str, how: str = "new") -> None:
        """Write a file, put another in its place, or add to its end."""
        path = self._path(name)
        if how == "replaced":
            part = path.with_name(f"{path.name}.part")
            write_through(part, text.encode())
            part.replace(path)
        elif how == "gone":
            for one in self._folder.glob(f"{name}*"):
                with contextlib.suppress(OSError):
                    one.unlink()
        else:
            write_through(path, text.encode(), append=how == "appended")

    def _see(self, name: str, text: str, limit_s: float) -> float | None:
        return seen_after_s(self._path(name), text.encode(), limit_s)

    def _speed(self, name: str, size_bytes: int) -> float:
        return write_bytes_per_s(self._path(name), size_bytes)

    def _read(self, name: str) -> float:
        return read_bytes_per_s(self._path(name))

    def _all_reduce(self, between: Exchange, has_cards: bool) -> Value:
        """Measure in a child of TensorFlow's; its port is that of this process."""
        variables = {"TF_CPP_MIN_LOG_LEVEL": "2"}
        if between == "nodes":
            hosts = [host_of(address) for address in self._process.addresses]
            variables |= {"TF_CONFIG": tf_config_of(self._process)}
            variables |= loopback_variables(os.environ, hosts)
        else:
            variables |= {"TF_CONFIG": ""}
        sizes = CARD_SIZES if has_cards else SIZES
        found = run_child(
            ALL_REDUCE,
            MeasureAllReduce(between=between, sizes_bytes=sizes, budget_s=BUDGET_S),
            progress=self._progress,
            timeout_s=CHILD_S,
            env=variables,
            doing="measuring all-reduces",
            hide_gpu=not has_cards,
        )
        return to_builtins(replace(found, rank=self._process.rank))


def look(process: ProcessRank, folder: Path, environment: Mapping[str, str]) -> NodeFacts:
    """Return the facts of this node; what a probe cannot see is left out.

    Args:
        process: This one.
        folder: Of the run.
        environment: Variables of the process.
    """
    host = this_host()
    size, free = limits.shared_memory_bytes()
    with cards.opened() as library:
        visible = environment.get("CUDA_VISIBLE_DEVICES")
        found, pairs = node_cards(library, visible, lambda name: capability_of(name)[0], host)
        versions = {**_versions(), **_driver(library)}
    if pairs and not any(pair.path for pair in pairs):
        mine = {card.index for card in found}
        printed = [pair for pair in printed_pairs() if {pair.first, pair.second} <= mine]
        pairs = tuple(printed) or pairs
    return NodeFacts(
        rank=process.rank,
        host=socket.gethostname(),
        address=process.own,
        versions=versions,
        environment={
            name: value
            for name, value in sorted(environment.items())
            if name.startswith(VARIABLES) and name not in UNSHARED
        },
        cards=found,
        pairs=pairs,
        interfaces=interfaces.interfaces(host),
        resolved=interfaces.resolved(host_of(process.own)),
        infiniband_bytes_per_s=interfaces.infiniband_bytes_per_s(host),
        cpus=allowed(),
        numa_nodes=numa.numa_nodes(host),
        shared_memory_bytes=size,
        shared_memory_free_bytes=free,
        locked_memory_limit_bytes=limits.soft_limit("RLIMIT_MEMLOCK"),
        open_files_limit=limits.soft_limit("RLIMIT_NOFILE"),
        memory_limit_bytes=limits.memory_limit_bytes(host),
        folder=shared_folder.folder_facts(host, folder),
    )


def _versions() -> dict[str, str]:
    found = {name: version(*distributions) for name, distributions in PACKAGES.items()}
    installed = {name: one for name, one in found.items() if one}
    return {"tfdyno": VERSION, "python": platform.python_version(), **installed}


def _driver(library: object) -> dict[str, str]:
    """Return the NVIDIA driver and the newest CUDA that it supports."""
    if library is None:
        return {}
    cuda = cards.ask(library, "nvmlSystemGetCudaDriverVersion_v2") or 0
    driver = cards.text(cards.ask(library, "nvmlSystemGetDriverVersion"))
    told = {"driver": driver, "cuda of the driver": f"{cuda // 1000}.{cuda % 1000 // 10}"}
    return {name: value for name, value in told.items() if value and value != "0.0"}
