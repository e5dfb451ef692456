"""Two healthy nodes, for tests that make one thing wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tfdyno.core.cluster.cluster_facts import (
    Call,
    CardPair,
    ClockReading,
    ClusterFacts,
    FolderFacts,
    FolderSpeed,
    Interface,
    LinkRate,
    NodeCard,
    NodeFacts,
    NumaNode,
    SharedView,
)
from tfdyno.rules.cluster import cluster_findings

CARD = NodeCard(
    index=0, name="NVIDIA H100 80GB HBM3", slug="h100-sxm5-80gb", bus="00000000:65:00.0",
    numa_node=0, ecc=True, power_limit_w=700.0, active_nvlinks=18,
)  # fmt: skip
PAIR = CardPair(first=0, second=1, path="NV18", peer="OK")


def node(rank: int, *, cards: int = 0, **given: Any) -> NodeFacts:
    basic: dict[str, Any] = {
        "rank": rank, "host": f"n{rank}", "address": f"n{rank}:12355",
        "versions": {"tfdyno": "1", "tensorflow": "2.21.0", "keras": "3.15.1", "python": "3.11.7"},
        "cards": tuple(replace(CARD, index=index) for index in range(cards)),
        "pairs": (PAIR,) if cards == 2 else (),
        "interfaces": (
            Interface(name="lo", addresses=("127.0.0.1",), kind="loopback"),
            Interface(name="eth0", addresses=(f"10.0.0.{rank + 1}",), bytes_per_s=1.25e9),
        ),
        "resolved": (f"10.0.0.{rank + 1}",),
        "cpus": tuple(range(8)),
        "numa_nodes": (NumaNode(number=0, cpus=tuple(range(8))),),
        "shared_memory_bytes": 8 << 30, "open_files_limit": 65536,
        "folder": FolderFacts(path="/team/run", filesystem="nfs4", free_bytes=1 << 40),
    }  # fmt: skip
    return NodeFacts(**{**basic, **given})


def cluster(*nodes: NodeFacts, **given: Any) -> ClusterFacts:
    nodes = nodes or (node(0), node(1))
    ranks = [one.rank for one in nodes]
    basic: dict[str, Any] = {
        "size": len(nodes),
        "nodes": nodes,
        "clocks": tuple(ClockReading(rank=r, offset_s=0.001, uncertainty_s=0.001)
                        for r in ranks[1:]),
        "calls": tuple(Call(caller=a, callee=b, port=port, connect_s=1e-4)
                       for a in ranks for b in ranks if a != b for port in ("own", "any")),
        "views": tuple(SharedView(writer=0, reader=r, seen_s=0.01, replaced_s=0.01,
                                  appended_s=0.01) for r in ranks[1:]),
        "speeds": tuple(FolderSpeed(rank=r, size_bytes=1 << 24, write_bytes_per_s=5e8,
                                    read_bytes_per_s=5e8) for r in ranks),
        "links": tuple(LinkRate(sender=r, receiver=(r + 1) % len(nodes), bytes_per_s=1.1e9)
                       for r in ranks),
    }  # fmt: skip
    return ClusterFacts(**{**basic, **given})


def causes(facts: ClusterFacts, severity: str = "") -> list[str]:
    """Ids of what is found, without the ``cluster.`` in front."""
    return [
        one.cause.partition(".")[2]
        for one in cluster_findings(facts)
        if not severity or one.severity == severity
    ]
