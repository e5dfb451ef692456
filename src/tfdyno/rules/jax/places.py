"""Where code runs: in the compiled step, in a data set's graph, or line by line."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

from tfdyno.rules.migration.bindings import LOCAL, UNKNOWN, resolve
from tfdyno.rules.migration.sites import is_keras

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Set

    from tfdyno.rules.migration.bindings import Scope
    from tfdyno.rules.migration.sites import Site

Where = Literal["step", "data", "eager"]
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_STEP_METHODS = frozenset(
    "__init__ build call __call__ compute_mask compute_loss compute_metrics compute_output_shape "
    "train_step test_step predict_step update_state result reset_state reset_states update_step "
    "call_for_loss get_gradients".split()
)
"""Methods of layers, models, losses, metrics and optimizers that Keras calls."""
_STEP_CLASSES = (
    "layers", "Layer", "Model", "models", "Sequential", "losses", "Loss", "metrics", "Metric",
    "regularizers", "Regularizer", "constraints", "optimizers", "Optimizer", "applications",
)  # fmt: skip
_EAGER_CLASSES = ("callbacks", "utils", "initializers", "Initializer")
IN_DATA = frozenset(
    "map filter flat_map interleave scan take_while group_by_window apply reduce "
    "bucket_by_sequence_length rejection_resample".split()
)
"""Methods of a data set whose functions become part of its graph."""
_OUTSIDE = frozenset("py_function numpy_function from_generator py_func".split())
"""What calls a function as Python, number by number."""
_NO_STEP = ("callbacks", "utils", "datasets", "preprocessing", "saving", "initializers")
_NOT_TRACED = frozenset("fit evaluate predict adapt fit_transform get_layer append extend".split())
_OF_LOSSES = frozenset({"y_true", "y_pred"})
_TEXT = ("standardize", "split")


class Places:
    """Tells of each node of a file where it runs."""

    def __init__(
        self, tree: ast.Module, sites: Iterable[Site], given: Mapping[str, Set[str]] | None = None
    ) -> None:
        """Find the functions that Keras or a data set calls, and what those call.

        Args:
            tree: Of the file.
            sites: Of the file.
            given: Names of its functions that other files hand over, for ``step`` and ``data``.
        """
        self.tree, self.sites = tree, tuple(sites)
        self.parents = {
            child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)
        }
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self._name(tree, "")
        self.root = _root(self.sites)
        self.calls = {id(one.node): one for one in self.sites if one.kind == "call"}
        self.step: set[ast.AST] = set()
        self.data: set[ast.AST] = set()
        self.outside: set[ast.AST] = set()
        self.foreign: dict[str, set[str]] = {"step": set(), "data": set()}
        """Functions of other files that run there, as ``file.py:name``."""
        self.arms = set(_other_arms(tree, self.root))
        """Statements that only run on another backend, by a condition of the file itself."""
        self.others = self._others()
        self._entries()
        for names, marked in (("step", self.step), ("data", self.data)):
            own = given.get(names, ()) if given else ()
            marked |= {one for name in own if (one := self.functions.get(name))}
        self._close(self.step, "step")
        self._close(self.data, "data")
        self.eager_only = self.outside - self.step - self.data

    def of(self, node: ast.AST) -> Where:
        """Return where the node runs; a function of both kinds counts for the step."""
        for one in (node, *self.around(node)):
            if one in self.eager_only:
                return "eager"
            if one in self.step:
                return "step"
            if one in self.data:
                return "data"
        return "eager"

    def is_other(self, node: ast.AST) -> bool:
        """Return whether a node only runs on another backend than JAX."""
        return any(one in self.arms or one in self.others for one in (node, *self.around(node)))

    def is_shared(self, node: ast.AST) -> bool:
        """Return whether it runs in the step and in a data set as well."""
        around = {node, *self.around(node)}
        return bool(around & self.step) and bool(around & self.data)

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """List what lies around a node, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function(self, node: ast.AST) -> Function | None:
        """Return the function that a node stands in."""
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
        return next((one for one in self.around(node) if isinstance(one, kinds)), None)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """Return the class that a node stands in."""
        return next((one for one in self.around(node) if isinstance(one, ast.ClassDef)), None)

    def base(self, node: ast.ClassDef) -> str:
        """Return the dotted path of the class that it is made from."""
        paths = [resolve(one, self.root).path for one in node.bases] if self.root else []
        return next((one for one in paths if is_keras(one)), next(filter(None, paths), ""))

    def target(self, node: ast.expr, scope: Scope) -> Function | None:
        """Return the function of the file that an expression stands for, or that it makes."""
        if isinstance(node, ast.Lambda):
            return node
        path = resolve(node, scope).path
        while path.endswith("()"):
            path = path.removesuffix("()")
        return self.functions.get(path.removeprefix(LOCAL)) if path.startswith(LOCAL) else None

    def _others(self) -> set[ast.AST]:
        """Return functions that are only named where another backend runs."""
        names = {function.name: function for function in self.functions.values()}
        uses: dict[str, list[bool]] = {}
        for node in ast.walk(self.tree):
            name = getattr(node, "attr", getattr(node, "id", ""))
            if name in names and isinstance(node, ast.Attribute | ast.Name):
                is_inside = any(one in self.arms for one in (node, *self.around(node)))
                uses.setdefault(name, []).append(is_inside)
        return {names[name] for name, inside in uses.items() if all(inside)}

    def _is_registered(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Return whether a function is known to Keras by its name."""
        decorators = [ast.unparse(one) for one in function.decorator_list]
        return any("register_keras_serializable" in one for one in decorators)

    def _foreign(self, node: ast.expr, scope: Scope, where: str) -> None:
        """Note a function of another file of the project."""
        path = resolve(node, scope).path.removesuffix("()")
        if path.startswith(LOCAL) and ":" in path:
            self.foreign[where].add(path.removeprefix(LOCAL))

    def _name(self, node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{prefix}.{child.name}" if prefix else child.name
                if isinstance(child, ast.ClassDef):
                    self.classes[inner] = child
                else:
                    self.functions[inner] = child
            self._name(child, inner)

    def _entries(self) -> None:
        for node in self.classes.values():
            if self.is_traced(node):
                own = [one for one in node.body if isinstance(one, ast.FunctionDef)]
                self.step |= {one for one in own if one.name in _STEP_METHODS}
        for function in self.functions.values():
            if self._is_registered(function):
                self.step.add(function)
            if {one.arg for one in function.args.args} >= _OF_LOSSES:
                self.step.add(function)  # of a loss or a metric, wherever it is handed to
        for site in self.calls.values():
            if not self.is_other(site.node):
                self._entry(site)

    def _entry(self, site: Site) -> None:
        """Mark the functions that one call hands over."""
        assert isinstance(site.node, ast.Call)
        last = site.path.rpartition(".")[2]
        given = list(arguments(site.node))
        if last in _OUTSIDE:
            self.outside |= self._functions(given, site, "")
        elif last in IN_DATA and not is_keras(site.path) and is_data_chain(site):
            self.data |= self._functions(given, site, "data")
        elif is_keras(site.path) or last == "compile":
            self._keras_call(site, given)

    def is_traced(self, node: ast.ClassDef) -> bool:
        """Return whether Keras compiles the methods of a class."""
        base = self.base(node)
        if is_keras(base):
            part = base.removeprefix("tf.").split(".")[1]
            return part in _STEP_CLASSES
        has_call = any(getattr(one, "name", "") in ("call", "train_step") for one in node.body)
        return has_call and not base.startswith("tf.")

    def _keras_call(self, site: Site, given: list[tuple[str, ast.expr]]) -> None:
        parts = site.path.removeprefix("tf.").split(".")
        is_free = len(parts) > 1 and parts[1] in _NO_STEP and "get_custom_objects()" not in parts
        if is_free or parts[-1] in _NOT_TRACED:
            return
        for name, value in given:
            if name in _TEXT:
                self.data |= self._functions([(name, value)], site, "data")
            elif not name.endswith("_initializer") and name not in ("initializer", "optimizer"):
                self.step |= self._functions([(name, value)], site, "step")
                self.step |= {one for one in parts_of(value) if _is_tensorflow(one, site.scope)}

    def _functions(self, given: list[tuple[str, ast.expr]], site: Site, where: str) -> set[ast.AST]:
        parts = [part for _, value in given for part in parts_of(value)]
        for part in parts if where else ():
            self._foreign(part, site.scope, where)
        found = (self.target(part, site.scope) for part in parts)
        return {one for one in found if one is not None}

    def _close(self, marked: set[ast.AST], where: str) -> None:
        """Mark what marked functions call, and what is handed on in them."""
        queue = list(marked)
        while queue:
            for node in ast.walk(queue.pop()):
                site = self.calls.get(id(node))
                if site is None or not isinstance(node, ast.Call) or self.is_other(node):
                    continue
                if site.path.rpartition(".")[2] in _OUTSIDE:
                    continue
                parts = [part for _, value in arguments(node) for part in parts_of(value)]
                for one in (node.func, *parts):
                    self._foreign(one, site.scope, where)
                found = {self.target(one, site.scope) for one in (node.func, *parts)}
                queue += [one for one in found if one is not None and one not in marked]
                marked |= {one for one in found if one is not None}


def _other_arms(tree: ast.Module, root: Scope | None) -> Iterator[ast.AST]:
    """List what stands under conditions on the backend that do not hold on JAX."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
            continue
        match node.test:
            case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=str(name))]):
                if not _is_backend(left, root):
                    continue
                holds = (name == "jax") == isinstance(op, ast.Eq)
                yield from node.orelse if holds else node.body
            case _:
                continue


