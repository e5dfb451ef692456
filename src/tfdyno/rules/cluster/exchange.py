"""All-reduces that fail, give wrong sums, or are slower than the links between the replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import MIB, format_si
from tfdyno.rules.cluster.draft import draft
from tfdyno.rules.cluster.tables import limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tfdyno.core.cluster.cluster_facts import Bandwidth, ClusterFacts
    from tfdyno.core.doctor.finding import Finding


def failed_exchange(facts: ClusterFacts) -> Iterator[Finding]:
    """Find replicas that could not exchange anything, or got it wrong."""
    names = {node.rank: node.name for node in facts.nodes}
    failed = [one for one in facts.all_reduces if one.error]
    if failed:
        between = failed[0].between
        yield draft(
            "exchange_failed",
            "error",
            f"TensorFlow could not run an all-reduce between {between}.",
            why="It is what every step of the training does.",
            seen=[(names.get(one.rank, f"worker {one.rank}"), one.error) for one in failed],
            fix="Run tfdyno doctor on that node; with cards set NCCL_DEBUG=INFO for what NCCL "
            "says.",
            command="NCCL_DEBUG=INFO tfdyno doctor --cluster --verbose",
        )
    wrong = [one for one in facts.all_reduces if not one.is_right]
    if wrong:
        yield draft(
            "wrong_sums",
            "error",
            "An all-reduce gave a wrong sum.",
            why="The replicas would learn from wrong gradients.",
            seen=[(names.get(one.rank, ""), f"{one.implementation}, {one.replicas} replicas")
                  for one in wrong],
            fix="Unset all variables of NCCL, and take nodes out until the sum is right.",
        )  # fmt: skip


def slow_exchange(facts: ClusterFacts, bandwidths: Sequence[Bandwidth]) -> Iterator[Finding]:
    """Find bandwidths below their expected share; an interval that reaches it is fine."""
    names = {node.rank: node.name for node in facts.nodes}
    for one in bandwidths:
        if one.expected_bytes_per_s is None:
            continue
        share = share_of(one)
        if one.high_bytes_per_s >= share * one.expected_bytes_per_s:
            continue
        where = "the nodes" if one.between == "nodes" else f"the cards of {names[one.rank]}"
        measured = format_si(one.bus_bytes_per_s, "B/s", 2)
        expected = format_si(one.expected_bytes_per_s, "B/s", 2)
        yield draft(
            "slow_exchange",
            "warning",
            f"All-reduces between {where} reach {measured}, and {expected} were to be expected.",
            why="Gradients take so much longer in every step.",
            seen=[
                (f"{one.implementation} over {one.replicas} replicas",
                 f"{measured} ({format_si(one.low_bytes_per_s, 'B/s', 2)} to "
                 f"{format_si(one.high_bytes_per_s, 'B/s', 2)}) at "
                 f"{one.size_bytes / MIB:g} MiB"),
                ("expected", one.expected_from),
            ],
            fix="Look at the findings about the network and the cards; with cards, NCCL_DEBUG=INFO "
            "tells which way it took (NET/Socket is TCP, NET/IB is InfiniBand).",
        )  # fmt: skip


def share_of(one: Bandwidth) -> float:
    """Return the share of the expected bandwidth below which a finding is made."""
    limit = limits()
    if one.implementation == "RING":
        return limit["ring_ratio"]
    return limit["nic_ratio"] if "interface" in one.expected_from else limit["nccl_ratio"]
