"""Processors near to memory and cards, from a recorded tree of the kernel's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.cluster.cluster_facts import NumaNode
from tfdyno.probe.base.host import Host, this_host
from tfdyno.probe.base.numa import cpu_list, numa_nodes, numa_of

if TYPE_CHECKING:
    from pathlib import Path


def put(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_nodes_and_cards_are_read_as_the_kernel_writes_them(tmp_path: Path) -> None:
    put(tmp_path, "sys/devices/system/node/node0/cpulist", "0-1,4\n")
    put(tmp_path, "sys/devices/system/node/node1/cpulist", "2-3\n")
    put(tmp_path, "sys/devices/system/node/node2/cpulist", "\n")  # memory alone
    put(tmp_path, "sys/devices/system/node/possible", "0-2\n")
    put(tmp_path, "sys/bus/pci/devices/0000:65:00.0/numa_node", "1\n")
    host = Host(root=tmp_path)
    assert numa_nodes(host) == (
        NumaNode(number=0, cpus=(0, 1, 4)), NumaNode(number=1, cpus=(2, 3)),
    )  # fmt: skip
    assert numa_of(host, "00000000:65:00.0") == 1
    assert numa_of(host, "00000000:66:00.0") == -1


def test_a_list_that_cannot_be_read_is_none() -> None:
    assert cpu_list("0-3,x") == ()
    assert cpu_list("") == ()


def test_this_machine_tells_processors_that_there_are() -> None:
    assert all(node.cpus for node in numa_nodes(this_host()))
