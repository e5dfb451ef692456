"""From a syntax tree to the sites that rules look at."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.rules.migration import bindings
from tfdyno.rules.migration.bindings import LOCAL, UNKNOWN, Binding, Scope, canonical, resolve
from tfdyno.rules.migration.sites import Kind, Site

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_VERSION_WORDS = ("version", "hasattr", "tf2", "tf_2", "is_keras_3", "is_v2")
_MISSING = ("AttributeError", "ImportError", "ModuleNotFoundError", "NameError")
_ENVIRONMENT = ("os.environ", "environ")


Own = Callable[[int, str], Scope | None]
"""Gives the names of a module of the project itself, by the level and name of an import."""
_FRAMEWORKS = ("keras", "tf", "tf_keras", "tensorflow_addons", "keras_hub", "keras_nlp")


def no_other(_level: int, _module: str) -> None:
    """Know no other file of the project."""


def walked(tree: ast.Module, own: Own = no_other) -> tuple[tuple[Site, ...], Scope]:
    """Return the sites of a file in the order in which they stand, and the names that it ends with.

    The file is walked twice: the second time names that are bound further down are known.

    Args:
        tree: Of the file.
        own: The names of other files of the project.

    Raises:
        RecursionError: The tree is nested too deeply.
    """
    first = _Walker({}, own=own)
    first.block(tree.body)
    known = {scope.name: scope.names for scope in first.scopes}
    second = _Walker(known, first.root.returns, own)
    second.block(tree.body)
    return tuple(second.sites), second.root


def sites(tree: ast.Module) -> tuple[Site, ...]:
    """Return the sites of a file that stands alone; raises as ``walked``."""
    return walked(tree)[0]


class _Walker(ast.NodeVisitor):
    """Walks statements in order and keeps what surrounds the one at hand."""

    def __init__(
        self,
        known: Mapping[str, Mapping[str, Binding]],
        returns: dict[str, Binding] | None = None,
        own: Own = no_other,
    ) -> None:
        self.known, self.own = known, own
        self.root = bindings.preload(Scope(returns=returns if returns is not None else {}), known)
        self.scope = self.root
        self.scopes = [self.root]
        self.sites: list[Site] = []
        self.withs: tuple[str, ...] = ()
        self.branches: tuple[tuple[int, int], ...] = ()
        self.loops: tuple[int, ...] = ()
        self.is_guarded = False

    # --- statements

    def block(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            path = canonical(alias.name)
            self.emit("import", path, node)
            top = alias.name.partition(".")[0]
            self.bind(alias.asname or top, path if alias.asname else canonical(top))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if other := self.own(node.level, node.module or ""):
            self.from_own(other, node)
            return
        if node.level or not node.module:
            for alias in node.names:
                self.bind(alias.asname or alias.name, "")
            return
        for alias in node.names:
            if alias.name == "*":
                self.root.stars.append(canonical(node.module))
            path = canonical(node.module if alias.name == "*" else f"{node.module}.{alias.name}")
            self.emit("import", path, node)
            self.bind(alias.asname or alias.name, path)

    def from_own(self, other: Scope, node: ast.ImportFrom) -> None:
        """Bind what comes from a file of the project as that file has it."""
        taken: dict[str, Binding] = {}
        for alias in node.names:
            if alias.name == "*":
                taken |= {name: one for name, one in other.names.items() if name[0] != "_"}
                self.root.stars += other.stars
            else:
                taken[alias.asname or alias.name] = other.find(alias.name)
        self.scope.names |= taken
        self.root.returns |= other.returns
        paths = [one.path for one in taken.values()] + self.root.stars
        for root in sorted({path.partition(".")[0] for path in paths}.intersection(_FRAMEWORKS)):
            self.emit("import", root, node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for around in (*node.decorator_list, *node.args.defaults, *node.args.kw_defaults):
            if around:
                self.visit(around)
        name = self.inner(node.name)
        self.bind(node.name, LOCAL + name)
        if self.scope.is_class:
            self.scope.names[f"self.{node.name}"] = Binding(path=LOCAL + name)
        kept = (self.withs, self.loops, self.branches)
        self.withs, self.loops = (), ()
        self.enter(Scope(name=name, parent=self.scope, returns=self.root.returns))
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            told = resolve(argument.annotation, self.scope) if argument.annotation else Binding()
            self.bind(argument.arg, f"{told.path}()" if told.path else "")
        self.block(node.body)
        self.leave()
        self.withs, self.loops, self.branches = kept

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for around in (*node.decorator_list, *node.bases):
            self.visit(around)
        bases = [path for path in (resolve(base, self.scope).path for base in node.bases) if path]
        self.bind(node.name, bases[0] if bases else LOCAL + self.inner(node.name))
        name = self.inner(node.name)
        self.enter(Scope(name=name, is_class=True, parent=self.scope, returns=self.root.returns))
        self.block(node.body)
        self.leave()

    def visit_Return(self, node: ast.Return) -> None:
        if node.value:
            self.visit(node.value)
            found = resolve(node.value, self.scope)
            if found.path and not found.path.startswith(LOCAL):
                self.root.returns[LOCAL + self.scope.name] = found

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.target(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)
            self.target(node.target, node.value)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        kept = self.withs
        for item in node.items:
            self.visit(item.context_expr)
            self.withs = (*self.withs, self.named(item.context_expr))
            if item.optional_vars:
                self.target(item.optional_vars, item.context_expr)
        self.block(node.body)
        self.withs = kept

    visit_AsyncWith = visit_With  # noqa: N815

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self.emit("loop", resolve(node.iter, self.scope).path, node)
        self.unbind(node.target)
        self.loop(node.lineno, node.body)
        self.block(node.orelse)

    visit_AsyncFor = visit_For  # noqa: N815

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        self.emit("loop", "", node)
        self.loop(node.lineno, node.body)
        self.block(node.orelse)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        is_guard = asks_version(node.test)
        for arm, body in enumerate((node.body, node.orelse)):
            self.arm(node.lineno, arm, body, is_guard=is_guard)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        is_guard = any(catches_missing(handler) for handler in node.handlers) or all(
            isinstance(statement, ast.Import | ast.ImportFrom) for statement in node.body
        )
        self.arm(0, 0, node.body, is_guard=is_guard)
        for handler in node.handlers:
            before = dict(self.scope.names)
            self.arm(0, 0, handler.body, is_guard=is_guard)
            if is_guard:
                self.scope.names.update(before)
        self.block((*node.orelse, *node.finalbody))

    visit_TryStar = visit_Try  # noqa: N815

    def visit_Delete(self, node: ast.Delete) -> None:
        """Skip a deletion, which is no use of what is deleted."""

    # --- expressions

    def visit_Call(self, node: ast.Call) -> None:
        path = self.named(node.func)
        self.environment_call(path, node)
        self.visit_inside(node.func)
        self.emit("call", path, node)
        for argument in (*node.args, *node.keywords):
            self.visit(argument)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.emit("name", self.named(node), node)
        self.visit_inside(node)

    def visit_Name(self, node: ast.Name) -> None:
        path = self.scope.find(node.id).path
        if "." in path and not path.endswith(")"):
            self.emit("name", path, node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        kept = dict(self.scope.names)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self.bind(argument.arg, "")
        self.visit(node.body)
        self.scope.names = kept

    def visit_inside(self, node: ast.AST) -> None:
        """Visit what lies below a dotted name, such as the call in ``Session().run``."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name):
            self.visit(node)

    def named(self, node: ast.AST) -> str:
        """Return the path of a name or call; ``?.name`` where the receiver is not known."""
        path = resolve(node, self.scope).path
        if path:
            return path
        if isinstance(node, ast.Call):
            inner = self.named(node.func)
            return f"{inner}()" if inner else ""
        return f"{UNKNOWN}.{node.attr}" if isinstance(node, ast.Attribute) else ""

    # --- bookkeeping

    def emit(self, kind: Kind, path: str, node: ast.AST, text: str = "") -> None:
        if path or kind == "loop":
            self.sites.append(
                Site(
                    kind=kind, path=path, node=node, line=getattr(node, "lineno", 0),
                    scope=self.scope, withs=self.withs, branches=self.branches,
                    loops=self.loops, is_guarded=self.is_guarded, text=text,
                )
            )  # fmt: skip

    def target(self, target: ast.expr, value: ast.expr) -> None:
        """Bind or set what an assignment does."""
        match target:
            case ast.Name(id=name):
                self.store(self.scope, name, value)
            case ast.Attribute(value=ast.Name(id="self"), attr=attribute):
                self.store(self.scope.owner(), f"self.{attribute}", value)
            case ast.Attribute():
                self.emit("set", self.named(target), target)
            case ast.Subscript(value=holder, slice=ast.Constant(value=str(key))):
                self.environment(self.named(holder), key, value, target)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
                for one, given in zip(targets, values, strict=False):
                    self.target(one, given)
                for one in targets[len(values) :]:
                    self.unbind(one)
            case _:
                self.visit(target)

    def store(self, scope: Scope, name: str, value: ast.expr) -> None:
        found = resolve(value, self.scope)
        if not found.withs:
            found = replace(found, withs=self.withs)
        scope.names[name] = found

    def unbind(self, target: ast.expr) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                self.bind(node.id, "")

    def bind(self, name: str, path: str) -> None:
        self.scope.names[name] = Binding(path=path)

    def environment(self, holder: str, key: str, value: ast.expr, node: ast.AST) -> None:
        if holder in _ENVIRONMENT or holder.endswith(".environ"):
            given = bindings.constant(value, self.scope)
            self.emit("environment", key, node, text=given if isinstance(given, str) else "")

    def environment_call(self, path: str, node: ast.Call) -> None:
        holder, _, method = path.rpartition(".")
        match node.args:
            case [ast.Constant(value=str(key)), value] if method in ("setdefault", "putenv"):
                self.environment("os.environ" if method == "putenv" else holder, key, value, node)
            case [ast.Dict(keys=keys, values=values)] if method == "update":
                for one, value in zip(keys, values, strict=True):
                    if isinstance(one, ast.Constant) and isinstance(one.value, str):
                        self.environment(holder, one.value, value, node)

    def inner(self, name: str) -> str:
        return f"{self.scope.name}.{name}" if self.scope.name else name

    def enter(self, scope: Scope) -> None:
        self.scope = bindings.preload(scope, self.known)
        self.scopes.append(self.scope)

    def leave(self) -> None:
        self.scope = self.scope.parent or self.root

    def loop(self, line: int, body: list[ast.stmt]) -> None:
        kept = self.loops
        self.loops = (*kept, line)
        self.block(body)
        self.loops = kept

    def arm(self, line: int, arm: int, body: list[ast.stmt], *, is_guard: bool) -> None:
        kept = (self.branches, self.is_guarded)
        if line:
            self.branches = (*self.branches, (line, arm))
        self.is_guarded = self.is_guarded or is_guard
        self.block(body)
        self.branches, self.is_guarded = kept


def asks_version(test: ast.expr) -> bool:
    """Return whether a condition asks for a version or for what a module has."""
    words = [
        word.lower()
        for node in ast.walk(test)
        for word in (getattr(node, "id", ""), getattr(node, "attr", ""))
        if word
    ]
    return any(sign in word for word in words for sign in _VERSION_WORDS)


def catches_missing(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler is there for what this version may lack."""
    names = ast.walk(handler.type) if handler.type else ()
    return any(getattr(node, "id", "") in _MISSING for node in names)
