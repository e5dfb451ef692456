"""Training loops and input: accumulation that accumulates nothing, eager left on, no prefetch."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import PurePath
from typing import TYPE_CHECKING

from tfdyno.rules.migration.hits import Hit, hit_at
from tfdyno.rules.migration.sites import Module, Site, ends

if TYPE_CHECKING:
    from collections.abc import Iterator

_APPLIES = ("apply_gradients", "minimize")
_EAGER = ("tf.config.run_functions_eagerly", "tf.config.experimental_run_functions_eagerly")
_WORD = "accum"


def find(module: Module) -> Iterator[Hit]:
    """Find what costs speed or does not do what its name says."""
    yield from _accumulation(module)
    if not _is_test(module.label):
        yield from _eager(module)
    yield from _no_prefetch(module)


def _is_test(label: str) -> bool:
    stem = PurePath(label.replace("\\", "/")).stem
    return stem.startswith(("test_", "conftest")) or stem.endswith("_test")


def _accumulation(module: Module) -> Iterator[Hit]:
    """Find loops over accumulation steps that update the weights in every one of them."""
    inside: dict[int, list[Site]] = defaultdict(list)
    for site in module.calls(*_APPLIES):
        if site.loops:
            inside[site.loops[-1]].append(site)
    for loop in module.sites:
        if loop.kind != "loop" or not isinstance(loop.node, ast.For | ast.While):
            continue
        for site in inside.get(loop.line, ()):
            if _accumulates(loop.node):
                continue
            head = loop.node.iter if isinstance(loop.node, ast.For) else loop.node.test
            if (_speaks(head) and not _is_conditional(site, loop)) or _every_nth(site, loop.node):
                yield hit_at(site, module, "accumulation_nothing")


def _speaks(node: ast.AST) -> bool:
    """Return whether a name in it says that gradients are accumulated."""
    return any(
        _WORD in str(getattr(part, "id", "") or getattr(part, "attr", "")).lower()
        for part in ast.walk(node)
    )


def _is_conditional(site: Site, loop: Site) -> bool:
    return len(site.branches) > len(loop.branches)


def _every_nth(site: Site, loop: ast.For | ast.While) -> bool:
    """Return whether the update stands in ``if step % accumulation == 0``."""
    lines = {line for line, _ in site.branches}
    return any(
        isinstance(node, ast.If)
        and node.lineno in lines
        and _speaks(node.test)
        and any(isinstance(part, ast.Mod) for part in ast.walk(node.test))
        for node in ast.walk(loop)
    )


def _accumulates(loop: ast.AST) -> bool:
    """Return whether anything in a loop adds up: ``+=``, ``a + b``, ``assign_add``, ``append``."""
    for node in ast.walk(loop):
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.AugAssign) and _adds(node):
            return True
        name = getattr(node, "attr", "") if isinstance(node, ast.Attribute) else ""
        if name in ("assign_add", "append", "add", "add_n", "accumulate", "extend"):
            return True
        if isinstance(node, ast.Call) and _speaks(node.func):
            return True
    return False


def _adds(node: ast.AST) -> bool:
    if isinstance(node, ast.AugAssign):
        words = {str(getattr(part, "id", "")).lower() for part in ast.walk(node)}
        return isinstance(node.op, ast.Add) and any("grad" in word for word in words)
    return any(
        isinstance(part, ast.Add) or getattr(part, "attr", "") in ("add", "add_n")
        for part in ast.walk(node)
    )


def _eager(module: Module) -> Iterator[Hit]:
    for site in module.sites:
        if site.kind != "call":
            continue
        if (site.path in _EAGER and site.value("run_eagerly", 0) is True) or (
            ends(site.path, "compile") and site.value("run_eagerly") is True
        ):
            yield hit_at(site, module, "eager_left_on")


def _no_prefetch(module: Module) -> Iterator[Hit]:
    """Find a pipeline that maps and batches, in a file that trains and never prefetches."""
    pipelines = [
        site for site in module.sites if site.kind == "call" and site.path.startswith("tf.data.")
    ]
    trains = any(True for _ in module.calls("fit", "apply_gradients"))
    calls = {site.path.rpartition(".")[2] for site in module.sites if site.kind == "call"}
    names = {getattr(site.node, "attr", "") for site in module.sites} | calls
    if not trains or "prefetch" in names or "map" not in calls:
        return
    mapped = [site for site in pipelines if ends(site.path, "batch") and ".map()" in site.path]
    mapped += [site for site in pipelines if ends(site.path, "map") and ".batch()" in site.path]
    yield from (hit_at(site, module, "no_prefetch") for site in mapped[:1])
