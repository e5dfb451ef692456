"""What one node tells of itself before it trains with others."""

from __future__ import annotations

import platform
import socket
from typing import TYPE_CHECKING

from tfdyno.core.base.version import VERSION
from tfdyno.core.cluster.cluster import host_of
from tfdyno.core.cluster.cluster_facts import NodeFacts
from tfdyno.jobs.launch.node import TENSORFLOW
from tfdyno.jobs.machine.knowledge import capability_of
from tfdyno.probe.base import numa, processors
from tfdyno.probe.base.host import this_host
from tfdyno.probe.cards import cards
from tfdyno.probe.cards.card_pairs import node_cards, printed_pairs
from tfdyno.probe.files import shared_folder
from tfdyno.probe.machine import interfaces, limits
from tfdyno.probe.python.versions import version

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tfdyno.core.cluster.cluster import ProcessRank

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
        cpus=processors.allowed(),
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
