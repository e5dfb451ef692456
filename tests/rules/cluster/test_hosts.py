"""Shared memory, limits, processors far from the cards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.rules.cluster.clusters import CARD, causes, cluster, node

from tfdyno.core.cluster.cluster_facts import NumaNode


@pytest.mark.parametrize(("cards", "severity"), [(2, "error"), (0, "warning")])
def test_the_64_mb_of_a_container_are_too_little(cards: int, severity: str) -> None:
    small = node(1, cards=cards, shared_memory_bytes=64 << 20)
    assert causes(cluster(node(0, cards=cards), small), severity) == ["shared_memory"]


def test_shared_memory_that_is_not_known_is_no_finding() -> None:
    assert causes(cluster(node(0), node(1, shared_memory_bytes=-1))) == []


def test_locked_memory_matters_where_there_is_infiniband() -> None:
    limit: dict[str, Any] = {"locked_memory_limit_bytes": 64 << 10}
    assert causes(cluster(node(0, **limit), node(1, **limit))) == []
    fast = {**limit, "infiniband_bytes_per_s": 25e9}
    assert causes(cluster(node(0, **fast), node(1, **fast)), "error") == ["locked_memory"]


def test_few_files_and_other_memory_are_notes() -> None:
    few = node(1, open_files_limit=1024, memory_limit_bytes=8 << 30)
    assert causes(cluster(node(0), few), "note") == ["open_files", "memory_differs"]


def test_a_process_without_a_processor_near_to_its_card_is_told() -> None:
    sockets = (NumaNode(number=0, cpus=(0, 1)), NumaNode(number=1, cpus=(2, 3)))
    card = replace(CARD, numa_node=1)
    far = node(1, cards=1, numa_nodes=sockets, cpus=(0, 1))
    far = replace(far, cards=(card,))
    assert causes(cluster(node(0, cards=1), far)) == ["far_processors"]
    near = replace(far, cpus=(1, 2))
    assert causes(cluster(node(0, cards=1), near)) == []
