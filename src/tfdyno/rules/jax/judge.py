"""What of one file stops its move to JAX, changes its results, or only costs speed."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from tfdyno.rules.jax import keras_calls, methods
from tfdyno.rules.jax.branches import lists_computed, masks_taken, numbers_asked
from tfdyno.rules.jax.calls import CannotRewriteError, call_patches
from tfdyno.rules.jax.finds import File, Find, is_in_shape, is_size
from tfdyno.rules.jax.tables import name_of, operations, packages, random_operations
from tfdyno.rules.migration.bindings import resolve
from tfdyno.rules.migration.sites import is_keras

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.rules.jax.tables import Operation
    from tfdyno.rules.migration.sites import Site

_HARMLESS = frozenset(
    "float16 float32 float64 bfloat16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool "
    "string TensorShape TensorSpec newaxis name_scope autograph nest init_scope "
    "initializers zeros_initializer ones_initializer constant_initializer losses metrics "
    "optimizers random_normal_initializer random_uniform_initializer summary config "
    "truncated_normal_initializer keras_initializers errors version __version__".split()
)
"""Names below ``tf`` that are no operations on what the step computes."""
_BACKEND = "tf.keras.backend."
_PLAIN_BACKEND = frozenset(
    "epsilon floatx set_floatx set_epsilon image_data_format set_image_data_format clear_session "
    "backend int_shape is_keras_tensor learning_phase get_uid result_type standardize_dtype "
    "is_int_dtype is_float_dtype Variable name_scope".split()
)
"""What of ``tf.keras.backend`` computes nothing."""
_SHAPES = ("keras.ops.shape",)
_NO_MASK = "keras.ops.where and weights: JAX needs shapes that do not depend on numbers"
_DYNAMIC = frozenset({"exec", "eval", "__import__"})
_TEMPLATE_ONLY = ("tf.stack", "tf.concat")


def finds(file: File, is_own: Callable[[str], bool] = lambda _name: False) -> tuple[Find, ...]:
    """Return all places of a file, in the order of its lines.

    Args:
        file: With where its code runs.
        is_own: Whether a module is one of the project, which is looked at by itself.
    """
    found: list[Find] = [*_imports(file, is_own), *_dynamic(file)]
    for site in file.script.sites:
        if not site.is_guarded and site.kind in ("name", "call", "import"):
            found += _of_site(site, file)
    found += methods.find(file)
    found += keras_calls.find(file)
    found += [
        Find(cause="branch", node=node, name=name) for node, name in numbers_asked(file.places)
    ]
    found += [
        Find(cause="list_operand", node=node, name="list", instead="keras.ops.array([...])")
        for node in lists_computed(file.places)
    ]
    found += [
        Find(cause="by_hand", node=node, name="x[condition]", instead=_NO_MASK)
        for node in masks_taken(file.places)
    ]
    found += [
        Find(cause="outside", node=node, name=node.id, instead="a number, an array of numpy")
        for node in _outside(file)
    ]
    found = [one for one in found if not file.places.is_other(one.node)]
    unique: dict[tuple[int, int, str], Find] = {}
    for one in found:
        unique.setdefault((one.line, one.node.col_offset, one.cause), one)
    return tuple(sorted(unique.values(), key=lambda one: (one.line, one.node.col_offset)))


def _outside(file: File) -> Iterator[ast.Name]:
    """Find tensors of TensorFlow, made outside, that a function of the step uses."""
    root = file.places.root
    for function in file.places.step if root else ():
        if not isinstance(function, ast.FunctionDef | ast.Lambda):
            continue
        own = {one.arg for one in ast.walk(function) if isinstance(one, ast.arg)}
        own |= {one.id for one in ast.walk(function)
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}  # fmt: skip
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id not in own and root:
                path = root.names[node.id].path if node.id in root.names else ""
                if _is_made(path) and not file.places.is_other(node):
                    yield node


def _is_made(path: str) -> bool:
    """Return whether a path is what an operation of TensorFlow returns, or a variable of it."""
    if not path.endswith("()") or not path.startswith("tf.") or is_keras(path):
        return False
    name = path.removesuffix("()")
    return name == "tf.Variable" or name in operations() or name in random_operations()


def uses_keras(file: File) -> bool:
    """Return whether a file makes or trains anything of Keras."""
    return any(is_keras(one.path) or one.imports("keras", "keras_hub") for one in file.script.sites)


def _of_site(site: Site, file: File) -> Iterator[Find]:
    path, node = site.path, site.node
    if not isinstance(node, ast.expr) or site.kind == "import":
        return
    where = file.places.of(node)
    if where == "data" and is_keras(path):
        return  # ``keras_calls`` knows
    is_own = ")" in path or (is_keras(path) and not path.startswith(_BACKEND))
    known = None if is_own else name_of(path, where)
    known = known or (name_of(path, "step") if path.endswith("TFSMLayer") else None)
    if known:
        if known.cause:
            yield _named(site, known.cause, known.instead, file)
    elif where == "step" and _is_operation(path):
        yield _operation(site, node, file)
    elif where == "step" and isinstance(node, ast.Call) and _is_unseeded(node, path):
        yield _random(node, path, file, None)


def _is_unseeded(node: ast.Call, path: str) -> bool:
    is_random = path.removeprefix("tf.").startswith("keras.random.")
    return is_random and all(word.arg != "seed" for word in node.keywords)


def _named(site: Site, cause: str, instead: str, file: File) -> Find:
    node = site.node
    assert isinstance(node, ast.expr)
    is_safe = cause == "seed" and isinstance(node, ast.Call)
    if cause == "tf_function":
        is_safe = any(
            node in getattr(one, "decorator_list", ()) for one in file.places.around(node)
        )
    return Find(cause=cause, node=node, name=site.path, instead=instead, is_safe=is_safe)


def _is_operation(path: str) -> bool:
    if path.startswith(_BACKEND):
        return path.removeprefix(_BACKEND).split(".")[0].removesuffix("()") not in _PLAIN_BACKEND
    parts = path.split(".")
    if parts[0] != "tf" or len(parts) < 2 or is_keras(path):
        return False
    return parts[1] not in _HARMLESS and ")" not in path


def _operation(site: Site, node: ast.expr, file: File) -> Find:
    """Return the find of an operation, and whether it can be written for Keras."""
    path = site.path
    if row := random_operations().get(path):
        return _random(node, path, file, row)
    row = operations().get(path)
    if row is None:
        return Find(cause="by_hand", node=node, name=path, instead="keras.ops, if it has it")
    why = _why_not(node, row, file)
    if why:
        instead = f"{row.keras.split('(')[0]}: {why}"
        return Find(cause="by_hand", node=node, name=path, instead=instead)
    instead = row.keras.replace("{", "").replace("}", "")
    return Find(cause="operation", node=node, name=path, instead=instead, is_safe=True, row=row)


def _why_not(node: ast.expr, row: Operation, file: File) -> str:
    """Say what keeps an operation from being written for Keras as it stands; empty: nothing."""
    if file.places.is_shared(node):
        return "the function also runs in a data set, where it must stay TensorFlow's"
    if not isinstance(node, ast.Call):
        plain = not row.is_expression and not row.adds
        return "" if plain else "call it in a function of your own"
    if row.keras == "keras.ops.top_k" and not _is_taken_apart(node, file):
        return "it gives a plain pair: values, indices = keras.ops.top_k(x, k)"
    if row.keras in _SHAPES and not is_size(node, file):
        return "it is a tuple of numbers; take single ones of it"
    if row.tensorflow in _TEMPLATE_ONLY and is_in_shape(node, file):
        return "a shape must be a tuple of numbers"
    try:
        call_patches(node, row, file.script)
    except CannotRewriteError as error:
        return str(error)
    return ""


def _is_taken_apart(node: ast.expr, file: File) -> bool:
    """Return whether both parts of a result are taken by their place."""
    parent = file.places.parents.get(node)
    if isinstance(parent, ast.Subscript):
        return True
    return isinstance(parent, ast.Assign) and all(
        isinstance(one, ast.Tuple) for one in parent.targets
    )


def _random(node: ast.expr, path: str, file: File, row: Operation | None) -> Find:
    """Return the find of an operation that draws numbers, which JAX does from a state."""
    instead = row.keras if row else path.removeprefix("tf.")
    is_safe = isinstance(node, ast.Call) and file.seeded_init(node) is not None
    if row and isinstance(node, ast.Call):
        try:
            call_patches(node, row, file.script)
        except CannotRewriteError:
            is_safe = False
    return Find(
        cause="random", node=node, name=path, is_safe=is_safe, row=row,
        instead=f"{instead}(..., seed=keras.random.SeedGenerator)",
    )  # fmt: skip


def _imports(file: File, is_own: Callable[[str], bool]) -> Iterator[Find]:
    for node in ast.walk(file.script.tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        for name in names:
            assert isinstance(node, ast.stmt)
            top = name.split(".")[0]
            known = packages().get(top)
            if known and known.cause:
                yield Find(cause=known.cause, node=node, name=top, instead=known.instead)
            elif not (known or top in sys.stdlib_module_names or is_own(name)):
                yield Find(cause="unread", node=node, name=name)


def _dynamic(file: File) -> Iterator[Find]:
    """Find imports and names that are only known when the script runs."""
    for node in ast.walk(file.script.tree):
        if not isinstance(node, ast.Call):
            continue
        site = file.places.calls.get(id(node))
        if isinstance(node.func, ast.Name) and node.func.id in _DYNAMIC and site is None:
            yield Find(cause="unread", node=node, name=f"{node.func.id}()")
        elif site and site.path == "importlib.import_module":
            yield Find(cause="unread", node=node, name=site.path)
        elif isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) > 1:
            root = file.places.root
            path = resolve(node.args[0], root).path if root else ""
            is_plain = isinstance(node.args[1], ast.Constant)
            if path.split(".")[0] in ("tf", "keras") and not path.endswith("()") and not is_plain:
                yield Find(cause="unread", node=node, name=f"getattr({path}, …)")
