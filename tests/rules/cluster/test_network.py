"""Who did not come, ports that are closed between two nodes, addresses that lead nowhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.cluster.clusters import causes, cluster, node

from tfdyno.core.cluster.cluster_facts import Call, Interface, LinkRate
from tfdyno.rules.cluster import cluster_findings


def test_a_node_that_did_not_come_is_the_first_finding() -> None:
    told = "worker 1 did not come within 5 s: worker 0 waited; look whether it started."
    facts = cluster(node(0), missed=told, calls=(), views=(), clocks=(), links=())
    (found,) = cluster_findings(replace(facts, size=2))
    assert found.cause == "cluster.missing"
    assert found.summary == "Worker 1 did not come within 5 s: worker 0 waited."
    assert found.fix[0].text == "Look whether it started."
    assert [f"{one.source}: {one.text}" for one in found.evidence] == [
        f"{facts.nodes[0].name}: 1 of 2 nodes came"
    ]


def test_a_firewall_between_two_others_is_named() -> None:
    facts = cluster(node(0), node(1), node(2))
    calls = tuple(
        replace(call, connect_s=None, error="No route to host") if 0 not in ends else call
        for call, ends in ((call, (call.caller, call.callee)) for call in facts.calls)
    )
    (found,) = cluster_findings(replace(facts, calls=calls))
    assert (found.cause, found.severity) == ("cluster.port_closed", "error")
    assert "worker 1 (n1) does not reach worker 2 (n2)" in found.summary
    assert found.evidence[0].text == "n2:12355: No route to host"


@pytest.mark.parametrize(("cards", "severity"), [(2, "error"), (0, "note")])
def test_further_ports_are_an_error_only_where_nccl_needs_them(cards: int, severity: str) -> None:
    facts = cluster(node(0, cards=cards), node(1, cards=cards))
    closed = Call(caller=0, callee=1, port="any", error="no answer within 5 s")
    calls = (*(one for one in facts.calls if one.port == "own"), closed)
    (found,) = cluster_findings(replace(facts, calls=calls))
    assert (found.cause, found.severity) == ("cluster.any_port_closed", severity)


def test_an_address_of_loopback_is_an_error_between_machines_only() -> None:
    lost = node(1, resolved=("127.0.1.1",))
    assert causes(cluster(node(0), lost), "error") == ["address_is_loopback"]
    here = [node(rank, address=f"127.0.0.1:{rank + 1}", resolved=("127.0.0.1",)) for rank in (0, 1)]
    assert causes(cluster(*here)) == []


def test_an_address_of_a_bridge_of_containers_is_an_error() -> None:
    bridge = Interface(name="docker0", addresses=("172.17.0.1",), kind="bridge")
    lost = node(1, resolved=("172.17.0.1",), interfaces=(bridge,))
    (found,) = cluster_findings(cluster(node(0), lost))
    assert found.cause == "cluster.address_is_bridge"
    assert found.fix[0].command == "export NCCL_SOCKET_IFNAME=^docker0,lo"


def test_a_connection_far_below_its_interface_is_a_warning() -> None:
    slow = (LinkRate(sender=0, receiver=1, bytes_per_s=1.2e7),)
    made_up = replace(node(0).interfaces[1], kind="virtual")
    assert causes(cluster(node(0, interfaces=(made_up,)), node(1), links=slow)) == []
    (found,) = cluster_findings(cluster(links=slow))
    assert (found.cause, found.severity) == ("cluster.slow_line", "warning")
    assert (
        found.summary == "worker 0 (n0) sends 12 MB/s to worker 1 (n1), and eth0 claims 1.2 GB/s."
    )
