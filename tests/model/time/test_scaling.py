from __future__ import annotations

from dataclasses import replace
from math import log, log2, prod, sqrt
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.steps import Neutral

from tfdyno.catalog.clusters import cluster_of
from tfdyno.catalog.gpus import all_gpus, find
from tfdyno.catalog.links import find_link
from tfdyno.catalog.time_model import time_model
from tfdyno.core.choose.hardware import Cluster, Gpu, Link
from tfdyno.model.time import scaling
from tfdyno.model.time.scaling import has_peer_copies, ring_all_reduce_s, slowest_of, way_of

if TYPE_CHECKING:
    from tfdyno.core.choose.time_model import Constants

NVLINK = Link(slug="x", kind="NVLink", scope="", bus_bytes_per_s=1e9, latency_s=1e-3, source="")
NETWORK = Link(
    slug="n", kind="InfiniBand", scope="1 port", bus_bytes_per_s=0.25e9, latency_s=2e-3, source=""
)
A100 = find("a100-sxm4-40gb")
RTX_3090, RTX_2080_TI = find("rtx-3090"), find("rtx-2080-ti")


def box(replicas: int, *, gpu: Gpu = A100, link: Link = NVLINK, nodes: int = 1) -> Cluster:
    return Cluster(
        gpu=gpu,
        nodes=nodes,
        gpus_per_node=replicas,
        inside=link if replicas > 1 else None,
        network=NETWORK if nodes > 1 else None,
        ports=2,
    )


def exchange(
    constants: Constants,
    *,
    gradients: float = 0.1e9,
    cluster: Cluster | None = None,
    packed: bool = False,
    execution: str = "graph",
) -> tuple[float, float]:
    found = scaling.exchange(
        gradient_bytes=gradients,
        cluster=cluster or box(2),
        device_s=0.09,
        execution=execution,
        packed=packed,
        constants=constants,
    )
    return found.whole_s, found.exposed_s


@pytest.mark.parametrize(
    ("ranks", "expected_s"),
    [(1, 0.0), (2, 0.08 + 0.002), (4, 0.12 + 0.006), (8, 0.14 + 0.014)],  # 2 (n-1)/n x 0.08 s
)
def test_time_of_a_ring_matches_the_hand_calculation(ranks: int, expected_s: float) -> None:
    found = ring_all_reduce_s(0.08e9, ranks, bus_bytes_per_s=1e9, latency_s=1e-3)
    assert found == pytest.approx(expected_s)


def test_a_ring_refuses_negative_gradients() -> None:
    with pytest.raises(ValueError, match="payload_bytes >= 0, got 2, -1"):
        ring_all_reduce_s(-1, 2, bus_bytes_per_s=1e9, latency_s=0.0)


def test_the_backward_pass_hides_its_share() -> None:
    constants = Neutral(allreduce_overlap=0.5, allreduce_bucket_bytes=10e6)
    total, exposed = exchange(constants)  # ten buckets of 10 + 2 ms
    assert total == pytest.approx(0.12)
    assert exposed == pytest.approx(0.12 - 0.5 * 2 / 3 * 0.09)


def test_how_much_is_hidden_depends_on_the_execution() -> None:
    constants = Neutral(allreduce_overlap=0.6, allreduce_overlap_xla=0.0,
                        allreduce_overlap_torch=0.3, allreduce_bucket_bytes=10e6)  # fmt: skip
    graph, torch, xla = (
        exchange(constants, execution=how)[1] for how in ("graph", "eager-torch", "xla")
    )
    assert graph < torch < xla == pytest.approx(0.12)


def test_one_pack_is_sent_after_the_backward_pass() -> None:
    constants = Neutral(allreduce_overlap=1.0, allreduce_bucket_bytes=10e6)
    total, exposed = exchange(constants, packed=True)
    assert total == exposed == pytest.approx(0.1 + 0.002)  # one bucket, two hops


