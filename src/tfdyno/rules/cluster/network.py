"""Who did not come, who does not reach whom, and by which interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_si
from tfdyno.rules.cluster.draft import draft, joined
from tfdyno.rules.cluster.tables import limits
from tfdyno.words.base.amounts import capital

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.cluster.cluster_facts import ClusterFacts, Interface, NodeFacts
    from tfdyno.core.doctor.finding import Finding

LOOPBACKS = ("127.", "::1")


def missing(facts: ClusterFacts) -> Iterator[Finding]:
    """Find nodes that did not meet, or one that went away."""
    if not facts.missed:
        return
    what, _, fix = facts.missed.partition("; ")
    came = joined([node.name for node in facts.nodes])
    yield draft(
        "missing",
        "error",
        f"{capital(what).rstrip('.')}.",
        why="A training begins when all of its processes are there.",
        seen=[(came, f"{len(facts.nodes)} of {facts.size} nodes came")],
        fix=capital(fix) if fix else "Look at the output of the process that ended.",
    )


def closed_ports(facts: ClusterFacts) -> Iterator[Finding]:
    """Find pairs of nodes that do not reach each other, though both reach worker 0."""
    failed = [call for call in facts.calls if call.connect_s is None]
    names = {node.rank: node.name for node in facts.nodes}
    addresses = {node.rank: node.address for node in facts.nodes}
    own = [call for call in failed if call.port == "own"]
    if own:
        pairs = [f"{names[c.caller]} does not reach {names[c.callee]}" for c in own]
        yield draft(
            "port_closed",
            "error",
            f"{joined(pairs)}.",
            why="In an all-reduce every node sends to the next one, not only to worker 0.",
            seen=[(names[c.caller], f"{addresses[c.callee]}: {c.error}") for c in own],
            fix="Open the port between these nodes: firewall, security group, network policy, "
            "route.",
        )
    blocked = {(call.caller, call.callee) for call in own}
    any_port = [c for c in failed if c.port == "any" and (c.caller, c.callee) not in blocked]
    if any_port:
        has_cards = any(node.cards for node in facts.nodes)
        pairs = [f"{names[c.caller]} to {names[c.callee]}" for c in any_port]
        yield draft(
            "any_port_closed",
            "error" if has_cards else "note",
            f"Only the port of the plan is open from {joined(pairs)}.",
            why="NCCL and TensorFlow's coordination take further ports that the system chooses.",
            seen=[(names[c.caller], f"a port of {names[c.callee]}: {c.error}") for c in any_port],
            fix="Open all TCP ports between the nodes of a training (those of "
            "net.ipv4.ip_local_port_range).",
        )


def wrong_interface(facts: ClusterFacts) -> Iterator[Finding]:
    """Find addresses that lead to loopback or to a bridge of containers."""
    hosts = {node.address.rpartition(":")[0] for node in facts.nodes}
    if facts.size < 2 or len(hosts) < 2:
        return  # all are on one machine, where loopback is right
    for node in facts.nodes:
        first = node.resolved[0] if node.resolved else ""
        if first.startswith(LOOPBACKS):
            yield draft(
                "address_is_loopback",
                "error",
                f"The address of {node.name} leads to itself alone: {first}.",
                why="TensorFlow and NCCL tell the others this address, and nobody reaches it.",
                seen=[(node.name, f"{node.address.rpartition(':')[0]} is {first}")],
                fix="Take the name out of the line of 127.0.0.1 or 127.0.1.1 in /etc/hosts, or "
                "give IP addresses in TFDYNO_WORKERS.",
            )
            continue
        taken = interface_of(node)
        if taken and taken.kind == "bridge":
            yield draft(
                "address_is_bridge",
                "error",
                f"The address of {node.name} is that of {taken.name}, a bridge of containers.",
                why="It leads to nobody outside of that machine.",
                seen=[(node.name, f"{taken.name} has {', '.join(taken.addresses)}")],
                fix="Give the address of the network card, and exclude the bridge from NCCL.",
                command=f"export NCCL_SOCKET_IFNAME=^{taken.name},lo",
            )


def slow_line(facts: ClusterFacts) -> Iterator[Finding]:
    """Find a connection that carries much less than its interface claims."""
    limit = limits()
    nodes = {node.rank: node for node in facts.nodes}
    for link in facts.links:
        taken = interface_of(nodes[link.sender]) if link.sender in nodes else None
        if not taken or taken.kind != "wire" or not taken.bytes_per_s:
            continue  # that of a pod claims 10 Gbit/s, whatever is behind it
        claimed = min(taken.bytes_per_s, limit["line_most"])
        if link.bytes_per_s < limit["line_ratio"] * claimed:
            measured = format_si(link.bytes_per_s, "B/s", 2)
            yield draft(
                "slow_line",
                "warning",
                f"{nodes[link.sender].name} sends {measured} to {nodes[link.receiver].name}, and "
                f"{taken.name} claims {format_si(taken.bytes_per_s, 'B/s', 2)}.",
                why="Every step waits for the slowest connection of the ring.",
                seen=[(nodes[link.sender].name, f"one connection over {taken.name}: {measured}")],
                fix="Look for a limit of the cloud or switch, a wrong MTU, or another job on it.",
            )


def interface_of(node: NodeFacts) -> Interface | None:
    """Return the interface that has the address by which the others call the node."""
    for address in node.resolved:
        for one in node.interfaces:
            if address in one.addresses:
                return one
        if address.startswith(LOOPBACKS):
            return next((one for one in node.interfaces if one.kind == "loopback"), None)
    return None
