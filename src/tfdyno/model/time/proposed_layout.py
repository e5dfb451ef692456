"""A layout for a model that brings none: which dimension of each weight is split.

The pairs of Megatron-LM (Shoeybi et al., arXiv:1909.08053): what makes more numbers out of fewer
(queries, keys, values, the first matrix of a feed-forward block) is split by columns, what follows
it by rows, so that between the two nothing is exchanged. A path and a shape are all that is known
when a weight is made, and that is enough: attention has names, and of two matrices the one that
widens comes first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.core.train.layout import Placed, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.train.device_mesh import Axes

_HEADS_BEHIND = re.compile(r"(.*/)?(query|key|value)/(kernel|bias)")
_HEADS_FIRST = re.compile(r"(.*/)?attention_output/kernel")
_KERNEL = re.compile(r"(.*/)?(kernel|embeddings|recurrent_kernel)")


def proposed_axes(path: str, shape: tuple[int, ...], name: str, size: int) -> Axes:
    """Return how a weight is split along one axis of a mesh.

    Heads of attention (kernels of three dimensions); of every other kernel and of embeddings the
    larger of the last two dimensions, the last of equal ones, or the other where that cannot be
    divided. A convolution is split by its output channels, or else by its inputs. What has one
    dimension stays whole: it is small.

    Args:
        path: Of the weight: ``model/block_1/query/kernel``.
        shape: Of the weight.
        name: The axis.
        size: Devices along it.

    Returns:
        One axis for each dimension; all empty where nothing is split.
    """
    chosen = next((at for at in _candidates(path, shape) if shape[at] % size == 0), None)
    if size < 2 or chosen is None:
        return ("",) * len(shape)
    return tuple(name if at == chosen else "" for at in range(len(shape)))


def _candidates(path: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """List dimensions that may be split, the best first."""
    rank = len(shape)
    if _HEADS_BEHIND.fullmatch(path) and rank in (2, 3):
        is_bias = path.endswith("bias")
        if rank == (2 if is_bias else 3):
            return (rank - 2,)
    if _HEADS_FIRST.fullmatch(path) and rank == 3:
        return (0,)
    if not _KERNEL.fullmatch(path) or rank < 2:
        return ()
    last, before = rank - 1, rank - 2
    return (before, last) if rank == 2 and shape[before] > shape[last] else (last, before)


def rules_of(weights: Sequence[Placed]) -> tuple[Rule, ...]:
    """Return rules that make of these weights what was made of them, as few as say it.

    Weights that differ in the numbers of their layers' names share a rule, where all of them are
    split alike.

    Args:
        weights: All of a model.
    """
    split = [one for one in weights if any(one.axes)]
    wider = {_pattern(one.path) for one in split}
    axes = {
        pattern: {one.axes for one in weights if re.fullmatch(pattern, one.path)}
        for pattern in wider
    }
    found: dict[str, Axes] = {}
    for one in split:
        pattern = _pattern(one.path)
        shared = len(axes[pattern]) == 1
        found.setdefault(pattern if shared else re.escape(one.path), one.axes)
    return tuple(Rule(pattern=pattern, axes=own) for pattern, own in found.items())


def _pattern(path: str) -> str:
    r"""Return a path with any number behind each layer's name: ``model/dense(_\d+)?/kernel``."""
    return "/".join(_part(part) for part in path.split("/"))


def _part(part: str) -> str:
    stem = re.sub(r"_\d+$", "", part)
    if re.fullmatch(r"kernel|bias|embeddings|recurrent_kernel", part):
        return part
    return rf"{re.escape(stem)}(_\d+)?"
