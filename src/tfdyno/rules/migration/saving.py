"""Files that Keras 3 does not write, and formats on their way out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

from tfdyno.rules.migration.bindings import UNKNOWN, Scope, constant
from tfdyno.rules.migration.hits import Hit, applies, certainty, hit_at
from tfdyno.rules.migration.sites import Module, Site, ends, is_keras
from tfdyno.rules.migration.strategy import KERAS_3, is_model, receiver

if TYPE_CHECKING:
    from collections.abc import Iterator

_HDF5 = (".h5", ".hdf5")
_Kind = Literal["model", "weights"]


def find(module: Module) -> Iterator[Hit]:
    """Find every place where a model or its weights are saved under a name that does not fit."""
    if not applies(KERAS_3, module.values) or not module.imports("keras", "tf", "keras_hub"):
        return
    for site in module.sites:
        if site.kind != "call":
            continue
        kind, given = _saved(site)
        if given is not None and not _is_old_format(site):
            yield from _judge(kind, tail(given, site.scope), site, module)


def _saved(site: Site) -> tuple[_Kind, ast.expr | None]:
    """Return what a call saves, and the argument that names the file; None: it saves nothing."""
    if ends(site.path, "save_weights") and (site.path == f"{UNKNOWN}.save_weights" or _own(site)):
        return "weights", site.argument("filepath", 0)
    if ends(site.path, "save") and _own(site):
        return "model", site.argument("filepath", 0)
    if is_keras(site.path) and ends(site.path, "models.save_model", "saving.save_model"):
        return "model", site.argument("filepath", 1)
    if is_keras(site.path) and ends(site.path, "callbacks.ModelCheckpoint"):
        only_weights = site.value("save_weights_only") is True
        return ("weights" if only_weights else "model"), site.argument("filepath", 0)
    return "model", None


def _own(site: Site) -> bool:
    return is_model(receiver(site).path)


def _is_old_format(site: Site) -> bool:
    """Return whether the call names a format, of which another rule speaks."""
    return site.argument("save_format") is not None


def _judge(kind: _Kind, end: str, site: Site, module: Module) -> Iterator[Hit]:
    if not end:
        return
    if kind == "weights":
        cause = "" if end.endswith((".weights.h5", ".weights.json")) else "weights_name"
    elif end.endswith(_HDF5):
        # ModelCheckpoint alone refuses the longer name.
        is_refused = end.endswith(".hdf5") and ends(site.path, "ModelCheckpoint")
        cause = "model_name" if is_refused else "h5_saving"
    else:
        cause = "" if end.endswith((".keras", ".zip")) or "://" in end else "model_name"
    if cause:
        yield hit_at(site, module, cause, certainty(KERAS_3, module.values), name=end)


def tail(node: ast.expr, scope: Scope, depth: int = 0) -> str:
    """Return the constant end of an expression that makes a file name; empty where it has none."""
    if depth > 20:
        return ""
    match node:
        case ast.JoinedStr(values=[*_, last]):
            return tail(last, scope, depth + 1)
        case ast.BinOp(op=ast.Add() | ast.Div(), right=right):
            return tail(right, scope, depth + 1)
        case ast.BinOp(op=ast.Mod(), left=left):
            return tail(left, scope, depth + 1)
        case ast.Call(func=ast.Attribute(attr="join" | "format"), args=[*_, last]):
            return tail(last, scope, depth + 1)
        case ast.Call(func=ast.Name(id="str" | "Path"), args=[*_, last]):
            return tail(last, scope, depth + 1)
        case _:
            given = constant(node, scope)
            return given if isinstance(given, str) else ""
