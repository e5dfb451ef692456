"""Names and arguments that this TensorFlow or Keras lacks: one table each, looked up."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfdyno.rules.condition import holds
from tfdyno.rules.migration.bindings import UNKNOWN
from tfdyno.rules.migration.hits import GONE, Hit, applies, certainty, hit_at
from tfdyno.rules.migration.sites import Module, Site, is_keras
from tfdyno.rules.tables import read_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = ("name", "cause", "tensorflow", "keras", "instead", "source")
_WORDS = ("call", "keyword", "cause", "tensorflow", "keras", "instead", "source")
_METHODS_OF = ("keras", "tf.keras", "tf", "tf_keras", "tensorflow_addons", "keras_hub", "keras_nlp")
_LAST_KERAS_2 = {"keras": "2.21"}
"""``tf_keras`` goes on with the numbers of TensorFlow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of one of the tables."""

    cause: str
    when: dict[str, str]
    """Versions in which it is wrong."""
    instead: str


def find(module: Module) -> Iterator[Hit]:
    """Find every use of a name or argument that the tables know."""
    patched = {site.path for site in module.sites if site.kind == "set"}
    frameworks = module.imports(*_METHODS_OF)
    for site in module.sites:
        if site.kind in ("name", "import", "call") and not site.is_guarded:
            if site.path not in patched and (frameworks or not site.path.startswith(UNKNOWN)):
                yield from _name(site, module)
            if site.kind == "call" and frameworks:
                yield from _keywords(site, module)


def _name(site: Site, module: Module) -> Iterator[Hit]:
    holder, _, last = site.path.rpartition(".")
    if holder == UNKNOWN or (holder.endswith(")") and is_keras(holder)):
        entry = _table().get(f"{UNKNOWN}.{last}")
    else:
        entry = None if ")." in site.path else _lookup(site.path)
    if entry and applies(entry.when, module.values_at(site.path)):
        yield _hit(entry, site, module, last if holder.endswith((UNKNOWN, ")")) else site.path)


def _lookup(path: str) -> Entry | None:
    """Return a path's row, else that of the nearest package around it that ends with ``.*``."""
    table = _table()
    if path in table:
        return table[path]
    parts = path.split(".")
    around = (f"{'.'.join(parts[:end])}.*" for end in range(len(parts) - 1, 0, -1))
    return next((table[pattern] for pattern in around if pattern in table), None)


def _keywords(site: Site, module: Module) -> Iterator[Hit]:
    given = {word.arg for word in getattr(site.node, "keywords", ()) if word.arg}
    for (call, keyword), entry in _keyword_table().items():
        known = module.values_at(site.path)
        if keyword in given and _is_call(site.path, call) and applies(entry.when, known):
            yield _hit(entry, site, module, f"{keyword}=")


def _is_call(path: str, pattern: str) -> bool:
    if pattern.startswith(UNKNOWN):
        holder, _, method = path.rpartition(".")
        is_model = holder == UNKNOWN or holder == "" or (is_keras(holder) and holder.endswith(")"))
        return is_model and method == pattern[2:]
    if not is_keras(path):
        return False
    short = path.removeprefix("tf.")
    folder = pattern.removesuffix(".*")
    return short == pattern or (folder != pattern and short.rpartition(".")[0] == folder)


def _hit(entry: Entry, site: Site, module: Module, name: str) -> Hit:
    verdict = certainty(entry.when, module.values_at(site.path))
    hit = hit_at(site, module, entry.cause, verdict, name=name, instead=entry.instead)
    by = "tf.keras" if site.path.startswith("tf.") else "keras"
    return replace(hit, values={"keras_by": GONE if holds(entry.when, _LAST_KERAS_2) else by})


@functools.cache
def _table() -> dict[str, Entry]:
    return {row["name"]: _entry(row) for row in read_rows("code_names.csv", _NAMES)}


@functools.cache
def _keyword_table() -> dict[tuple[str, str], Entry]:
    rows = read_rows("code_keywords.csv", _WORDS)
    return {(row["call"], row["keyword"]): _entry(row) for row in rows}


def _entry(row: dict[str, str]) -> Entry:
    when = {name: row[name] for name in ("tensorflow", "keras") if row[name]}
    return Entry(cause=row["cause"], when=when, instead=row["instead"])
