"""A script of Horovod and Keras as a plain Keras 3 script that tfdyno's trainer takes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tfdyno.core.doctor.migration import Migration
from tfdyno.rules.horovod import feeding, guards, header
from tfdyno.rules.horovod.names import OTHERS, ROOT, Entry, entry_of
from tfdyno.rules.horovod.optimizer import unwrapped
from tfdyno.rules.rewrite.diff import unified
from tfdyno.rules.rewrite.draft import Draft
from tfdyno.rules.rewrite.script import Script

if TYPE_CHECKING:
    from tfdyno.rules.migration.sites import Site

_STEP = "train_step"
_OWN_LOOP = "its training is a loop of its own, which the trainer cannot take over"
_OWN_LOOP_REMEDY = (
    "move the step into train_step of a keras.Model (Keras: 'Customizing what happens in fit'), "
    "call fit, then migrate"
)
_WRAPPING = ("compression", "custom_optimizers", "legacy_opts")
"""What ``hvd.load_model`` alone takes."""

Row = ast.List | ast.Tuple
_PINS = ("set_visible_devices", "visible_device_list")
_ENVIRONMENT = ("CUDA_VISIBLE_DEVICES", "local_rank")
_PIN = "tfdyno gives each process its GPUs before TensorFlow starts"
_GROWTH = "devices cannot be changed any more when the script begins: use --set memory_growth=true"
_OLD_ARGUMENT = "experimental_run_tf_function"
_LEGACY = "optimizers.legacy"


def uses_horovod(source: str) -> bool:
    """Return whether a script imports Horovod; raises ``SyntaxError``."""
    return any(site.imports(ROOT) for site in Script(source).sites)


def migrated(path: str, source: str) -> Migration:
    """Take Horovod out of a script.

    Args:
        path: Of the script, as the user shall see it.
        source: Its text.

    Raises:
        SyntaxError: It is not Python.
        RecursionError: It is nested too deeply.
    """
    script = Script(source, about=ROOT)
    draft, taken = Draft(script), header.Names(script)
    uses = [(site, *found) for site in script.sites if site.kind != "import"
            and (found := entry_of(site.path))]  # fmt: skip
    for site in script.sites:
        if site.imports(*OTHERS):
            assert isinstance(site.node, ast.stmt)
            draft.hand(site.node, f"{site.path} is no part of it that Keras needs", "leave it out")
    callbacks = _plain_uses(draft, taken, uses)
    settings_out(draft)
    _feeding(draft, taken, uses)
    _ranks(draft, taken, uses)
    draft.settle(lambda node: _is_idle(script, node))
    _sizes(draft, taken, uses)
    _own_loop(draft)
    extra = header.patches(draft, taken, callbacks)
    after = draft.result(extra)
    return Migration(
        path=path, before=source, after=after, changes=draft.changes, hands=draft.hands,
        diff=unified(path, source, after),
    )  # fmt: skip


def _plain_uses(
    draft: Draft, taken: header.Names, uses: list[tuple[Site, str, Entry]]
) -> frozenset[str]:
    """Change all uses but ranks and sizes; return the callbacks that are written out."""
    callbacks = set()
    for site, name, entry in uses:
        node = site.node
        assert isinstance(node, ast.expr)
        if entry.action in ("replace", "rank", "local") or draft.is_gone(node):
            continue
        if entry.action == "hand" or site.kind != "call":
            if not _is_argument_of(draft, node, uses):
                draft.hand(node, entry.why or "it is handed on", entry.remedy or "call it here")
        elif entry.action == "drop":
            _drop(draft, node, name, entry)
        elif entry.action == "optimizer":
            unwrapped(draft, site, entry, name)
        elif entry.action == "tape":
            _tape(draft, site, name, entry)
        elif entry.action == "starter":
            _starter(draft, node, entry)
        else:
            assert isinstance(node, ast.Call)
            text = entry.text.replace("{keras}", taken.keras)
            draft.replace(node.func, text)
            draft.change(node, f"hvd.{name}", entry.why)
            callbacks |= {text} if entry.action == "callback" else set()
            for word in [one for one in node.keywords if one.arg in _WRAPPING]:
                argument_out(draft, node, word, entry.why)
    return frozenset(callbacks)


def _is_argument_of(draft: Draft, node: ast.expr, uses: list[tuple[Site, str, Entry]]) -> bool:
    """Return whether it stands in a call that looks at it by itself: ``DistributedOptimizer(...)``.

    Or in an assignment that is read there alone: ``compression = hvd.Compression.fp16``.
    """
    wraps = {site.node for site, _, entry in uses if entry.action in ("optimizer", "load")}
    if any(one in wraps for one in draft.script.around(node)):
        return True
    statement = draft.script.statement(node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    loads = draft.script.loads(target.id) if isinstance(target, ast.Name) else []
    return bool(loads) and all(
        any(one in wraps for one in draft.script.around(load)) for load in loads
    )


def _drop(draft: Draft, node: ast.expr, name: str, entry: Entry) -> None:
    """Take a call out: its statement, its place in a list, or the name that stands for it."""
    script = draft.script
    parent, statement = script.parents[node], script.statement(node)
    if isinstance(statement, ast.Expr) and (statement.value is node or _is_append(parent, node)):
        draft.dropped.add(statement)
    elif isinstance(parent, ast.List | ast.Tuple):
        without(draft, parent, [node])
    elif (
        isinstance(statement, ast.Assign) and statement.value is node and _by_name(draft, statement)
    ):
        draft.dropped.add(statement)
    else:
        draft.hand(node, entry.why, "take it out of here")
        return
    draft.change(node, f"hvd.{name}", entry.why)


def _is_append(parent: ast.AST, node: ast.expr) -> bool:
    return (
        isinstance(parent, ast.Call)
        and parent.args == [node]
        and getattr(parent.func, "attr", "") == "append"
    )


def _by_name(draft: Draft, statement: ast.Assign) -> bool:
    """Take a name out of all lists that hold it; False: it is used otherwise."""
    script, target = draft.script, statement.targets[0]
    loads = script.loads(target.id) if isinstance(target, ast.Name) else []
    rows = [script.parents[one] for one in loads]
    is_all = bool(loads) and all(
        isinstance(row, ast.List | ast.Tuple) or _is_append(row, one)
        for row, one in zip(rows, loads, strict=True)
    )
    for row, one in zip(rows, loads, strict=True) if is_all else ():
        if isinstance(row, ast.List | ast.Tuple):
            without(draft, row, [one])
        else:
            draft.dropped.add(script.statement(one))
    return is_all


def _tape(draft: Draft, site: Site, name: str, entry: Entry) -> None:
    """Leave TensorFlow's own tape in a ``train_step``; a loop is left to a person."""
    node, inner = site.node, site.argument("gradtape", 0)
    assert isinstance(node, ast.Call)
    functions = [one.name for one in draft.script.around(node) if isinstance(one, ast.FunctionDef)]
    if _STEP not in functions or inner is None:
        draft.hand(node, _OWN_LOOP, _OWN_LOOP_REMEDY)
        return
    draft.change(node, f"hvd.{name}", entry.why)
    draft.leave(node, inner)


