"""Versions and variables: what differs between nodes, and what harms on any."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.rules.cluster.clusters import causes, cluster, node

from tfdyno.rules.cluster import cluster_findings
from tfdyno.rules.cluster.software import chosen_interfaces
from tfdyno.rules.cluster.tables import limits, variables


def versions(**given: str) -> dict[str, str]:
    return {**node(1).versions, **given}


def test_nodes_that_are_alike_have_no_finding() -> None:
    assert causes(cluster()) == []
    assert causes(cluster(node(0, cards=2), node(1, cards=2))) == []


@pytest.mark.parametrize("name", ["tfdyno", "tensorflow", "keras", "nccl"])
def test_other_versions_of_what_decides_are_an_error(name: str) -> None:
    other = node(1, versions=versions(**{name: "0.9"}))
    (found,) = cluster_findings(cluster(node(0), other))
    assert (found.cause, found.severity) == ("cluster.versions", "error")
    assert f"{name} 0.9" in [seen.text for seen in found.evidence]
    assert "worker 1 (n1)" in [seen.source for seen in found.evidence]


def test_a_patch_of_python_is_a_warning_and_a_release_an_error() -> None:
    assert causes(cluster(node(0), node(1, versions=versions(python="3.11.9"))), "warning")
    assert causes(cluster(node(0), node(1, versions=versions(python="3.12.1"))), "error")


def test_a_package_that_one_node_lacks_is_told_as_none() -> None:
    lacking = {name: value for name, value in node(1).versions.items() if name != "keras"}
    (found,) = cluster_findings(cluster(node(0), node(1, versions=lacking)))
    assert "keras none" in [seen.text for seen in found.evidence]


def test_a_variable_of_nccl_that_only_some_nodes_have_is_a_warning() -> None:
    facts = cluster(node(0), node(1, environment={"NCCL_ALGO": "Ring"}))
    assert causes(facts, "warning") == ["variables"]
    assert causes(cluster(node(0), node(1, environment={"OMP_NUM_THREADS": "4"}))) == ["variables"]


@pytest.mark.parametrize("one", variables(), ids=lambda one: one.name + one.value)
def test_every_harmful_variable_is_found_where_there_are_cards(one: object) -> None:
    name, value = getattr(one, "name"), getattr(one, "value")  # noqa: B009
    told = {name: "0" if value == "*" else value}
    nodes = [node(rank, cards=2, environment=told) for rank in (0, 1)]
    assert causes(cluster(*nodes)) == ["nccl_variable"]
    without = [replace(each, cards=(), pairs=()) for each in nodes]
    assert causes(cluster(*without)) == []


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("eth", ["eth0", "eth1"]),
        ("=eth0", ["eth0"]),
        ("=eth", []),
        ("^docker", ["lo", "eth0", "eth1", "ib0"]),
        ("^=lo,docker0", ["eth0", "eth1", "ib0"]),
        ("ib,eth1", ["eth1", "ib0"]),
        ("enp5s0", []),
    ],
)
def test_interfaces_are_chosen_as_nccl_chooses_them(given: str, left: list[str]) -> None:
    assert chosen_interfaces(given, ["lo", "eth0", "eth1", "ib0", "docker0"]) == left


def test_a_socket_interface_that_a_node_lacks_is_an_error() -> None:
    told = {"NCCL_SOCKET_IFNAME": "enp5s0"}
    nodes = [node(rank, environment=told) for rank in (0, 1)]
    assert causes(cluster(*nodes), "error") == ["socket_ifname", "socket_ifname"]
    fine = [replace(one, environment={"NCCL_SOCKET_IFNAME": "eth"}) for one in nodes]
    assert causes(cluster(*fine)) == []


def test_every_limit_is_a_number_above_nothing() -> None:
    assert all(value > 0 for value in limits().values())
