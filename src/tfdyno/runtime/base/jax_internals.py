"""The private names of JAX that tfdyno uses; a test holds each against what is installed."""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING

from tfdyno.runtime.base.replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Iterator

_CUDNN = "jax._src.cudnn.fused_attention_stablehlo"
_VERSION = 91000
"""Of cuDNN, as it tells it: 9.10, from which on it lacks nothing that is asked for."""


@contextlib.contextmanager
def cudnn_checks(capability: float) -> Iterator[None]:
    """Let JAX find cuDNN and a card of this compute capability where it asks for its attention.

    Raises:
        ImportError: This JAX asks in another way.
        AttributeError: The same.
    """
    checks = importlib.import_module(_CUDNN)

    def at_least(asked: str) -> bool:
        return capability >= float(asked)

    with replaced(
        (checks, "check_cudnn_version", lambda: _VERSION),
        (checks, "check_compute_capability", at_least),
        (checks, "is_cuda_compute_capability_equal", lambda asked: capability == float(asked)),
    ):
        yield
