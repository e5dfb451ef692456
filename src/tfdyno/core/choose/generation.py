"""Generations of the software that runs a step: what a user installs decides how fast it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Framework = Literal["tensorflow", "jax"]
NAMES: dict[Framework, str] = {"tensorflow": "TensorFlow", "jax": "JAX"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Releases that run a step alike: their launches, fusions and library kernels."""

    name: str
    """About which year its newest release is of: ``2026``."""
    tensorflow: str
    """First release of TensorFlow, major.minor."""
    jax: str
    """First release of JAX."""
    tensorflow_measured: tuple[str, str]
    """Oldest and newest TensorFlow that measured steps are of; empty texts: none."""
    summary: str
    """What sets it apart, in a few words."""
    kernel_executions: tuple[str, ...]
    """Executions that are priced kernel by kernel (``model.time.kernel_law``)."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    """The release that an answer is for."""

    framework: Framework
    version: str
    """major.minor, or more parts; empty where it is not known."""
    generation: str
    chosen: Literal["asked", "installed", "newest"]
    """Why this one: it was asked for, is installed where the code runs, or is the newest known."""
    note: str = ""
    """One sentence where no measured step is of this release."""

    @property
    def name(self) -> str:
        """As people write it: ``TensorFlow 2.21``."""
        return f"{NAMES[self.framework]} {self.version}".strip()


def release_of(version: str) -> tuple[int, ...]:
    """Read ``2.21.0`` as ``(2, 21, 0)``, to compare; raises ``ValueError``."""
    numbers = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    if not numbers:
        raise ValueError(f"'{version}' is not a release")
    return tuple(numbers)