def test_the_hosts_take_their_time_to_start_whatever_is_sent() -> None:
    idle, started = (
        Neutral(allreduce_start=start_s, allreduce_shortest_step=0.02) for start_s in (0.0, 7e-3)
    )
    for gradients in (1e3, 1e9):
        before, after = exchange(idle, gradients=gradients), exchange(started, gradients=gradients)
        assert [b - a for a, b in zip(before, after, strict=True)] == pytest.approx([7e-3, 7e-3])
    assert exchange(started, gradients=0.0) == (0.0, 0.0)


def test_a_step_shorter_than_any_published_loses_the_same_share() -> None:
    # 90 ms where the shortest is 180: half of the 7 ms
    constants = Neutral(allreduce_start=7e-3, allreduce_shortest_step=0.18)
    idle = exchange(Neutral())[1]
    assert exchange(constants)[1] - idle == pytest.approx(3.5e-3)


def test_the_last_bucket_is_never_hidden() -> None:
    constants = Neutral(allreduce_overlap=1.0, allreduce_bucket_bytes=10e6)
    assert exchange(constants, gradients=20e6)[1] == pytest.approx(0.012)


def test_one_card_has_nothing_to_exchange() -> None:
    with pytest.raises(ValueError, match="one GPU has nothing to exchange"):
        way_of(box(1), Neutral())


def test_nodes_are_as_fast_as_the_slower_of_link_and_ports() -> None:
    constants = Neutral(allreduce_network=0.8)
    two_ports = way_of(box(4, nodes=2), constants)
    assert two_ports.link.slug == "n"
    assert two_ports.bytes_per_s == pytest.approx(2 * 0.25e9 * 0.8)
    eight = way_of(replace(box(4, nodes=2), ports=8), constants)
    assert (eight.link.slug, eight.bytes_per_s) == ("x", 1e9)
    with pytest.raises(ValueError, match="2 nodes need a network between them"):
        way_of(replace(box(4, nodes=2), network=None), constants)


def test_hops_go_round_a_node_and_up_and_down_a_tree_of_nodes() -> None:
    found = scaling.exchange(
        gradient_bytes=0.1e9, cluster=box(4, nodes=8), device_s=0.09, execution="xla",
        constants=Neutral(allreduce_bucket_bytes=0.1e9),
    )  # fmt: skip
    assert found.hops_s == pytest.approx(2 * 3 * 1e-3 + 2 * 3 * 2e-3)
    assert (found.replicas, found.nodes) == (32, 8)


def test_geforce_cards_since_turing_copy_through_the_host() -> None:
    pcie = find_link("pcie4-x16")
    assert not has_peer_copies(RTX_3090, pcie)
    assert not has_peer_copies(RTX_2080_TI, pcie)
    assert has_peer_copies(RTX_3090, find_link("nvlink3-bridge-ga102"))
    assert has_peer_copies(find("rtx-a6000"), pcie)
    assert has_peer_copies(find("gtx-1080-ti"), pcie)


def test_a_link_may_say_itself_whether_cards_copy_to_each_other() -> None:
    host, peer = find_link("pcie4-x16-host"), find_link("pcie4-x16-peer")
    a10g = find("a10g")
    assert not has_peer_copies(a10g, host)  # a virtual machine that does not pass it on
    assert has_peer_copies(RTX_3090, peer)  # a driver that allows it
    constants = Neutral(allreduce_host=4e9, allreduce_pcie=0.5)
    speeds = [
        way_of(cluster_of(gpu, 2, link=link.slug), constants).bytes_per_s
        for gpu, link in ((a10g, host), (RTX_3090, peer))
    ]
    assert speeds == [4e9, 0.5 * peer.bus_bytes_per_s]


def test_cards_on_one_host_share_the_way_through_its_memory() -> None:
    constants = Neutral(allreduce_host=4e9, allreduce_crowding=1.0)
    speeds = [way_of(cluster_of(RTX_3090, n), constants).bytes_per_s for n in (2, 4, 8)]
    assert speeds == pytest.approx([4e9, 2e9, 1e9])
    old = [way_of(cluster_of(RTX_2080_TI, n), constants).bytes_per_s for n in (2, 4, 8)]
    assert old == [4e9, 4e9, 4e9]  # a host of PCIe 3.0


