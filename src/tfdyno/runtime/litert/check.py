"""Operations of a model that LiteRT does not take: looked up, or as its converter names them."""

from __future__ import annotations

import csv
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.runtime.litert.names import layer_of
from tfdyno.runtime.litert.signature import signature_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tfdyno.core.base.untyped import Model

_TABLE = Path(__file__).parents[1] / "tables" / "litert_operations.csv"
_REFUSED = re.compile(r'fused\["(?P<kind>\w+):", "(?P<path>[^"@]*)[^"]*"\].*?: (?:error: )?\'tf\.(?P<operation>\w+)\' op (?P<why>[^\n]*)')  # fmt: skip  # noqa: E501
_LISTED = re.compile(r"^(?P<kind>TF Select|Custom) ops: (?P<names>.+)$", re.MULTILINE)
_FLEX = "is neither a custom op nor a flex op"
_ADVICE = (
    "build it from simpler operations, or compute it before or after the model, "
    "outside of what is exported"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An operation that keeps a model from being converted."""

    operation: str
    """The operation as TensorFlow calls it."""
    layer: str
    """The layer of Keras; empty: not known."""
    why: str
    remedy: str


def traced_operations(model: Model) -> dict[str, str]:
    """Return each kind of operation that the model is made of, with the path of the first."""
    import keras
    import tensorflow as tf

    specs = keras.tree.map_structure(
        lambda one: tf.TensorSpec(one.shape, one.dtype, name=one.name), signature_of(model)
    )
    traced = tf.function(model.__call__).get_concrete_function(*specs)
    graph = traced.graph.as_graph_def()
    found: dict[str, str] = {}
    for node in (*graph.node, *(node for part in graph.library.function for node in part.node_def)):
        found.setdefault(node.op, node.name)
    return found


def unknown_operations(operations: Collection[str]) -> list[str]:
    """Return those that are not known to convert."""
    known = {row["operation"] for row in _rows() if row["taken"] == "yes"}
    return sorted(set(operations) - known)


def refused(message: str, layers: Collection[str]) -> list[Refusal]:
    """Read what a converter's message says that it does not take, each layer's operation once."""
    found: dict[tuple[str, str], Refusal] = {}
    for operation, path, why in _named(message):
        layer = layer_of(path, layers)
        found.setdefault((operation, layer), _refusal(operation, layer, why))
    for match in _LISTED.finditer(message):
        for operation in re.split(r",\s*", match["names"].strip()):
            if not any(known == operation for known, _ in found):
                found[operation, ""] = _refusal(operation, "", _FLEX)
    return list(found.values())


def _named(message: str) -> Iterator[tuple[str, str, str]]:
    for match in _REFUSED.finditer(message):
        yield match["operation"], match["path"], match["why"]


def _refusal(operation: str, layer: str, said: str) -> Refusal:
    why = (
        "it exists only in TensorFlow itself, which a phone or a board does not carry"
        if _FLEX in said
        else said.strip()
    )
    remedies = {row["operation"]: row["remedy"] for row in _rows()}
    return Refusal(
        operation=operation, layer=layer, why=why, remedy=remedies.get(operation) or _ADVICE
    )


@functools.lru_cache(maxsize=1)
def _rows() -> tuple[dict[str, str], ...]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))
