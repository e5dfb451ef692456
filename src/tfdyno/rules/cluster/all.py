"""All rules about nodes in turn, and what is in order where none of them found anything."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.rules.cluster import cards, exchange, hosts, network, software, storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tfdyno.core.cluster.cluster_facts import Bandwidth, ClusterFacts
    from tfdyno.core.doctor.finding import Finding

RULES: tuple[Callable[[ClusterFacts], Iterator[Finding]], ...] = (
    network.missing, software.different_versions, cards.missing_cards, cards.unlike_cards,
    network.wrong_interface,
    network.closed_ports, storage.not_shared, software.interface_names, exchange.failed_exchange,
    storage.clock_skew, cards.sick_cards, hosts.shared_memory, hosts.process_limits,
    software.different_variables, software.harmful_variables, network.slow_line,
    cards.no_peer_access, cards.uneven_paths, hosts.far_processors, storage.seen_late,
    storage.folder_speed,
)  # fmt: skip
"""What explains others comes before them."""
_RANKS = {"error": 0, "warning": 1, "note": 2}


def cluster_findings(
    facts: ClusterFacts, bandwidths: Sequence[Bandwidth] = ()
) -> tuple[Finding, ...]:
    """Return all findings, errors first, within a severity in the order of the rules."""
    found = [finding for rule in RULES for finding in rule(facts)]
    found += exchange.slow_exchange(facts, bandwidths)
    return tuple(sorted(found, key=lambda finding: _RANKS[finding.severity]))


def in_order(facts: ClusterFacts, found: Sequence[Finding]) -> tuple[str, ...]:
    """Return what was looked at and is as it should be, in words."""
    causes = {finding.cause.partition(".")[2] for finding in found}
    count = len(facts.nodes)
    fine: list[tuple[bool, set[str], str]] = [
        (count > 1, {"versions"}, "versions"),
        (bool(facts.calls), {"port_closed", "any_port_closed"}, f"ports of {count} nodes"),
        (bool(facts.clocks), {"clock_skew"}, _clocks(facts)),
        (bool(facts.views), {"not_shared", "not_writable", "seen_late"}, "shared folder"),
        (any(node.environment for node in facts.nodes) or count > 1,
         {"variables", "nccl_variable", "socket_ifname"}, "NCCL settings"),
        (True, {"shared_memory"}, "/dev/shm"),
        (any(node.numa_nodes for node in facts.nodes), {"far_processors"}, "NUMA"),
        (any(node.pairs for node in facts.nodes),
         {"no_peer_access", "topology_differs", "nvlink_in_part", "nvlink_down"}, "peer access"),
        (any(one.sizes for one in facts.all_reduces),
         {"exchange_failed", "wrong_sums", "slow_exchange"}, "all-reduce"),
    ]  # fmt: skip
    return tuple(words for looked, bad, words in fine if looked and not bad & causes)


def _clocks(facts: ClusterFacts) -> str:
    most_s = max((abs(one.offset_s) + one.uncertainty_s for one in facts.clocks), default=0.0)
    return f"clocks within {max(1, math.ceil(most_s * 1e3)):,} ms"
