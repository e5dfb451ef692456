"""What a node gives its processes: shared memory, limits, processors near to its cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.rules.cluster.draft import draft, named
from tfdyno.rules.cluster.tables import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.cluster.cluster_facts import ClusterFacts, NodeFacts
    from tfdyno.core.doctor.finding import Finding


def shared_memory(facts: ClusterFacts) -> Iterator[Finding]:
    """Find ``/dev/shm`` that NCCL would fill."""
    limit = limits()
    small = []
    for node in facts.nodes:
        size, needed = node.shared_memory_bytes, limit["shared_memory_per_card"] * len(node.cards)
        if 0 <= size <= max(limit["shared_memory_error"], needed if len(node.cards) > 1 else 0):
            small.append(node)
    if small:
        has_cards = any(len(node.cards) > 1 for node in small)
        yield draft(
            "shared_memory",
            "error" if has_cards else "warning",
            f"/dev/shm is small on {named(small)}.",
            why="Cards of one node exchange data through it where they have no peer access, and "
            "processes of an input pipeline do: a full one ends in a bus error.",
            seen=[(n.name, f"{format_bytes(n.shared_memory_bytes)} in all") for n in small],
            fix="Start the container with more: --shm-size=8g; in Kubernetes a volume emptyDir "
            "with medium Memory at /dev/shm.",
        )


def process_limits(facts: ClusterFacts) -> Iterator[Finding]:
    """Find limits of the shell or the container that a training meets."""
    limit = limits()
    few = limit["locked_memory_warning"]
    fast = [node for node in facts.nodes if node.infiniband_bytes_per_s]
    locked = [node for node in fast if 0 <= node.locked_memory_limit_bytes < few]
    if locked:
        yield draft(
            "locked_memory",
            "error",
            f"Little memory may be locked on {named(locked)}.",
            why="InfiniBand locks the buffers that it sends from, and fails where it may not.",
            seen=[(n.name, f"ulimit -l: {format_bytes(n.locked_memory_limit_bytes)}")
                  for n in locked],
            fix="Lift the limit: --ulimit memlock=-1 for a container, LimitMEMLOCK=infinity for "
            "slurmd.",
        )  # fmt: skip
    files = [n for n in facts.nodes if 0 <= n.open_files_limit < limit["open_files_warning"]]
    if files:
        yield draft(
            "open_files",
            "note",
            f"Few files may be open at a time on {named(files)}.",
            why="Shards of data and connections between many nodes each hold one.",
            seen=[(n.name, f"ulimit -n: {n.open_files_limit:,}") for n in files],
            fix="Raise it before the training starts.",
            command="ulimit -n 65536",
        )
    memory = {n.memory_limit_bytes for n in facts.nodes}
    if len(memory) > 1:
        yield draft(
            "memory_differs",
            "note",
            "The nodes may not use the same amount of memory.",
            why="The smallest one runs out first.",
            seen=[(n.name, _memory(n)) for n in facts.nodes],
            fix="Ask the engine for as much on each: launch --memory.",
        )


def far_processors(facts: ClusterFacts) -> Iterator[Finding]:
    """Find processes that may use none of the processors near to one of their cards."""
    for node in facts.nodes:
        near = {one.number: set(one.cpus) for one in node.numa_nodes}
        if len(near) < 2:
            continue
        far = [c for c in node.cards
               if c.numa_node in near and not near[c.numa_node] & set(node.cpus)]  # fmt: skip
        if far:
            cards = ", ".join(str(card.index) for card in far)
            yield draft(
                "far_processors",
                "warning",
                f"The process on {node.name} may use no processor near to card {cards}.",
                why="All that goes to the card and to the network then crosses the sockets.",
                seen=[(node.name, f"card {c.index} is at NUMA node {c.numa_node}, and the process "
                       f"has {len(node.cpus)} processors elsewhere") for c in far],
                fix="Let the engine bind them: srun --gpu-bind=closest, or all processors of the "
                "node for its one process (--exclusive).",
            )  # fmt: skip


def _memory(node: NodeFacts) -> str:
    limit = node.memory_limit_bytes
    return "no limit" if limit < 0 else f"{format_bytes(limit)} at most"
