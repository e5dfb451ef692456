"""Layer and phase of an operation from its location in the traced program."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Phase

_WRAPPER = re.compile(
    r"^(jit|pjit|jvp|transpose|vmap|remat|checkpoint|rematted_computation|custom_jvp|custom_vjp)"
    r"\((.*)\)$"
)
_PLUMBING = re.compile(
    r"^(while|body|cond|scan|closed_call|checkpoint|rematted_computation|custom_(jvp|vjp)_call"
    r"|branch_\d+_fun|core_call|pjit|jit|StatefulPartitionedCall(_\d+)?|gradient_tape|"
    r"cluster_\w+|PartitionedCall(_\d+)?|XlaModule|main|tfdyno_recompute(_\d+)?)$|->|,|:$"
)
_FUNCTION = re.compile(r"jit\((\w+)\)")
_BACKWARD = ("transpose(", "gradient_tape", "gradients/")
RECOMPUTED_BY_JAX = "/rematted_computation/"
"""What ``jax.checkpoint`` computes for the second time."""
RECOMPUTE = "tfdyno_recompute"
"""Scope of what ``remat_gradient`` computes for the second time; TensorFlow adds a number to it."""


@lru_cache(maxsize=65536)
def layer_of(location: str) -> str:
    """Return the path of layer names in a location; empty outside every layer.

    ``jit(step)/transpose(jvp(attention))/key/abc,cde->abde/dot_general`` gives ``attention/key``.
    """
    names = (_unwrapped(part) for part in location.split("/")[:-1])
    return "/".join(name for name in names if name and not _PLUMBING.search(name))


@lru_cache(maxsize=65536)
def phase_of(location: str) -> Phase:
    """Tell backward inside a transposed or gradient scope, update outside every differentiated one.

    What is computed again for a gradient is no part of it, but stands in a scope of its own.

    Holds for a train step; a step for inference is forward throughout.
    """
    if RECOMPUTED_BY_JAX in location:  # within the transposed scope of its gradient
        return "recompute"
    if any(mark in location for mark in _BACKWARD):
        return "backward"
    if RECOMPUTE in location:
        return "recompute"
    return "forward" if "jvp(" in location or "jit(" not in location else "update"


def _unwrapped(part: str) -> str:
    """Read ``transpose(jvp(conv1))`` as ``conv1``, ``jit(step)`` as nothing."""
    match = _WRAPPER.match(part)
    while match:
        part = "" if match[1] in {"jit", "pjit"} else match[2]
        match = _WRAPPER.match(part)
    return part


ACTIVATIONS = frozenset({
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_swish", "leaky_relu", "log_sigmoid",
    "log_softmax", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "softmax", "softplus",
    "softsign", "swish", "tanh",
})  # fmt: skip
"""Functions that a framework runs as an operation of their own wherever they are called."""


@lru_cache(maxsize=65536)
def operation_of(location: str) -> str:
    """Return the framework's operation that a location is of: layer path and activation."""
    inner = [part for part in _FUNCTION.findall(location) if part in ACTIVATIONS]
    return "/".join([layer_of(location), *inner[-1:]])
