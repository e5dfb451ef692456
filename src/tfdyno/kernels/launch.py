"""Kernels to be: groups of operations, with what they keep and read."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.kernels.graph import Graph, Node

SMALL_BYTES = 64 * 1024
"""Values up to this size are recomputed freely."""
MANY_READS = 8
READS_LIMIT = 64
"""A fusion has no more operands than this."""

LONG_CHAIN = 48
"""Arithmetic operations in a row (random numbers, ``erf``) that are kept for the backward pass."""
LONG = frozenset({"erf", "erfc", "erf_inv", "lgamma", "digamma", "zeta", "polygamma", "bessel_i1e"})
"""Functions that expand into polynomials with about that many operations."""
DEAR = LONG | {"exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "tanh"}
DEAR |= {"power", "sine", "cosine", "tan"}
"""What XLA computes once and keeps for the backward pass where that is quicker on the card: the
sigmoid of every swish, the ``exp`` in GELU's gradient."""

NARROW, NARROWEST = frozenset({"f16", "bf16"}), frozenset({"f16"})
FLOATS = NARROW | {"f32", "f64"}
EXPENSIVE: dict[str, frozenset[str]] = {
    **dict.fromkeys(("tanh", "power", "sine", "cosine", "tan", "atan2"), FLOATS),
    **dict.fromkeys(("log_plus_one", "exponential_minus_one", "cbrt"), NARROW),
    **dict.fromkeys(("exponential", "logistic", "log"), NARROWEST),
}
"""Functions that XLA of today does not compute twice, with the types in which it does not: a result
that two kernels read is kept. Found by compiling a product that two others read through each."""

VIEWS = frozenset({"reshape", "transpose"})
KERNEL_VIEWS = VIEWS | {"reverse"}
NEVER = frozenset({"convert", "broadcast_in_dim", "broadcast", "constant", "iota", "loop_result"})
CHEAP = NEVER | VIEWS
LAZY = VIEWS | {"broadcast_in_dim", "broadcast"}
"""What a reader in another region looks through: only what is behind it must be in memory."""
LIBRARY = frozenset({"convolution", "dot_general"})
COLLECTIVES = frozenset(
    {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute"}
)
OTHERS = frozenset({"custom_call", "fft", "cholesky", "triangular_solve"})
WINDOWS = frozenset({"reduce_window", "select_window", "select_and_scatter"})
WHOLE = frozenset(
    {"reduce", "gather", "scatter", "sort", "top_k", "dynamic_update_slice", "rng"}
    | {"rng_bit_generator"}
    | LIBRARY
    | WINDOWS
    | COLLECTIVES
    | OTHERS
)
"""Operations that end a fusion: their results are kept in memory."""
EPILOGUE = frozenset({"add", "maximum"})
"""What a library call can do to its result before writing it."""
PARTIAL = frozenset({"slice", "dynamic_slice", "gather"})
"""Operations that read no more of their first operand than they return."""

Reads = dict[int, tuple[int, int]]
"""Kept value -> (bytes, elements) read of it."""


@dataclass(slots=True)
class Launch:
    """A kernel to be: the nodes it keeps the results of and what it reads."""

    roots: list[int]
    reads: Reads
    depth: int
    """Longest chain of kernels before it."""
    position: int
    """Where it runs: by the program order of its last root."""
    rows: bool = False
    """Whether it normalises rows in one go, which nothing else is fused with."""
    after: tuple[int, ...] = ()
    """Values that it waits for without reading them, behind a barrier of what is computed again."""
    members: list[int] = field(default_factory=list)
    """Nodes computed inside, roots included."""
    written: list[int] = field(default_factory=list)
    """Nodes whose results are kept instead of the roots' (after an epilogue); empty: the roots."""


@dataclass(slots=True)
class Fusion:
    """The outcome of the rule."""

    launches: list[Launch]
    varying: list[bool]
    kept: list[bool]
    """Whether a node's results are in memory (arguments and loop states included)."""


def results_of(graph: Graph, launch: Launch) -> list[int]:
    """Return the values that a launch leaves in memory."""
    return [v for index in launch.written or launch.roots for v in graph.nodes[index].results]


def is_scan(node: Node, length: tuple[int, ...]) -> bool:
    """Return whether a ``reduce_window`` is a cumulative sum: unit steps, as wide as its axis."""
    window, stride = node.attributes["window"], node.attributes["stride"]
    wide = [size for size, extent in zip(window, length, strict=True) if size == extent > 1]
    return bool(wide) and prod(stride) == 1 and prod(window) == prod(wide)
