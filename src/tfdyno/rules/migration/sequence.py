"""What runs after what: the sites of a file with the functions it calls put in their place."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tfdyno.rules.migration.bindings import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.migration.sites import Module, Site

_DEEPEST = 12
_LONGEST = 20_000


def runs(module: Module) -> Iterator[list[Site]]:
    """Order the file's runs: once from its top, and once for each function never called."""
    inside: dict[str, list[Site]] = defaultdict(list)
    for site in module.sites:
        inside[site.function].append(site)
    called = {site.path for site in module.sites if site.kind == "call"}
    yield _expand("", inside)
    for function in inside:
        if function and LOCAL + function not in called:
            yield _expand(function, inside)


def _expand(function: str, inside: dict[str, list[Site]]) -> list[Site]:
    """Return the sites of a function, with those of the functions it calls after each call."""
    order: list[Site] = []
    _append(function, inside, order, ())
    return order


def _append(
    function: str, inside: dict[str, list[Site]], order: list[Site], stack: tuple[str, ...]
) -> None:
    if function in stack or len(stack) > _DEEPEST:
        return
    for site in inside.get(function, []):
        if len(order) > _LONGEST:
            return
        order.append(site)
        if site.kind == "call" and site.path.startswith(LOCAL):
            _append(site.path.removeprefix(LOCAL), inside, order, (*stack, function))
