"""The order in which launches run: the program's, but none before what it reads."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.kernels.launch import results_of

if TYPE_CHECKING:
    from tfdyno.kernels.graph import Graph
    from tfdyno.kernels.launch import Launch


def in_order(graph: Graph, launches: list[Launch]) -> list[Launch]:
    """Sort launches by position, but none before what it reads.

    Raises:
        ToolError: Some wait for each other, which no program should make them do.
    """
    number = {v: i for i, launch in enumerate(launches) for v in results_of(graph, launch)}
    needs = [
        {number[v] for v in launch.reads if v in number} - {i} for i, launch in enumerate(launches)
    ]
    readers: dict[int, list[int]] = {}
    for index, sources in enumerate(needs):
        for source in sources:
            readers.setdefault(source, []).append(index)
    ready = [(launches[i].position, i) for i, sources in enumerate(needs) if not sources]
    heapq.heapify(ready)
    ordered = []
    while ready:
        _, index = heapq.heappop(ready)
        ordered.append(launches[index])
        for reader in readers.get(index, ()):
            needs[reader].discard(index)
            if not needs[reader]:
                heapq.heappush(ready, (launches[reader].position, reader))
    if len(ordered) < len(launches):
        raise ToolError("the kernels of this program wait for each other")
    return ordered