def test_a_bridge_serves_two_cards_and_spares_four_half_of_the_way() -> None:
    constants = Neutral(allreduce_host=4e9, allreduce_crowding=1.0)
    bridge = "nvlink3-bridge-ga102"
    pair, four = (way_of(cluster_of(RTX_3090, n, link=bridge), constants) for n in (2, 4))
    assert pair.bytes_per_s == find_link(bridge).bus_bytes_per_s
    assert four.bytes_per_s == pytest.approx(4e9)  # two crossings, as two cards without a bridge


def test_the_slowest_of_more_lies_further_behind() -> None:
    assert slowest_of(1) == 0.0
    assert slowest_of(8) == pytest.approx(sqrt(2 * log(8)))


@given(st.integers(2, 8), st.integers(1, 16), st.floats(1, 1e10))
def test_the_numbers_of_an_exchange_work_out_to_its_seconds(
    each: int, nodes: int, gradients: float
) -> None:
    cluster = cluster_of(RTX_3090, each * nodes, gpus_per_node=each,
                         network="eth-25g" if nodes > 1 else "")  # fmt: skip
    found = scaling.exchange(
        gradient_bytes=gradients,
        cluster=cluster,
        device_s=0.09,
        execution="graph",
        constants=time_model(),
    )
    rate = found.bus_bytes_per_s * prod(share.factor_ratio for share in found.shares)
    n = each * nodes
    assert found.sent_s == pytest.approx(2 * (n - 1) / n * gradients / rate)
    hops_s = 2 * (each - 1) * found.latency_s + 2 * log2(nodes) * found.network_latency_s
    assert found.hops_s == pytest.approx(hops_s * gradients / found.bucket_bytes)
    assert found.whole_s == pytest.approx(
        found.sent_s + found.hops_s + found.waiting_s + found.start_s
    )
    named = {share.constant for share in found.shares} | set(found.constants)
    assert named <= set(time_model().parameters)


@given(st.sampled_from(all_gpus()), st.sampled_from([2, 4, 8]), st.floats(0, 1e11))
def test_the_exchange_never_gives_time_back(gpu: Gpu, replicas: int, gradients: float) -> None:
    if ":" in gpu.slug:
        return
    whole, exposed = exchange(time_model(), gradients=gradients, cluster=cluster_of(gpu, replicas))
    assert whole >= exposed * (1 - 1e-12) >= 0.0  # rounding where nothing is hidden
    assert 0.0 < 0.1 / (0.1 + exposed) <= 1.0


@given(st.integers(2, 512), st.floats(1, 1e11))
def test_more_replicas_never_exchange_faster(replicas: int, gradients: float) -> None:
    model = time_model()
    now, wider = (
        exchange(model, gradients=gradients, cluster=box(n)) for n in (replicas, replicas + 1)
    )
    assert wider[0] >= now[0]


@given(st.floats(1e8, 1e12), st.floats(1.0, 100.0), st.integers(2, 64), st.booleans())
def test_more_bandwidth_is_never_slower(
    rate: float, more: float, replicas: int, packed: bool
) -> None:
    slow, fast = (
        exchange(
            time_model(),
            cluster=box(replicas, link=replace(NVLINK, bus_bytes_per_s=each)),
            packed=packed,
        )
        for each in (rate, rate * more)
    )
    assert fast[0] <= slow[0]
    assert fast[1] <= slow[1]


@given(st.integers(1, 31), st.integers(2, 64))
def test_more_ports_are_never_slower(ports: int, nodes: int) -> None:
    few, many = (
        exchange(time_model(), cluster=replace(box(8, nodes=nodes), ports=n))
        for n in (ports, ports + 1)
    )
    assert many[1] <= few[1]
