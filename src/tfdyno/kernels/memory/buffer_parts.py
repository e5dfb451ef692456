"""What the bytes that a step holds are for: the parts of a plan, by whichever route it was made."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno.core.base.interval import Scaled
from tfdyno.kernels.graph import INPUT_ROLES, depends_on_roles
from tfdyno.kernels.layers import phase_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tfdyno.core.choose.program import Buffer
    from tfdyno.core.choose.workload import TensorSpec
    from tfdyno.kernels.graph import Graph, TensorType
    from tfdyno.kernels.records import Sizes

PARTS = ("weights", "gradients", "optimizer", "activations", "inputs", "workspace")
LARGEST = 10
"""Buffers that a plan names."""
DONATED = frozenset({"weight", "state", "optimizer"})
"""Roles of the arguments that a training step gives new values."""
_PART_OF_ROLE = {"weight": "weights", "state": "weights", "optimizer": "optimizer"}


def part_of_role(role: str) -> str:
    """Return what an argument of the step is for."""
    return _PART_OF_ROLE.get(role, "inputs")


class TemporaryParts:
    """What a temporary of a traced step is for: by its size and by what it is made of."""

    def __init__(self, graph: Graph, sizes: Sizes, tensors: tuple[TensorSpec, ...]) -> None:
        self._graph, self._sizes = graph, sizes
        self._from_input = depends_on_roles(graph, tensors, INPUT_ROLES)
        self._from_weight = depends_on_roles(graph, tensors, frozenset({"weight"}))
        self._from_frozen = depends_on_roles(graph, tensors, frozenset({"state"}))
        frozen = {math.prod(spec.shape) for spec in tensors if spec.role == "state"}
        self._frozen_elements = frozen | {2 * count for count in frozen}  # int4: two in a byte
        self._weights = {spec.shape for spec in tensors if spec.role == "weight"}

    def of(self, node: int, kind: TensorType) -> str:
        """Return the part of a result of ``node``, which holds a ``kind``."""
        if self._is_frozen_weight(node, kind):
            return "weights"
        like_weight = kind.shape in self._weights or self._sizes.marker > 0
        late = phase_of(self._graph.nodes[node].location) in ("backward", "update")
        if late and like_weight and not self._sizes.grows(kind.elements):
            return "gradients"
        cast = self._from_weight[node] and not self._from_input[node]
        return "weights" if cast else "activations"

    def _is_frozen_weight(self, node: int, kind: TensorType) -> bool:
        """Return whether it is made of weights that are not trained, and of nothing else.

        So is the kernel that int8 layers take back to floating point in the backward pass. Each
        gradient comes from the data.
        """
        if self._from_input[node] or self._from_weight[node] or not self._from_frozen[node]:
            return False
        return not self._sizes.grows(kind.elements) and kind.elements in self._frozen_elements


def parts_bytes(held: Iterable[Buffer]) -> dict[str, Scaled]:
    """Return bytes of every part."""
    parts = {part: Scaled() for part in PARTS}
    for each in held:
        parts[each.part] += each.bytes
    return parts


def largest(held: Sequence[Buffer], batch_size: int) -> tuple[Buffer, ...]:
    """Return the buffers that a plan names, largest first."""
    return tuple(sorted(held, key=lambda each: -each.bytes.at(batch_size))[:LARGEST])
