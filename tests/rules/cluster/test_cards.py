"""Cards that are not alike, not well, or joined badly; topologies as they were printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.rules.cluster.clusters import CARD, causes, cluster, node

from tfdyno.probe.cards.card_pairs import pairs_from_text
from tfdyno.rules.cluster import cluster_findings

if TYPE_CHECKING:
    from tfdyno.core.cluster.cluster_facts import NodeFacts

RECORDED = Path(__file__).parents[2] / "data" / "topology"


def with_first(**given: Any) -> NodeFacts:
    whole = node(1, cards=2)
    return replace(whole, cards=(replace(CARD, **given), *whole.cards[1:]))


def test_a_node_with_fewer_cards_is_an_error_and_another_kind_a_warning() -> None:
    assert causes(cluster(node(0, cards=2), node(1, cards=1)), "error") == ["cards_differ"]
    assert causes(cluster(node(0, cards=2), node(1)), "error") == ["cards_differ"]
    other = with_first(name="NVIDIA A100-SXM4-80GB")
    assert causes(cluster(node(0, cards=2), other)) == ["cards_differ"]


def test_fewer_cards_than_the_plan_has_are_an_error() -> None:
    nodes = [node(rank, cards=1) for rank in (0, 1)]
    assert causes(cluster(*nodes, wanted_cards=2), "error") == ["cards_missing"]
    assert causes(cluster(*nodes, wanted_cards=1)) == []


@pytest.mark.parametrize(
    ("given", "cause", "severity"),
    [
        ({"uncorrected_errors": 3}, "memory_errors", "error"),
        ({"throttle": ("hardware thermal slowdown",)}, "throttled", "warning"),
        ({"inactive_nvlinks": 2}, "nvlink_down", "warning"),
        ({"ecc": False}, "card_settings", "warning"),
        ({"power_limit_w": 500.0}, "card_settings", "warning"),
    ],
)
def test_one_sick_card_is_found(given: dict[str, Any], cause: str, severity: str) -> None:
    assert causes(cluster(node(0, cards=2), with_first(**given)), severity) == [cause]


def test_geforce_cards_without_peer_access_are_a_note_and_others_a_warning() -> None:
    printed = ((RECORDED / name).read_text() for name in ("rtx5090x2.txt", "rtx5090x2-p2p.txt"))
    pairs = pairs_from_text(*printed)
    nodes = [replace(node(rank, cards=2), pairs=pairs) for rank in (0, 1)]
    assert causes(cluster(*nodes), "note") == ["no_peer_access"] * 2
    cut = tuple(replace(pair, peer="CNS") for pair in pairs)
    nodes = [replace(one, pairs=cut) for one in nodes]
    found = cluster_findings(cluster(*nodes))
    assert {one.severity for one in found} == {"warning"}
    assert "the chipset does not support it" in found[0].summary


def test_nodes_joined_in_another_way_are_told_by_their_pairs() -> None:
    switch = pairs_from_text((RECORDED / "h100x4.txt").read_text())
    bridge = tuple(replace(pair, path="PHB") for pair in switch)
    nodes = [
        replace(node(rank, cards=4), pairs=pairs) for rank, pairs in enumerate((switch, bridge))
    ]
    (found,) = cluster_findings(cluster(*nodes))
    assert found.cause == "cluster.topology_differs"
    assert {seen.text for seen in found.evidence} == {"6 pairs NV6", "6 pairs PHB"}


def test_nvlink_between_some_cards_only_is_a_note() -> None:
    pairs = pairs_from_text((RECORDED / "mixedx5.txt").read_text())
    bridged = tuple(replace(pair, path="NV4") if pair.path == "PHB" else pair for pair in pairs)
    nodes = [replace(node(rank, cards=5), pairs=bridged) for rank in (0, 1)]
    assert causes(cluster(*nodes), "note") == ["nvlink_in_part"] * 2
