"""Which published runs on several GPUs are compared with which, and over what links."""

from __future__ import annotations

from functools import lru_cache

import pytest

from tfdyno.catalog.clusters import find_network
from tfdyno.catalog.links import find_link
from tfdyno_truth.rows import read_rows
from tfdyno_truth.scaling_rows import APART, Pair, bridges, networks, pairs_of


@lru_cache(maxsize=1)
def pairs() -> list[Pair]:
    return pairs_of(read_rows())


def some(**wanted: object) -> list[Pair]:
    return [
        pair
        for pair in pairs()
        if all(getattr(pair.row, name) == value for name, value in wanted.items())
    ]


def test_every_run_has_more_gpus_than_what_it_is_compared_with() -> None:
    assert len(pairs()) > 1000
    for pair in pairs():
        assert pair.base.replicas < pair.cluster.replicas == pair.row.gpus


def test_bridges_join_pairs_and_nodes_are_joined_by_their_network() -> None:
    four = some(gpu="RTX 2080 Ti", interconnect="NVLink-bridge", gpus=4)[0].cluster
    assert four.bridge
    assert four.inside
    assert (four.bridge.slug, four.inside.slug) == ("nvlink2-bridge-rtx20", "pcie3-x16")
    wide = some(gpu="A100-SXM4-40GB", gpus=256)[0].cluster
    assert (wide.nodes, wide.gpus_per_node, wide.ports) == (32, 8, 8)
    assert wide.network
    assert wide.network.slug == "ib-hdr-200"
    old = some(gpu="K80", gpus=64)[0].cluster
    assert (old.nodes, old.gpus_per_node) == (8, 8)


def test_what_joined_the_runs_is_in_the_catalogue_with_a_source() -> None:
    assert all(find_link(one.link).kind == "NVLink bridge" and one.source for one in bridges())
    assert all(find_network(one.network) and one.source for one in networks())


@pytest.mark.parametrize("why", sorted(APART))
def test_every_reason_to_judge_apart_is_met(why: str) -> None:
    assert any(pair.apart == why for pair in pairs())


def test_sixteen_bit_graphs_scale_alike_over_every_link() -> None:
    """What the reason says: the link is not what holds them."""
    told = [pair for pair in some(gpus=8, gpu="Quadro RTX 8000") if pair.apart == "16-bit graph"]
    by_link = {
        link: [p.efficiency for p in told if p.row.interconnect == link]
        for link in ("PCIe", "NVLink-bridge")
    }
    means = [sum(values) / len(values) for values in by_link.values()]
    assert means[0] == pytest.approx(means[1], rel=0.03)
    assert max(means) < 0.6


def test_gradients_of_sixteen_bits_are_half_as_long() -> None:
    assert some(model="vgg16", precision="mixed_float16", gpu="RTX 3090")[0].payload_ratio == 0.5
    assert some(model="vgg16", precision="tf32", gpu="RTX 3090")[0].payload_ratio == 1.0
