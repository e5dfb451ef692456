"""What a preprocessing layer is, and what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.runtime.base.keras_internals import PREPROCESSING_LAYERS

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Layer

_TABLES = {"IndexLookup", "TextVectorization"}
_HASHES = {"Hashing", "HashedCrossing"}


def preprocesses(layer: Layer) -> bool:
    """Return whether it is one of Keras' preprocessing layers, or a class made from one."""
    return any(each.__module__.startswith(PREPROCESSING_LAYERS) for each in type(layer).__mro__)


def is_random(layer: Layer) -> bool:
    """Return whether it draws random numbers, as ``RandomFlip``: the seed moves with each step."""
    generator = getattr(layer, "generator", None)
    return bool(getattr(layer, "_seed_generators", ())) or generator is not None


def why_cpu(layer: Layer) -> str:
    """Return why the layer can run on the CPU only; empty where it could run on a card."""
    names = {each.__name__ for each in type(layer).__mro__}
    if names & _TABLES:
        return "its table is on the CPU"
    if names & _HASHES:
        return "it hashes text on the CPU"
    return "it reads text" if _reads_text(layer) else ""


def _reads_text(layer: Layer) -> bool:
    nodes = getattr(layer, "_inbound_nodes", ())
    return any(tensor.dtype == "string" for node in nodes for tensor in node.input_tensors)
