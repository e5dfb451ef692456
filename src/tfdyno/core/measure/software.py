"""What a child process says of what it runs on."""

from __future__ import annotations

from typing import Literal, TypedDict

DeviceKind = Literal["cpu", "gpu"]
Backend = Literal["tensorflow", "jax"]
"""Of Keras."""


class Software(TypedDict, total=False):
    """What a child says of its own: versions, and what it computes on."""

    tensorflow: str
    keras: str
    jax: str
    python: str
    cuda: str
    cudnn: str
    device: DeviceKind
    devices: list[str]
    """Names of the GPUs; where there is none, of the processor."""
