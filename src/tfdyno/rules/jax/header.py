"""The imports of a script that moves: Keras by itself, and its backend set before it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tfdyno.rules.migration.bindings import resolve
from tfdyno.rules.rewrite.source_text import ALIAS, TENSORFLOW, Patch, SourceText, name_of, patched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.rules.jax.finds import File
    from tfdyno.rules.rewrite.draft import Draft
    from tfdyno.rules.rewrite.script import Script

KERAS = "keras"
SETTING = "KERAS_BACKEND"
_OF_TENSORFLOW = f"{TENSORFLOW}.{KERAS}"
_LEFT = ("backend", "preprocessing", "estimator", "wrappers", "experimental", "utils")
"""Modules of ``tf.keras`` that Keras has not, or not with all of their names."""
_LEFT_NAMES = frozenset(
    "mae mse mape msle kld logcosh MAE MSE MAPE MSLE KLD kullback_leibler_divergence Reduction "
    "ThresholdedReLU RandomHeight RandomWidth AlphaDropout".split()
)
"""Names of other modules of ``tf.keras`` that Keras has not."""


class Names:
    """What the new script calls Keras."""

    def __init__(self, script: Script) -> None:
        """Read the imports."""
        self.own = name_of(script.tree, KERAS) or _from_tensorflow(script.tree)
        words = script.words()
        self.keras = self.own or (KERAS if KERAS not in words else f"{KERAS}_3")
        self.tensorflow = name_of(script.tree, TENSORFLOW, ALIAS)


def _from_tensorflow(tree: ast.Module) -> str:
    """Read ``from tensorflow import keras`` and ``import tensorflow.keras as keras``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == TENSORFLOW:
            for one in node.names:
                if one.name == KERAS:
                    return one.asname or one.name
        elif isinstance(node, ast.Import):
            for one in node.names:
                if one.name == _OF_TENSORFLOW and one.asname:
                    return one.asname
    return ""


def write(draft: Draft, names: Names, file: File) -> None:
    """Write Keras' own imports, ``keras`` for ``tf.keras``, and the backend before them.

    Args:
        draft: Takes the changes.
        names: What the script calls Keras.
        file: The script.
    """
    script = file.script
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            _import(draft, node)
    is_used = _tf_keras(draft, names, file)
    is_used = is_used or any(f"{names.keras}." in patch.text for patch in draft.patches)
    first = _first_import(script.tree)
    if first is None:
        return
    lines = []
    asks = any(one.kind == "environment" and one.path == SETTING for one in script.sites)
    if not asks:
        has_os = any(
            isinstance(one, ast.Import) and any(name.name == "os" for name in one.names)
            for one in script.tree.body[: script.tree.body.index(first)]
        )
        lines += [] if has_os else ["import os", ""]
        lines += [f'os.environ["{SETTING}"] = "jax"', ""]
        draft.change(first, SETTING, "Keras reads it once, when it is imported")
    if is_used and not names.own:
        as_own = f" as {names.keras}" if names.keras != KERAS else ""
        lines.append(f"import {KERAS}{as_own}")
    if lines:
        end = "\r\n" if "\r\n" in script.source else "\n"
        decorators = getattr(first, "decorator_list", None) or [first]
        at = script.text.at(min(one.lineno for one in decorators), 0)
        text = "".join(f"{one}{end}" for one in lines)
        draft.patches.append(Patch(start=at, end=at, text=text))


