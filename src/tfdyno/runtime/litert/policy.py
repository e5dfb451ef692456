"""A model of mixed precision as one of float32, for as long as it is converted.

LiteRT has no convolution over half floats; a device that computes in them does so by itself. The
weights of such models are float32 already, so that only the arithmetic between them changes.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Model


@contextlib.contextmanager
def in_float32(model: Model) -> Iterator[bool]:
    """Compute in float32 within the block; tells whether that changed anything."""
    import keras

    layers = model._flatten_layers(include_self=True, recursive=True)
    mixed = [
        (layer, layer.dtype_policy)
        for layer in layers
        if getattr(layer, "compute_dtype", "float32") in {"float16", "bfloat16"}
    ]
    try:
        for layer, _ in mixed:
            layer.dtype_policy = keras.DTypePolicy("float32")
        yield bool(mixed)
    finally:
        for layer, policy in mixed:
            layer.dtype_policy = policy
