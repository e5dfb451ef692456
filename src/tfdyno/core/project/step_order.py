"""The order in which steps run: what a step rests on comes first, else the order of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def ordered(needs: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Order all steps, each behind those that it needs; else as they stand in the file.

    Args:
        needs: Of each step, in the order of the file; names only steps that are there.

    Raises:
        UsageError: Steps need one another in a circle; it is named.
    """
    left = dict(needs)
    found: dict[str, None] = {}
    while left:
        free = next((name for name in left if all(one in found for one in left[name])), None)
        if free is None:
            circle = " → ".join(_circle(left))
            raise UsageError(
                f"the steps {circle} need one another", remedy="take one of the references out"
            )
        found[free] = None
        del left[free]
    return tuple(found)


def with_needed(names: Iterable[str], needs: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return these steps and all that they rest on."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += needs[name]
    return frozenset(found)


def with_resting(names: Iterable[str], needs: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return these steps and all that rest on them."""
    found = set(names)
    for name in ordered(needs):
        if found & set(needs[name]):
            found.add(name)
    return frozenset(found)


def _circle(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Follow needs that are not met until a step comes again."""
    walk = [next(iter(needs))]
    while walk[-1] not in walk[:-1]:
        walk.append(next(one for one in needs[walk[-1]] if one in needs))
    return walk[walk.index(walk[-1]) :]
