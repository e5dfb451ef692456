"""Mixed precision that goes wrong: a softmax in float16, a loss that is not scaled."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tfdyno.rules.migration.bindings import resolve
from tfdyno.rules.migration.hits import Hit, hit_at
from tfdyno.rules.migration.sequence import runs
from tfdyno.rules.migration.sites import Module, Site, ends, is_keras

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETTERS = ("set_global_policy", "set_dtype_policy", "set_policy")
_SCALES = ("scale_loss", "get_scaled_loss")
_APPLIES = ("apply_gradients", "apply")
_SOFTMAX = ("keras.activations.softmax", "keras.ops.softmax", "tf.nn.softmax")


def find(module: Module) -> Iterator[Hit]:
    """Find what is unsafe with half precision in this file."""
    for site in module.calls("set_floatx"):
        if is_keras(site.path) and site.value("floatx", 0) == "float16":
            yield hit_at(site, module, "floatx_float16")
    for order in runs(module):
        at = next((index for index, site in enumerate(order) if _is_policy(site)), len(order))
        for site in order[at:]:
            if site.kind == "call" and _is_float16_softmax(site):
                yield hit_at(site, module, "float16_softmax")
        if at < len(order):
            yield from _unscaled(module)


def _is_policy(site: Site) -> bool:
    return site.kind == "call" and ends(site.path, *_SETTERS) and _is_float16(site)


def _is_float16(site: Site) -> bool:
    given = site.argument("policy", 0)
    if isinstance(given, ast.Name):
        return site.scope.find(given.id).constant == "mixed_float16"
    inner = given.args[0] if isinstance(given, ast.Call) and given.args else given
    return (
        is_keras(site.path) and isinstance(inner, ast.Constant) and inner.value == "mixed_float16"
    )


def _is_float16_softmax(site: Site) -> bool:
    if not (is_keras(site.path) and ".layers." in site.path) or site.argument("dtype"):
        return False
    short = site.path.rpartition(".")[2]
    if short == "Softmax":
        return True
    position = {"Activation": 0, "Dense": 1}.get(short, -1)
    given = site.argument("activation", position)
    if given is None or short not in ("Activation", "Dense", "Conv1D", "Conv2D", "Conv3D"):
        return False
    found = resolve(given, site.scope)
    path = found.path
    return found.constant == "softmax" or path.removeprefix("tf.") in _SOFTMAX or path in _SOFTMAX


def _unscaled(module: Module) -> Iterator[Hit]:
    """Find an own loop that applies gradients of a loss that nobody scaled."""
    has_tape = any(True for _ in module.calls("GradientTape"))
    if not has_tape or any(ends(site.path, *_SCALES) for site in module.sites):
        return
    for site in module.calls(*_APPLIES):
        if _is_optimizer(site):
            yield hit_at(site, module, "loss_not_scaled")


def _is_optimizer(site: Site) -> bool:
    if ends(site.path, "apply_gradients"):
        return True
    return ".optimizers." in site.path or "LossScaleOptimizer()" in site.path