def _starter(draft: Draft, node: ast.expr, entry: Entry) -> None:
    """Read ``if ...: horovod.run(main) else: main()`` as ``main()``."""
    script, statement = draft.script, draft.script.statement(node)
    parent = script.parents[statement]
    is_last = isinstance(parent, ast.If) and len(parent.orelse) > 0 and statement in parent.body
    if not is_last or not isinstance(parent, ast.If):
        draft.hand(
            node, "it starts processes, which tfdyno launch does", "call the function itself"
        )
        return
    first = parent.orelse[0]
    if isinstance(first, ast.If) and first.col_offset == parent.col_offset:
        draft.hand(node, "it starts processes, which tfdyno launch does", "take the branch out")
        return
    draft.change(node, "horovod.run", entry.why)
    start = script.text.at(script.comment_above(parent.lineno), 0)
    draft.cut(start, script.text.at(first.lineno, 0))
    draft.patches += script.dedented(parent.orelse, parent.col_offset)


def _feeding(draft: Draft, taken: header.Names, uses: list[tuple[Site, str, Entry]]) -> None:
    ranks, sizes = _calls(draft, uses, "rank"), _calls(draft, uses, "size")
    is_sharded = feeding.shared_out(draft, ranks, sizes)
    feeding.batches(draft, taken.replicas, is_sharded=is_sharded, sizes=sizes)
    taken.is_scaled = bool(draft.patches)


def _calls(draft: Draft, uses: list[tuple[Site, str, Entry]], *names: str) -> list[ast.expr]:
    return [site.node for site, name, _ in uses if name in names and site.kind == "call"
            and isinstance(site.node, ast.expr) and not draft.is_gone(site.node)]  # fmt: skip


def _ranks(draft: Draft, taken: header.Names, uses: list[tuple[Site, str, Entry]]) -> None:
    """Find what depends on the number of the process."""
    ranks = _calls(draft, uses, "rank", "cross_rank", "local_rank")
    done = {*guards.opened(draft, ranks, _calls(draft, uses, "local_rank"))}
    done |= {*feeding.seeds(draft, [one for one in ranks if one not in done])}
    for site, name, entry in uses:
        node = site.node
        if entry.action not in ("rank", "local") or node in done or draft.is_gone(node):
            continue
        assert isinstance(node, ast.expr)
        if site.kind != "call" or not (entry.action == "local" or guards.is_harmless(draft, node)):
            why = "what is done by rank may be a share of the data, which the trainer deals out"
            remedy = "take a share of your own out (dataset.shard(hvd.size(), hvd.rank()) is known)"
            draft.hand(node, why, remedy)
            continue
        draft.replace(node, entry.text.replace("{worker}", taken.worker))
        draft.change(node, f"hvd.{name}()", entry.why)
        taken.is_numbered |= entry.action == "rank"


