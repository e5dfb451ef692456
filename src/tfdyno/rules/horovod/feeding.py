"""Which process gets which samples: Horovod's scripts say it, under the trainer nobody has to.

The trainer deals out one global batch. ``shard(size, rank)`` and batches of B on each of n
processes are the same samples in each step as batches of n B of the whole, in other places.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tfdyno.rules.horovod.names import batch_arguments
from tfdyno.rules.rewrite.source_text import Patch, argument_patches, last_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.migration.sites import Site
    from tfdyno.rules.rewrite.draft import Draft

_SHARD = "the trainer gives each replica its part of one batch"
_BATCH = "a batch is that of all replicas: each gets as many samples as before"
_EPOCHS = (
    "each process went over all samples in an epoch; together they go over them once, so that "
    "as many epochs as one process needs are as many updates"
)
_SEED = "all processes draw the same order, since each gets its part of the same batch"
_SEEDS = frozenset(
    "set_seed seed set_random_seed RandomState default_rng Random SeedGenerator PRNGKey".split()
)
_OWN_BATCHES = frozenset({"flow", "flow_from_directory", "flow_from_dataframe", "fit_generator"})
_SIMPLE = (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript)


def shared_out(draft: Draft, ranks: list[ast.expr], sizes: list[ast.expr]) -> bool:
    """Take out what gives each process samples of its own.

    Args:
        draft: Takes the changes.
        ranks: Uses of ``hvd.rank()``.
        sizes: Uses of ``hvd.size()``.

    Returns:
        Whether there was such a thing.
    """
    script, is_found = draft.script, False
    for rank in ranks:
        call = next((one for one in script.around(rank) if isinstance(one, ast.Call)), None)
        part = script.parents[rank]
        if call and isinstance(call.func, ast.Attribute) and call.func.attr == "shard":
            whole: ast.expr = call
            data = call.func.value
        elif isinstance(part, ast.Slice) and part.lower is rank and part.step in sizes:
            sliced = script.parents[part]
            if not isinstance(sliced, ast.Subscript) or part.upper:
                continue
            whole, data = sliced, sliced.value
        else:
            continue
        is_found = True
        draft.change(whole, "shard by rank", _SHARD)
        draft.leave(whole, data)
    return is_found


def seeds(draft: Draft, ranks: list[ast.expr]) -> Iterator[ast.expr]:
    """Make seeds that differ by rank the same; yield the ranks that were in them."""
    for rank in ranks:
        for outer in draft.script.around(rank):
            is_keyword = isinstance(outer, ast.keyword) and "seed" in (outer.arg or "")
            is_call = isinstance(outer, ast.Call) and last_name(outer) in _SEEDS
            if is_keyword or is_call:
                draft.replace(rank, "0")
                draft.change(rank, "a seed by rank", _SEED)
                yield rank
                break


def batches(draft: Draft, replicas: str, *, is_sharded: bool, sizes: list[ast.expr]) -> None:
    """Multiply each batch by the number of replicas, where an epoch stays what it was."""
    predicted = _predicted(draft)
    for site in draft.script.sites:
        last = site.path.rpartition(".")[2]
        if site.kind != "call" or draft.is_gone(site.node) or not isinstance(site.node, ast.Call):
            continue
        if last in _OWN_BATCHES and "tf.data" not in site.path:
            why = "a generator makes batches by itself, which cannot be dealt out to replicas"
            draft.hand(site.node, why, "give fit a tf.data.Dataset or arrays")
        elif last in batch_arguments() and _is_data(site, last) and site.node not in predicted:
            _multiply(draft, site, last, replicas)
        if last == "fit" and site.node.args + site.node.keywords:
            _epoch(draft, site, is_sharded=is_sharded, sizes=sizes)


def _predicted(draft: Draft) -> set[ast.AST]:
    """Return everything in data that only predict is given: each process predicts all by itself."""
    found: set[ast.AST] = set()
    for call in ast.walk(draft.script.tree):
        if not isinstance(call, ast.Call) or last_name(call) != "predict" or not call.args:
            continue
        given = call.args[0]
        found |= {*ast.walk(given)}
        if isinstance(given, ast.Name) and _is_only(draft, given.id, "predict"):
            found |= {node for one in draft.script.assigned(given.id) for node in ast.walk(one)}
    return found


def _is_only(draft: Draft, name: str, method: str) -> bool:
    """Return whether a name is read by calls of a method alone, and where it is made."""
    for load in draft.script.loads(name):
        call = draft.script.parents[load]
        statement = draft.script.statement(load)
        is_made = isinstance(statement, ast.Assign) and statement in draft.script.assigned(name)
        if not is_made and not (isinstance(call, ast.Call) and last_name(call) == method):
            return False
    return True


def _is_data(site: Site, last: str) -> bool:
    """Return whether it is ``fit`` of something with data, ``batch`` with a size."""
    if last == "fit":
        return _is_arrays(site)
    return bool(getattr(site.node, "args", ()) or getattr(site.node, "keywords", ()))


def _is_arrays(site: Site) -> bool:
    return site.argument("y", 1) is not None


def _multiply(draft: Draft, site: Site, last: str, replicas: str) -> None:
    row, call = batch_arguments()[last], site.node
    assert isinstance(call, ast.Call)
    given = site.argument(row.argument, row.position)
    if given is not None:
        start, end = draft.script.span(given)
        is_simple = isinstance(given, _SIMPLE) or (
            isinstance(given, ast.BinOp) and isinstance(given.op, ast.Mult)
        )
        draft.patches += _around(start, end, is_simple=is_simple, text=f" * {replicas}")
        draft.change(given, f"{last}({row.argument})", _BATCH)
    elif row.unset:
        words = f"{row.argument}={row.unset} * {replicas}"
        patches = argument_patches(call, words, row.position, draft.script.text)
        draft.patches += patches
        if patches:
            draft.change(call, f"{last}({row.argument})", _BATCH)


def _around(start: int, end: int, *, is_simple: bool, text: str) -> list[Patch]:
    if is_simple:
        return [Patch(start=end, end=end, text=text)]
    return [Patch(start=start, end=start, text="("), Patch(start=end, end=end, text=f"){text}")]


def _epoch(draft: Draft, site: Site, *, is_sharded: bool, sizes: list[ast.expr]) -> None:
    """Keep the number of updates, which depends on what an epoch of one process was."""
    if is_sharded or site.argument("steps_per_epoch") is not None:
        return
    epochs = site.argument("epochs", 3)
    divided = [one for one in _within(draft, epochs) if one.right in sizes] if epochs else []
    if divided and _is_arrays(site):
        for one in divided:
            draft.unwrap(one, one.left)
            draft.change(one, "epochs by hvd.size()", _EPOCHS)
        return
    why = "each process goes over all samples in an epoch, and the trainer deals an epoch out"
    each = "x = x[hvd.rank()::hvd.size()] and the same of y" if _is_arrays(site) else (
        "dataset.shard(hvd.size(), hvd.rank()) in front of its shuffle"
    )  # fmt: skip
    remedy = f"write which you mean, then migrate: {each} (each sample once an epoch), or "
    remedy += "epochs divided by hvd.size()" if _is_arrays(site) else "repeat() and steps_per_epoch"
    assert isinstance(site.node, ast.Call)
    draft.hand(site.node, why, remedy)


def _within(draft: Draft, epochs: ast.expr) -> Iterator[ast.BinOp]:
    """Find divisions in an expression, or in the one that its name stands for."""
    values: list[ast.expr] = [epochs]
    if isinstance(epochs, ast.Name):
        values = [one.value for one in draft.script.assigned(epochs.id)]
    for value in values:
        for node in ast.walk(value):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv):
                yield node
