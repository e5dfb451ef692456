"""Keras features that the backend at hand, or Horovod, does not carry."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tfdyno.rules.migration.bindings import resolve
from tfdyno.rules.migration.hits import Hit, applies, certainty, hit_at
from tfdyno.rules.migration.sites import Module, Site, ends, is_keras
from tfdyno.rules.migration.strategy import KERAS_3

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.doctor.finding import Verdict

_HOROVOD = ("horovod.tensorflow.keras.", "horovod.keras.", "horovod.tensorflow.")
_DISTRIBUTION = ("keras.distribution.set_distribution", "keras.distribution.initialize")
_LOUD = ("BroadcastGlobalVariablesCallback", "broadcast_variables")


def find(module: Module) -> Iterator[Hit]:
    """Find calls that do nothing or fail on the TensorFlow backend of Keras 3."""
    if not applies(KERAS_3, module.values):
        return
    backend = backends(module.sites) or module.values.get("keras_backend", "")
    is_open = not (backend or module.imports("jax", "torch") or _asks_backend(module))
    if is_open or "tensorflow" in backend:
        yield from _features(module, "proven" if backend == "tensorflow" else "likely")
    for site in module.calls("DistributedOptimizer"):
        if site.path.startswith(_HOROVOD) and _keras_optimizer(site, module):
            yield _hit("horovod_keras3", site, module, certainty(KERAS_3, module.values))
    for site in module.calls(*_LOUD):
        if site.path.startswith(_HOROVOD) and not _unwraps(site):
            yield _hit("horovod_keras3_variables", site, module, "likely")


def backends(sites: tuple[Site, ...]) -> str:
    """Name the Keras backends that a file names, with a bar between; or nothing."""
    named = {
        site.text for site in sites if site.kind == "environment" and site.path == "KERAS_BACKEND"
    }
    for site in sites:
        if site.kind == "call" and is_keras(site.path) and ends(site.path, "set_backend"):
            named.add(str(site.value("backend", 0)))
    return "|".join(sorted(named - {""}))


def _features(module: Module, verdict: Verdict) -> Iterator[Hit]:
    for site in module.sites:
        short = site.path.removeprefix("tf.")
        if site.kind != "call" or site.is_guarded:
            continue
        if short in _DISTRIBUTION or _is_scope(short):
            yield _hit("keras_distribution", site, module, verdict)
        elif short in ("keras.RematScope", "keras.remat.RematScope"):
            yield _hit("remat_scope", site, module, verdict)


def _is_scope(path: str) -> bool:
    """Return whether a call is ``scope()`` of a distribution."""
    return path.startswith("keras.distribution.") and path.endswith("().scope")


def _asks_backend(module: Module) -> bool:
    """Return whether the file asks Keras for its backend, and so has a way for each."""
    return any(is_keras(site.path) for site in module.calls("backend.backend", "config.backend"))


def _keras_optimizer(site: Site, module: Module) -> bool:
    """Return whether the wrapped optimizer is Keras's, as far as the file tells."""
    if site.path.startswith(("horovod.tensorflow.keras.", "horovod.keras.")):
        return True
    given = site.argument("optimizer", 0)
    path = resolve(given, site.scope).path if given else ""
    if path:
        return is_keras(path)
    return any(is_keras(other.path) and ".optimizers." in other.path for other in module.sites)


def _unwraps(site: Site) -> bool:
    """Return whether the call hands over ``variable.value``, which Horovod can take."""
    return any(getattr(node, "attr", "") == "value" for node in ast.walk(site.node))


def _hit(cause: str, site: Site, module: Module, verdict: Verdict) -> Hit:
    return hit_at(site, module, cause, verdict, name=site.path.removeprefix("tf."))