def _sizes(draft: Draft, taken: header.Names, uses: list[tuple[Site, str, Entry]]) -> None:
    """Find what depends on the number of processes."""
    for site, name, entry in uses:
        node = site.node
        if entry.action != "replace" or draft.is_gone(node):
            continue
        assert isinstance(node, ast.expr)
        if site.kind != "call":
            draft.hand(node, "the function is handed on", "call it here")
            continue
        draft.replace(node, entry.text.replace("{replicas}", taken.replicas))
        draft.change(node, f"hvd.{name}()", entry.why)
        taken.is_scaled = True


def _own_loop(draft: Draft) -> None:
    """A script that never calls ``fit`` has nothing that the trainer takes over."""
    names = {site.path.rpartition(".")[2] for site in draft.script.sites if site.kind == "call"}
    if "fit" not in names and "GradientTape" in names and not draft.hands:
        site = next(one for one in draft.script.sites if one.path.endswith("GradientTape"))
        assert isinstance(site.node, ast.expr | ast.stmt)
        draft.hand(site.node, _OWN_LOOP, _OWN_LOOP_REMEDY)


def _is_idle(script: Script, node: ast.Assign) -> bool:
    """Return whether an assignment only prepares what may have been taken out."""
    words = script.source[slice(*script.span(node))]
    return "list_physical_devices" in words or "Compression." in words


def without(draft: Draft, row: Row, gone: list[ast.expr]) -> None:
    """Take elements out of a list.

    Args:
        draft: Takes the changes.
        row: The list.
        gone: Of its elements, at least one.
    """
    script = draft.script
    if all(script.is_alone(one, ",") for one in gone):
        for one in gone:
            patch = script.lines_cut(one.lineno, one.end_lineno or one.lineno)
            draft.cut(patch.start, patch.end)
        return
    for first, last in _runs(row.elts, gone):
        before, after = row.elts[:first], row.elts[last + 1 :]
        start, end = script.span(row.elts[first])[0], script.span(row.elts[last])[1]
        if after:
            draft.cut(start, script.span(after[0])[0])
        elif before:
            draft.cut(script.span(before[-1])[1], end)
        else:
            draft.cut(start, script.span(row)[1] - 1)


def _runs(elements: list[ast.expr], gone: list[ast.expr]) -> list[tuple[int, int]]:
    """Return first and last index of neighbours that go."""
    runs: list[tuple[int, int]] = []
    for number, one in enumerate(elements):
        if one not in gone:
            continue
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def settings_out(draft: Draft) -> None:
    """Take out what sets devices: under tfdyno they are made when the script begins."""
    for node in ast.walk(draft.script.tree):
        if isinstance(node, ast.Assign | ast.Expr) and not draft.is_gone(node):
            words = draft.script.source[slice(*draft.script.span(node))]
            if any(pin in words for pin in _PINS) or all(pin in words for pin in _ENVIRONMENT):
                draft.dropped.add(node)
                draft.change(node, "the GPU of a process", _PIN)
            elif "set_memory_growth" in words:
                draft.dropped.add(node)
                draft.change(node, "set_memory_growth", _GROWTH)
        elif isinstance(node, ast.Call):
            for word in node.keywords:
                if word.arg == _OLD_ARGUMENT:
                    argument_out(draft, node, word, "Keras 3 has no such argument")
        elif isinstance(node, ast.Attribute) and node.attr == "legacy":
            _plain_optimizer(draft, node)


def _plain_optimizer(draft: Draft, node: ast.Attribute) -> None:
    """Read ``keras.optimizers.legacy.SGD`` as ``keras.optimizers.SGD``."""
    if getattr(node.value, "attr", getattr(node.value, "id", "")) == "optimizers":
        draft.unwrap(node, node.value)
        draft.change(node, _LEGACY, "Keras 3 has one kind of optimizers")


def argument_out(draft: Draft, call: ast.Call, word: ast.keyword, why: str) -> None:
    """Take a keyword out of a call, with the comma before it, or behind it where it is first."""
    given = sorted([*call.args, *(one.value for one in call.keywords)], key=draft.script.span)
    place = given.index(word.value)
    start = draft.script.text.at(word.lineno, word.col_offset)
    _, end = draft.script.span(word.value)
    if place:
        start = draft.script.span(given[place - 1])[1]
    elif len(given) > 1:
        following = next(one for one in call.keywords if one.value is given[1])
        end = draft.script.text.at(following.lineno, following.col_offset)
    draft.cut(start, end)
    draft.change(word.value, f"{word.arg}=", why)
