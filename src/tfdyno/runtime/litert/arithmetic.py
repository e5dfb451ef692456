"""How many multiplications and additions an operator of LiteRT takes, by the shapes beside it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.deploy.litert_graph import LitertTensor

_MOVES = frozenset(
    "RESHAPE SHAPE STRIDED_SLICE SLICE CONCATENATION PACK UNPACK TRANSPOSE GATHER GATHER_ND SPLIT"
    " SPLIT_V SQUEEZE EXPAND_DIMS PAD PADV2 MIRROR_PAD TILE BROADCAST_TO FILL CAST SPACE_TO_DEPTH"
    " DEPTH_TO_SPACE SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND REVERSE_V2 EMBEDDING_LOOKUP WHILE IF"
    " CALL_ONCE DYNAMIC_UPDATE_SLICE RANK ZEROS_LIKE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE"
    .split()
)  # fmt: skip
"""They copy or name values, and compute none."""


def arithmetic_of(
    kind: str, inputs: Sequence[LitertTensor], outputs: Sequence[LitertTensor]
) -> int:
    """Operations of one run; a multiplication with its addition counts as two.

    Convolutions and matrix products by their definition, where the weights have the layout of the
    schema (output channels first; depthwise: output channels last). Everything else that computes
    counts one operation for each element that comes out or, where that is more, goes in.
    """
    if kind in _MOVES or not outputs:
        return 0
    made = _elements(outputs[0])
    if kind in {"CONV_2D", "CONV_3D", "FULLY_CONNECTED"}:
        weights = inputs[1].shape
        # CONV_3D keeps its output channels last.
        kept = weights[-1] if kind == "CONV_3D" else weights[0]
        return 2 * made * (math.prod(weights) // max(1, kept))
    if kind == "DEPTHWISE_CONV_2D":
        return 2 * made * math.prod(inputs[1].shape[1:3])
    if kind == "TRANSPOSE_CONV":
        return 2 * _elements(inputs[2]) * math.prod(inputs[1].shape[:3])
    if kind == "BATCH_MATMUL":
        # made = rows x columns of every product; what is summed over is left of the first input.
        rows = max(1, _elements(outputs[0]) // max(1, outputs[0].shape[-1]))
        return 2 * made * max(1, _elements(inputs[0]) // rows)
    if kind in {"AVERAGE_POOL_2D", "MAX_POOL_2D"}:
        return _elements(inputs[0])
    if kind == "UNIDIRECTIONAL_SEQUENCE_LSTM":
        steps = math.prod(inputs[0].shape[:-1])
        return 2 * steps * sum(_elements(one) for one in inputs[1:9])
    return max(made, *(_elements(one) for one in inputs if not one.constant), 0)


def _elements(tensor: LitertTensor) -> int:
    return math.prod(tensor.shape)