def _import(draft: Draft, node: ast.Import | ast.ImportFrom) -> None:
    script = draft.script
    start, end = script.span(node)
    code = script.source[start:end].split("\n")[0]
    text = ""
    if isinstance(node, ast.Import):
        match node.names:
            case [ast.alias(name=name, asname=str(alias))] if name == _OF_TENSORFLOW:
                text = "import keras" if alias == KERAS else f"import keras as {alias}"
    elif node.level == 0 and node.module == TENSORFLOW:
        text = _from_root(node)
    elif node.level == 0 and (node.module or "").startswith(_OF_TENSORFLOW):
        module = (node.module or "").removeprefix(f"{TENSORFLOW}.")
        names = {one.name for one in node.names}
        parts = module.split(".")[1:]
        is_left = any(one in _LEFT for one in (*parts[:1], *(names if not parts else ())))
        if not is_left and not names & _LEFT_NAMES:
            module_at = script.source.index(TENSORFLOW, start)
            draft.patches.append(
                Patch(start=module_at, end=module_at + len(TENSORFLOW) + 1, text="")
            )
            draft.change(node, node.module or "", "Keras by itself: tf.keras is the same")
        return
    if text:
        draft.patches.append(Patch(start=start, end=end, text=text))
        draft.change(node, code, "Keras by itself: tf.keras is the same")


def _from_root(node: ast.ImportFrom) -> str:
    """Write ``from tensorflow import keras, data`` as two imports."""
    own = next((one for one in node.names if one.name == KERAS), None)
    if own is None:
        return ""
    others = [one for one in node.names if one is not own]
    text = f"import keras as {own.asname}" if own.asname not in (None, KERAS) else "import keras"
    if not others:
        return text
    if node.col_offset:
        return ""  # on a line of its own only at the margin
    words = ", ".join(f"{one.name} as {one.asname}" if one.asname else one.name for one in others)
    return f"{text}\nfrom {TENSORFLOW} import {words}"


def _tf_keras(draft: Draft, names: Names, file: File) -> bool:
    """Write ``keras`` for every ``tf.keras`` that Keras has by itself."""
    places, found = file.places, False
    root = places.root
    for node in ast.walk(file.script.tree) if root else ():
        if not isinstance(node, ast.Attribute) or node.attr != KERAS or root is None:
            continue
        if not isinstance(node.value, ast.Name) or resolve(node, root).path != "tf.keras":
            continue
        if _is_left(node, file) or draft.is_gone(node):
            continue
        span = file.script.span(node)
        if any(p.start <= span[0] and span[1] <= p.end for p in draft.patches if p.start < p.end):
            continue  # the whole name is written anew
        draft.replace(node, names.keras)
        draft.change(node, "tf.keras", "Keras by itself: tf.keras is the same")
        found = True
    return found


def _is_left(node: ast.Attribute, file: File) -> bool:
    outer = file.places.parents.get(node)
    words = []
    while isinstance(outer, ast.Attribute):
        words.append(outer.attr)
        outer = file.places.parents.get(outer)
    return not words or words[0] in _LEFT or bool(_LEFT_NAMES.intersection(words))


def _first_import(tree: ast.Module) -> ast.stmt | None:
    """Return the first import of TensorFlow or Keras, or of a package that may import them."""
    inner = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    found = [node for node in tree.body if any(_imports_it(one) for one in ast.walk(node))]
    return next((one for one in found if not isinstance(one, inner)), next(iter(found), None))


def _imports_it(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        names = [one.name for one in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [node.module or ""]
    else:
        return False
    roots = (KERAS, TENSORFLOW, "tf_keras", "keras_hub", "keras_nlp", "keras_tuner")
    return any(name.startswith(roots) for name in names)


def without_tensorflow(source: str, names: Names) -> str:
    """Take ``import tensorflow as tf`` out where nothing is left of it."""
    try:
        tree, text = ast.parse(source), SourceText(source)
    except SyntaxError:
        return source
    uses = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}
    return patched(source, _unused(tree, text, uses, names.tensorflow))


def _unused(tree: ast.Module, text: SourceText, uses: set[str], name: str) -> Iterator[Patch]:
    if name in uses:
        return
    for node in tree.body:
        match node:
            case ast.Import(names=[ast.alias(name=module)]) if module == TENSORFLOW:
                line = text.line(node.lineno).strip()
                if "#" not in line and ";" not in line:
                    yield Patch(
                        start=text.at(node.lineno, 0), end=text.at(node.lineno + 1, 0), text=""
                    )
