"""Which backend a script sets for Keras, by its source."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.rules.migration.sites import Site, ends, is_keras
from tfdyno.rules.migration.walk import sites

if TYPE_CHECKING:
    from collections.abc import Iterator

VARIABLE = "KERAS_BACKEND"
_KERAS = ("keras", "tf.keras", "keras_hub", "keras_cv", "keras_nlp")
"""Packages whose import loads Keras, after which the variable has no effect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendSet:
    """What a script sets."""

    name: str
    """``jax``; empty where it is no constant."""
    line: int
    is_sure: bool = True
    """Whether it does so in every run: not under an ``if``, and by a constant."""
    is_default: bool = False
    """Whether it only does so where the environment names none (``setdefault``)."""


def backend_set_in(source: str) -> BackendSet | None:
    """Return the backend that counts of those that a script sets; None: it sets none in time.

    Args:
        source: The text of the script.
    """
    if VARIABLE not in source and "set_backend" not in source:
        return None
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None  # running it will tell
    return next(reversed(list(_settings(sites(tree)))), None)


def _settings(found: tuple[Site, ...]) -> Iterator[BackendSet]:
    """Yield what is set, in the order of the file; the last one counts."""
    is_loaded = False
    for site in found:
        is_loaded = is_loaded or site.imports(*_KERAS)
        if site.kind == "environment" and site.path == VARIABLE and not is_loaded:
            call = site.node.func if isinstance(site.node, ast.Call) else None
            is_default = isinstance(call, ast.Attribute) and call.attr == "setdefault"
            yield _set(site, site.text, is_default=is_default)
        elif site.kind == "call" and is_keras(site.path) and ends(site.path, "set_backend"):
            yield _set(site, str(site.value("backend", 0) or ""))


def _set(site: Site, name: str, *, is_default: bool = False) -> BackendSet:
    is_sure = bool(name) and not (site.branches or site.function)
    return BackendSet(name=name, line=site.line, is_sure=is_sure, is_default=is_default)