def _is_backend(node: ast.expr, root: Scope | None) -> bool:
    """Return whether an expression asks Keras for its backend."""
    path = resolve(node, root).path if root else ""
    asked = path.endswith(("backend.backend()", "config.backend()"))
    return asked or "KERAS_BACKEND" in ast.unparse(node)


def arguments(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """List the arguments of a call with their names; those by position have none."""
    yield from (("", one) for one in node.args)
    yield from ((one.arg or "", one.value) for one in node.keywords)


def parts_of(value: ast.expr) -> Iterator[ast.expr]:
    """List an argument, or what a list of them holds."""
    match value:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for one in parts:
                yield from parts_of(one)
        case ast.Dict(values=parts):
            for one in parts:
                yield from parts_of(one)
        case _:
            yield value


def _is_tensorflow(node: ast.expr, scope: Scope) -> bool:
    """Return whether it is a function of TensorFlow that is handed over by its name."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    path = resolve(node, scope).path
    return path.startswith("tf.") and not is_keras(path) and not path.endswith(")")


def is_data_chain(site: Site) -> bool:
    """Return whether the receiver may be a data set: not a module of Python or numpy."""
    holder = site.path.rpartition(".")[0]
    return holder.startswith((UNKNOWN, "tf.data", "tensorflow_datasets")) or holder.endswith(")")


def _root(sites: tuple[Site, ...]) -> Scope | None:
    scope = sites[0].scope if sites else None
    while scope and scope.parent:
        scope = scope.parent
    return scope
