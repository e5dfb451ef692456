"""Sizes that a batch leaves open, from the command line, from a model or from a batch of the data.

A window of a series, a batch of ``from_generator``: the dataset does not say how long they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.workload.dataspec import Leaf, leaves, mapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.base.untyped import Structure, Value

Shape = tuple[int | None, ...]


def is_open(structure: Structure) -> bool:
    """Return whether a size of a leaf is not known."""
    return any(None in leaf.shape for leaf in leaves(structure))


def with_declared(structure: Structure, declared: Value) -> Value:
    """Return the structure with the sizes of another one where its own are open.

    Args:
        structure: Of ``Leaf``.
        declared: The same in another structure: Keras finds the entries of a dict by the names of
            the inputs, and everything else by its place. What does not fit is left.
    """
    if isinstance(structure, dict):
        named = declared
        if not isinstance(declared, dict):
            named = {leaf.name: leaf for leaf in leaves(declared)}
        return {key: with_declared(part, named.get(key)) for key, part in structure.items()}
    own, known = list(leaves(structure)), list(leaves(declared))
    if len(own) != len(known):
        return structure
    new = iter([_merged(*pair) for pair in zip(own, known, strict=True)])
    return mapped(structure, lambda _own: next(new))


def with_given(structure: Structure, shapes: Sequence[Shape]) -> Value:
    """Set the shapes of ``--input-shape``: one for each leaf, or for the open ones.

    Args:
        structure: Of ``Leaf``.
        shapes: In the order of the leaves, or each where it alone fits.

    Raises:
        UsageError: They do not fit together.
    """
    own = list(leaves(structure))
    found = _assigned(own, list(shapes), one_each=len(own) == len(shapes))
    if found is None:
        raise _unfit(own, shapes)
    new = iter(found)
    return mapped(structure, lambda _own: next(new))


def refuse_open(structure: Structure, shapes: Sequence[Shape] = ()) -> None:
    """Ask for the sizes that are still open; raises ``UsageError``, and nothing where none is.

    Args:
        structure: Of ``Leaf``.
        shapes: That were given by now.
    """
    own = list(leaves(structure))
    leaf = next((one for one in own if is_open(one)), None)
    if leaf is None:
        return
    asked = [one for one in own if is_open(one) or one.shape in shapes]
    words = " ".join(f"--input-shape {_example(one)}" for one in asked)
    raise UsageError(
        f"the input {leaf.name or 'of the model'} has the shape {leaf.shape} without the batch",
        why="None is not known before the data is",
        remedy=f"say it with --input-shape, for example {words}",
    )


def _merged(leaf: Leaf, known: Leaf) -> Leaf:
    """Give a leaf the sizes of one that fits; an axis of 1 at the end Keras adds or removes."""
    without = known.shape[:-1] if known.shape[-1:] == (1,) else known.shape
    for shape in (known.shape, without, (*known.shape, 1)):
        if _fits(leaf.shape, shape):
            sizes = zip(leaf.shape, shape, strict=True)
            return replace(leaf, shape=tuple(b if a is None else a for a, b in sizes))
    return leaf


def _fits(left: Shape, right: Shape) -> bool:
    return len(left) == len(right) and all(
        a == b or None in (a, b) for a, b in zip(left, right, strict=True)
    )


def _assigned(own: list[Leaf], shapes: list[Shape], *, one_each: bool) -> list[Leaf] | None:
    """Return the leaves with every shape at one of them; None where that cannot be."""
    if not shapes:
        return own
    first, *others = shapes
    # As many as there are inputs are in their order; fewer are for the open ones.
    order = sorted(range(len(own)), key=lambda n: not one_each and not is_open(own[n]))
    for number in order:
        if not _fits(own[number].shape, first):
            continue
        taken = replace(own[number], shape=first)
        left = [*own[:number], *own[number + 1 :]]
        found = _assigned(left, others, one_each=one_each)
        if found is not None:
            return [*found[:number], taken, *found[number:]]
    return None


def _unfit(own: list[Leaf], shapes: Sequence[Shape]) -> UsageError:
    """Return which of the shapes has no input."""
    wrong = next((s for s in shapes if not any(_fits(leaf.shape, s) for leaf in own)), shapes[-1])
    open_ones = [leaf for leaf in own if is_open(leaf)]
    text = f"--input-shape {','.join(map(str, wrong))}"
    if len(open_ones) == 1 and len(own) == 1:
        what = f"{text} does not fit the input {open_ones[0].name or 'of the model'}"
        return UsageError(what, why=f"its shape without the batch is {open_ones[0].shape}")
    known = ", ".join(f"{leaf.name} {leaf.shape}".strip() for leaf in own)
    if not open_ones:
        what = f"{text} fits no input whose shape is open"
        return UsageError(what, why=f"the inputs are {known} without the batch")
    words = " ".join(f"--input-shape {_example(leaf)}" for leaf in own)
    return UsageError(
        f"{text} fits no input, or one that has a shape already",
        why=f"the inputs are {known} without the batch",
        remedy=f"give one for each, for example {words}",
    )


def _example(leaf: Leaf) -> str:
    """Return sizes as they may be: an image of 224 by 224, a text of 128 tokens."""
    usual = 224 if len(leaf.shape) == 3 else 128
    return ",".join(str(size or usual) for size in leaf.shape) or "()"
