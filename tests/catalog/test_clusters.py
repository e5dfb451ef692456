from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.catalog.clusters import cluster_of, find_network, is_per_port, layout_of, usual_ports
from tfdyno.catalog.gpus import all_gpus, find
from tfdyno.catalog.links import ALONE, find_link, is_network, ports_per_gpu
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu

H100, T4, V100 = find("h100-sxm5-80gb"), find("t4"), find("v100-sxm2-16gb")


@pytest.mark.parametrize(
    ("text", "slug", "ports"),
    [
        ("ib-hdr-200", "ib-hdr-200", 0),
        ("8xib-ndr-400", "ib-ndr-400", 8),
        (" ETH-25G", "eth-25g", 0),
    ],
)
def test_a_network_is_named_with_or_without_its_ports(text: str, slug: str, ports: int) -> None:
    link, told = find_network(text)
    assert (link.slug, told) == (slug, ports)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pcie4-x16", "pcie4-x16 is no network"),
        ("nvlink2-v100", "nvlink2-v100 is no network"),
        ("99xib-hdr-200", "99 ports on a node are not possible"),
        ("4xefa-v2-p5", "efa-v2-p5 is told for a whole node"),
        ("ib-hdr", "there is no network 'ib-hdr'"),
    ],
)
def test_what_is_no_network_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        find_network(text)


def test_an_unknown_network_offers_networks_alone() -> None:
    with pytest.raises(UsageError) as raised:
        find_network("2xpcie")
    offered = str(raised.value.remedy).removeprefix("choose one of ").split(", ")
    assert "ib-hdr-200" in offered
    assert all(is_network(find_link(slug)) for slug in offered)


def test_links_are_told_by_the_port_or_by_the_node() -> None:
    assert is_per_port(find_link("ib-hdr-200"))
    assert not is_per_port(find_link("efa-v1-p4d"))
    assert not is_per_port(find_link("eth-25g"))


def test_boards_have_the_ports_of_their_makers_machines() -> None:
    assert usual_ports(H100, 8) == 8
    assert usual_ports(V100, 8) == 4
    assert usual_ports(T4, 8) == 1
    assert usual_ports(H100, 1) == 1


def test_what_a_table_does_not_know_has_one_port() -> None:
    assert ports_per_gpu(find_link("nvlink4-nvswitch-h100-nvls")) == 1.0
    assert ports_per_gpu(find_link("pcie4-x16")) == 0.0
    assert usual_ports(find("v100-sxm3-32gb"), 16) == 8  # DGX-2


def test_nodes_are_filled_before_another_is_taken() -> None:
    found = cluster_of(H100, 32, network="ib-ndr-400")
    assert (found.nodes, found.gpus_per_node, found.ports) == (4, 8, 8)
    assert found.inside
    assert found.inside.slug == "nvlink4-nvswitch-h100-nvls"
    narrow = cluster_of(H100, 32, network="2xib-ndr-400", gpus_per_node=4)
    assert (narrow.nodes, narrow.gpus_per_node, narrow.ports) == (8, 4, 2)


def test_without_a_network_all_are_in_one_node() -> None:
    found = cluster_of(T4, 16)
    assert (found.nodes, found.gpus_per_node, found.network) == (1, 16, None)
    assert cluster_of(T4, 4, network="eth-25g").nodes == 1  # one machine holds them


def test_a_network_as_the_link_joins_every_card_where_one_machine_would_do() -> None:
    found = cluster_of(T4, 4, link="eth-25g")
    assert (found.nodes, found.gpus_per_node, found.inside) == (4, 1, None)
    assert cluster_of(T4, 16, link="ib-hdr-200").nodes == 2


def test_a_node_of_a_cluster_is_the_usual_one_and_the_network_counts() -> None:
    a100 = find("a100-sxm4-80gb")
    found = cluster_of(a100, 16, network="ib-hdr-200")
    assert (found.nodes, found.gpus_per_node, found.ports) == (2, 8, 8)
    assert found.network
    wide = cluster_of(a100, 32, network="ib-hdr-200", gpus_per_node=16)
    assert (wide.nodes, wide.gpus_per_node) == (2, 16)


def test_cards_alone_in_their_machine_take_the_named_network_before_their_own() -> None:
    for name, own in (("gh200-96gb", "ib-ndr-400"), ("rtx-2060-mobile", "eth-10g")):
        for network in ("", "eth-100g-roce"):
            found = cluster_of(find(name), 4, network=network)
            assert (found.nodes, found.gpus_per_node, found.inside) == (4, 1, None)
            assert found.network
            assert found.network.slug == (network or own)
        assert cluster_of(find(name), 1).network is None


def test_a_laptop_never_has_several_cards() -> None:
    with pytest.raises(UsageError, match="is the only card of its machine: 4 of them would need 4"):
        cluster_of(find("rtx-2060-mobile"), 4, gpus_per_node=4)


def test_the_network_is_named_once() -> None:
    with pytest.raises(UsageError, match="name the network once: --link eth-25g is a network"):
        cluster_of(T4, 16, link="eth-25g", network="ib-hdr-200")
    assert cluster_of(T4, 16, link="pcie3-x16", network="ib-hdr-200").nodes == 2


def test_the_layout_of_a_network_as_the_link_is_one_for_a_series() -> None:
    assert layout_of([T4], [1, 2, 8]) == 1
    assert layout_of([T4], [1, 2, 16]) == 0


def test_a_bridge_stands_beside_pcie() -> None:
    found = cluster_of(find("rtx-3090"), 4, link="nvlink3-bridge-ga102")
    assert found.bridge
    assert found.inside
    assert (found.bridge.slug, found.inside.slug) == ("nvlink3-bridge-ga102", "pcie4-x16")


@pytest.mark.parametrize(
    ("replicas", "named", "words"),
    [
        (12, {"network": "ib-hdr-200"}, "12 replicas do not fill nodes of 8 x"),
        (16, {"gpus_per_node": 8}, "2 nodes need a network between them"),
    ],
)
def test_nodes_that_cannot_be_are_refused_in_words(
    replicas: int, named: dict[str, object], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        cluster_of(T4, replicas, **named)  # type: ignore[arg-type]


@given(st.sampled_from(all_gpus()), st.integers(1, 64), st.sampled_from([1, 2, 4, 8]))
def test_a_cluster_has_the_gpus_that_were_asked_for(gpu: Gpu, nodes: int, each: int) -> None:
    if ":" in gpu.slug or (gpu.market in ALONE and each > 1):
        return
    found = cluster_of(gpu, nodes * each, network="ib-hdr-200", gpus_per_node=each)
    assert found.replicas == nodes * each
    assert (found.network is None) == (nodes == 1)
