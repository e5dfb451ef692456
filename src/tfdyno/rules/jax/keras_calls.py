"""Calls of Keras that its JAX backend cannot carry out where they stand."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tfdyno.rules.jax.finds import Find
from tfdyno.rules.jax.places import IN_DATA, arguments, is_data_chain, parts_of
from tfdyno.rules.jax.tables import name_of, operations
from tfdyno.rules.migration.bindings import resolve
from tfdyno.rules.migration.order import TRUE
from tfdyno.rules.migration.sites import is_keras

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.jax.finds import File
    from tfdyno.rules.migration.sites import Site

_LOOKUPS = frozenset("TextVectorization StringLookup IntegerLookup Hashing HashedCrossing".split())
"""Layers that work by tables and words of TensorFlow: in the data set, never in the step."""
_INPUTS = ("keras.Input", "keras.layers.Input", "keras.layers.InputLayer")
_TEXT = "keras.layers.TextVectorization"
_SEQUENTIAL = ("keras.Sequential", "keras.models.Sequential")
_PADDED = ("padded_batch",)


def find(file: File) -> Iterator[Find]:
    """Find layers and functions at places where JAX has no way for them."""
    for site in file.places.calls.values():
        if site.is_guarded:
            continue
        short = site.path.removeprefix("tf.")
        last = site.path.rpartition(".")[2]
        if is_keras(site.path):
            yield from _keras(site, short, file)
        elif last in IN_DATA and is_data_chain(site):
            yield from _handed(site, file)
        elif last in _PADDED and not isinstance(_shapes(site), ast.Tuple | ast.List):
            assert isinstance(site.node, ast.Call)
            yield Find(cause="new_shapes", node=site.node, name=f".{last}()",
                       instead="padded_shapes that are fixed")  # fmt: skip
    yield from _settings(file)


def _shapes(site: Site) -> ast.expr | None:
    return site.argument("padded_shapes", 1)


def _keras(site: Site, short: str, file: File) -> Iterator[Find]:
    node = site.node
    assert isinstance(node, ast.Call)
    if file.places.of(node) == "data":
        yield from _in_data(node, short, file)
        return
    layer = short.removesuffix("()").rpartition(".")[2]
    if short.endswith("()") and layer in _LOOKUPS and _is_symbolic(node, site, file):
        yield Find(cause="strings", node=node, name=layer, instead=f"dataset.map({layer})")
    elif short == _TEXT:
        yield from _standardize(node, site)
    elif short in _INPUTS:
        yield from _input(node, site)
    elif short in _SEQUENTIAL and node.args:
        for part in parts_of(node.args[0]):
            name = resolve(part, site.scope).path.removesuffix("()").rpartition(".")[2]
            if name in _LOOKUPS:
                yield Find(cause="strings", node=part, name=name, instead=f"dataset.map({name})")
    elif short.endswith(").add") and node.args:
        name = resolve(node.args[0], site.scope).path.removesuffix("()").rpartition(".")[2]
        if name in _LOOKUPS:
            yield Find(cause="strings", node=node, name=name, instead=f"dataset.map({name})")


def _standardize(node: ast.Call, site: Site) -> Iterator[Find]:
    given = site.argument("standardize", 1)
    if given is not None and not isinstance(given, ast.Constant):
        text = resolve(given, site.scope).constant
        if not isinstance(text, str):
            yield Find(cause="standardize", node=node, name="TextVectorization(standardize=…)",
                       instead="standardize=None and the function before the layer")  # fmt: skip


def _input(node: ast.Call, site: Site) -> Iterator[Find]:
    for name, value in arguments(node):
        text = site.value(name) if name else None
        path = resolve(value, site.scope).path
        if name == "dtype" and (text == "string" or path == "tf.string"):
            yield Find(cause="strings", node=node, name="dtype=string",
                       instead="keras.Input of numbers; the words in the data set")  # fmt: skip
        if name == "ragged" and text is True:
            yield Find(cause="by_hand", node=node, name="ragged=True",
                       instead="padded arrays with a mask")  # fmt: skip


def _is_symbolic(node: ast.Call, site: Site, file: File) -> bool:
    """Return whether a layer is called in a model, not on numbers that are there."""
    if file.places.of(node) == "step":
        return True
    if not node.args:
        return False
    paths = [resolve(part, site.scope).path for part in parts_of(node.args[0])]
    return any(is_keras(path) and path.endswith("()") for path in paths)


def _in_data(node: ast.Call, short: str, file: File) -> Iterator[Find]:
    parts = short.removesuffix("()").split(".")
    if ")" in short.removesuffix("()"):
        return  # a method of something of Keras
    if not short.endswith("()") and parts[-1][:1].isupper():
        return  # made there, and not called
    yield from _row(node, short, file)


def _row(node: ast.expr, short: str, file: File) -> Iterator[Find]:
    if short.startswith("keras.backend."):
        return  # operations of TensorFlow, or words
    known = name_of(short, "data")
    if known and known.cause:
        instead = known.instead
        if short.startswith("keras.ops."):
            instead = _reverse().get(short, instead)
        yield Find(
            cause=known.cause, node=node, name=short.removesuffix("()"), instead=instead,
            is_safe="Sequential" in short and pipeline(node, file) is not None,
        )  # fmt: skip


def pipeline(node: ast.expr, file: File) -> ast.Call | None:
    """Return the Sequential behind a use in a data set, where it can be a Pipeline of layers.

    That is where all its layers prepare data, and nothing else uses its name.
    """
    named = node.func if isinstance(node, ast.Call) else node
    made = file.script.assigned(named.id) if isinstance(named, ast.Name) else []
    if len(made) != 1 or not isinstance(made[0].value, ast.Call) or file.places.root is None:
        return None
    match made[0].value:
        case ast.Call(args=[ast.List(elts=layers)], keywords=[]) as call:
            paths = [resolve(one, file.places.root).path.removeprefix("tf.") for one in layers]
            known = [name_of(path, "data") for path in paths]
            is_plain = all(one is not None and not one.cause for one in known)
            assert isinstance(named, ast.Name)
            is_only = all(_is_of_data(one, file) for one in file.script.loads(named.id))
            return call if is_plain and is_only else None
        case _:
            return None


def _is_of_data(load: ast.Name, file: File) -> bool:
    parent = file.places.parents.get(load)
    is_handed = isinstance(parent, ast.Call) and getattr(parent.func, "attr", "") in IN_DATA
    return is_handed or file.places.of(load) == "data"


def _handed(site: Site, file: File) -> Iterator[Find]:
    """Look at what is handed to ``map`` by its name: a layer or a function of Keras."""
    assert isinstance(site.node, ast.Call)
    for _, value in arguments(site.node):
        for part in parts_of(value):
            path = resolve(part, site.scope).path
            if is_keras(path) and not isinstance(part, ast.Call):
                yield from _row(part, path.removeprefix("tf."), file)


def _reverse() -> dict[str, str]:
    return {row.keras: name for name, row in operations().items() if "backend" not in name}


def _settings(file: File) -> Iterator[Find]:
    """Find the backend, or Keras 2, asked for by an environment variable."""
    for site in file.script.sites:
        if site.kind != "environment" or not isinstance(site.node, ast.expr):
            continue
        if site.path == "KERAS_BACKEND" and site.text in ("tensorflow", "torch"):
            yield Find(cause="backend_set", node=site.node, name=f"KERAS_BACKEND={site.text}",
                       instead="KERAS_BACKEND=jax", is_safe=True)  # fmt: skip
        elif site.path == "TF_USE_LEGACY_KERAS" and (site.text or "1") in TRUE:
            yield Find(cause="keras2", node=site.node, name=site.path, instead="Keras 3")
