"""What fails, or does nothing, under a strategy of ``tf.distribute``."""

from __future__ import annotations

import ast
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.rules.migration.bindings import LOCAL, UNKNOWN, Binding, resolve
from tfdyno.rules.migration.hits import Hit, applies, certainty, hit_at
from tfdyno.rules.migration.sequence import runs
from tfdyno.rules.migration.sites import Module, Site, ends, is_keras

if TYPE_CHECKING:
    from collections.abc import Iterator

KERAS_3 = {"keras": ">=3"}
_SCOPE = "().scope()"
_MIRRORED = "MirroredStrategy"
_FIT_FAILS = {
    "MultiWorkerMirroredStrategy": "multiworker_fit",
    "ParameterServerStrategy": "parameter_server_fit",
    "ParameterServerStrategyV2": "parameter_server_fit",
}
_COMPILE = {"jit_compile": "strategy_jit_compile", "steps_per_execution": "strategy_steps"}
_OPTIMIZER = {
    "gradient_accumulation_steps": "strategy_accumulation",
    "ema_overwrite_frequency": "strategy_ema_overwrite",
}
_OUTSIDE = "model_outside_scope"
_MODELS = ("Model()", "Sequential()", "load_model()", "clone_model()", "model_from_json()")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scopes:
    """Which strategies the file has, and around what."""

    made: frozenset[str]
    around: dict[str, tuple[str, ...]]
    """Function to the ``with`` blocks around the calls of it."""


def find(module: Module) -> Iterator[Hit]:
    """Find options and calls that fail under the strategy that surrounds them."""
    scopes = _scopes(module)
    if not scopes.made:
        return
    if applies(KERAS_3, module.values):
        yield from _options(module, scopes)
        yield from _fits(module, scopes)
    yield from _models_outside(module, scopes)
    if _MIRRORED in scopes.made:
        yield from _shards(module)


def is_model(path: str) -> bool:
    """Return whether a path is a Keras model that was made in this file."""
    return is_keras(path) and (path.endswith(_MODELS) or ".applications." in path)


def receiver(site: Site) -> Binding:
    """Return what the method of a call is called on."""
    function = getattr(site.node, "func", None)
    return resolve(function.value, site.scope) if isinstance(function, ast.Attribute) else Binding()


def _scopes(module: Module) -> _Scopes:
    made = {
        site.path.rpartition(".")[2]
        for site in module.sites
        if site.kind == "call" and site.path.startswith("tf.") and site.path.endswith(
            ("Strategy", "StrategyV2")
        )
    }  # fmt: skip
    around: dict[str, tuple[str, ...]] = {}
    for _ in range(3):
        for site in module.sites:
            if site.kind == "call" and site.path.startswith(LOCAL):
                name = site.path.removeprefix(LOCAL)
                outer = around.get(site.function, ())
                around[name] = tuple({*around.get(name, ()), *site.withs, *outer})
    return _Scopes(made=frozenset(made), around=around)


def _around(site: Site, scopes: _Scopes) -> set[str]:
    """Return names of the strategies in whose scope a call stands, or its receiver was made."""
    withs = {*site.withs, *receiver(site).withs, *scopes.around.get(site.function, ())}
    return {path.removesuffix(_SCOPE).rpartition(".")[2] for path in withs if path.endswith(_SCOPE)}


def _is_in_scope(withs: tuple[str, ...]) -> bool:
    return any(path.endswith("scope()") for path in withs)


def _is_method(site: Site, *names: str) -> bool:
    return site.kind == "call" and (
        site.path in {f"{UNKNOWN}.{name}" for name in names}
        or (is_keras(site.path) and ")." in site.path and ends(site.path, *names))
    )


def _options(module: Module, scopes: _Scopes) -> Iterator[Hit]:
    under = [
        site
        for site in module.sites
        if _is_method(site, "compile", "fit") and _MIRRORED in _around(site, scopes)
    ]
    for site in module.sites:
        if not under or site.kind != "call":
            continue
        if _is_method(site, "compile") and site in under:
            yield from _given(site, _COMPILE, module)
        elif is_keras(site.path) and ".optimizers." in site.path:
            yield from _given(site, _OPTIMIZER, module)


def _given(site: Site, options: dict[str, str], module: Module) -> Iterator[Hit]:
    for option, cause in options.items():
        given = site.value(option)
        if given is True or (isinstance(given, int) and given > 1):
            yield _hit(cause, site, module, f"{option}={given}")


def _fits(module: Module, scopes: _Scopes) -> Iterator[Hit]:
    for site in module.sites:
        if _is_method(site, "fit"):
            for name in sorted(_around(site, scopes) & _FIT_FAILS.keys()):
                yield _hit(_FIT_FAILS[name], site, module, name)


def _models_outside(module: Module, scopes: _Scopes) -> Iterator[Hit]:
    """Find models that ``fit`` trains and that do not know of the strategy."""
    for order in runs(module):
        made = next((site for site in order if _makes(site)), None)
        if made is None or _may_be_skipped(made, module):
            continue
        for site in order[order.index(made) :]:
            model = receiver(site)
            around_both = (*model.withs, *scopes.around.get(site.function, ()))
            if not (_is_method(site, "fit") and is_model(model.path)) or _is_in_scope(around_both):
                continue
            name = made.path.rpartition(".")[2]
            if _is_in_scope(site.withs):
                hit = _hit(_OUTSIDE, site, module, name)
                yield dataclasses.replace(hit, values={"inside": "fit"})
            else:
                yield _hit(_OUTSIDE, site, module, name, measured=False)


def _makes(site: Site) -> bool:
    is_call = site.kind == "call" and site.path.startswith("tf.distribute.")
    return is_call and site.path.endswith(_MIRRORED) and not _is_one_device(site)


def _is_one_device(site: Site) -> bool:
    """Return whether the strategy is given a list of a single device, as tests do."""
    given = site.argument("devices", 0)
    return isinstance(given, ast.List | ast.Tuple) and len(given.elts) == 1


def _may_be_skipped(made: Site, module: Module) -> bool:
    """Return whether the strategy is made only on some paths through the file."""
    return any(not module.text(line).startswith("if __name__") for line, _ in made.branches)


def _shards(module: Module) -> Iterator[Hit]:
    for site in module.calls("shard"):
        if site.path.startswith("tf.data.") and ")." in site.path:
            yield _hit("manual_shard", site, module, _MIRRORED, measured=False)


def _hit(cause: str, site: Site, module: Module, name: str, *, measured: bool = True) -> Hit:
    """Return a find; ``measured`` where it was seen to fail with Keras 3."""
    verdict = certainty(KERAS_3, module.values) if measured else "likely"
    return hit_at(site, module, cause, verdict, name=name)
