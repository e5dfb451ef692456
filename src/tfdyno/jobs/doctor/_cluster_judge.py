"""What was found out about a cluster, beside what it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.catalog.links import default_link, find_link
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import format_si
from tfdyno.core.cluster.cluster_facts import AllReduce, Bandwidth, ClusterFacts, ClusterReport
from tfdyno.model.measure.statistics import median
from tfdyno.model.time.bus_bandwidth import expected_bytes_per_s, spread_bytes_per_s
from tfdyno.rules.cluster import cluster_findings, in_order
from tfdyno.rules.cluster.network import interface_of
from tfdyno.rules.cluster.tables import limits

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Link

Expected = tuple[float | None, str]


def judge(facts: ClusterFacts, *, link: str = "") -> ClusterReport:
    """Return the report of what was found.

    Args:
        facts: Of all nodes.
        link: Slug of the network between them; empty: as their interfaces tell.

    Raises:
        UsageError: There is no such link.
    """
    network = find_link(link) if link else None
    bandwidths = tuple(
        _bandwidth(facts, one, network)
        for one in facts.all_reduces
        if one.sizes and one.replicas > 1 and (one.between == "cards" or one.rank == 0)
    )
    found = cluster_findings(facts, bandwidths)
    return ClusterReport(
        facts=facts, findings=found, bandwidths=bandwidths, fine=in_order(facts, found)
    )


def _bandwidth(facts: ClusterFacts, one: AllReduce, network: Link | None) -> Bandwidth:
    small, large = one.sizes[0], one.sizes[-1]
    low, best, high = spread_bytes_per_s(large.size_bytes, one.replicas, large.times_s)
    if one.between == "cards":
        expected, origin = _between_cards(facts, one)
    elif one.implementation == "RING":
        expected, origin = _ring(facts)
    else:
        expected, origin = _between_nodes(facts, one, network)
    return Bandwidth(
        between=one.between,
        rank=one.rank,
        implementation=one.implementation,
        replicas=one.replicas,
        size_bytes=large.size_bytes,
        bus_bytes_per_s=best,
        low_bytes_per_s=low,
        high_bytes_per_s=high,
        small_s=median(small.times_s),
        expected_bytes_per_s=expected,
        expected_from=origin,
    )


def _ring(facts: ClusterFacts) -> Expected:
    """Return what a connection carries and what the host takes, one after the other."""
    if not facts.links:
        return None, "what a connection carries was not measured"
    line = min(one.bytes_per_s for one in facts.links)
    host = limits()["ring_host"]
    words = (
        f"one connection carries {format_si(line, 'B/s', 2)}, and without a line TensorFlow's RING "
        f"reaches about {format_si(host, 'B/s', 2)} (own measurement)"
    )
    return 1.0 / (1.0 / line + 1.0 / host), words


def _between_nodes(facts: ClusterFacts, one: AllReduce, network: Link | None) -> Expected:
    if network:
        return _of_link(one, network)
    rates = []
    for node in facts.nodes:
        taken = interface_of(node)
        rates.append(node.infiniband_bytes_per_s or (taken.bytes_per_s if taken else 0.0))
    if not rates or not min(rates):
        return None, "no interface tells its rate; name the network with --link"
    words = f"the network interface of a node tells {format_si(min(rates), 'B/s', 2)}"
    return min(rates), words


def _between_cards(facts: ClusterFacts, one: AllReduce) -> Expected:
    node = next((node for node in facts.nodes if node.rank == one.rank), None)
    slugs = {card.slug for card in node.cards} if node else set()
    if len(slugs) != 1 or "" in slugs:
        return None, "the catalogue does not know these cards"
    try:
        return _of_link(one, default_link(find(slugs.pop()), one.replicas))
    except UsageError as error:
        return None, str(error)


def _of_link(one: AllReduce, link: Link) -> Expected:
    size = one.sizes[-1].size_bytes
    rate = expected_bytes_per_s(size, one.replicas, link.bus_bytes_per_s, link.latency_s)
    return rate, f"link catalogue, {link.slug}: {link.source}"
