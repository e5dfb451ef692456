from __future__ import annotations

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.catalog.links import find_link
from tfdyno.core.choose.hardware import Cluster

T4, PCIE = find("t4"), find_link("pcie3-x16")


def test_replicas_are_all_gpus_of_all_nodes() -> None:
    assert Cluster(gpu=T4, nodes=3, gpus_per_node=4, inside=PCIE).replicas == 12
    assert Cluster(gpu=T4, nodes=3, gpus_per_node=1, inside=None).replicas == 3


def test_a_cluster_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="nodes, GPUs per node and ports >= 1"):
        Cluster(gpu=T4, nodes=0, gpus_per_node=1, inside=None)
    with pytest.raises(ValueError, match="2 GPUs of a node need a link"):
        Cluster(gpu=T4, nodes=1, gpus_per_node=2, inside=None)
