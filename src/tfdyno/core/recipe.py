"""Every setting of a training run that Keras and TensorFlow take by themselves."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tfdyno.core import settings
from tfdyno.core.errors import UsageError
from tfdyno.core.settings import one_of
from tfdyno.core.units import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Execution = Literal["auto", "xla", "graph"]
PRECISIONS = ("", *settings.PRECISIONS)
NOT_OF_KERAS = ("remat", "ema", "strategy", "devices", "memory_fraction", "input")
"""Settings that Keras' own ``fit`` has no switch for: they need a trainer."""
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a workload is trained; equal recipes are the same run. Defaults leave it as it is."""

    precision: str = ""
    """Keras dtype policy, or ``tf32``; empty: the script's own."""
    execution: Execution = "auto"
    """``auto``: what Keras chooses for ``jit_compile``."""
    batch_size: int = 0
    """Per replica; 0: the workload's own."""
    accumulation: int = 1
    """Batches per update of the weights."""
    clip_norm: float = 0.0
    """Limit of the global norm of the gradients; 0: the optimizer's own."""
    steps_per_execution: int = 1
    memory_growth: bool = False
    memory_limit_bytes: int = 0
    """Of each card, 0: all of it."""
    visible_devices: str = ""
    """Cards by number, ``0,1``; empty: all that there are."""
    threads_intra: int = 0
    """Threads of one operation; 0: TensorFlow's own choice."""
    threads_inter: int = 0
    """Operations at a time; 0: TensorFlow's own choice."""
    deterministic: bool = False
    seed: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no run can be.

        Raises:
            UsageError: A name is not known, or a number is out of its range.
        """
        if self.precision:
            one_of(self.precision, PRECISIONS[1:], "precision")
        one_of(self.execution, ("auto", "xla", "graph"), "execution")
        least = {"accumulation": 1, "steps_per_execution": 1}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            low = least.get(field.name, 0)
            if not math.isfinite(value) or value < low:
                remedy = f"give {low} or more"
                raise UsageError(f"{field.name} = {value} is not possible", remedy=remedy)

    @property
    def id(self) -> str:
        """Eight hexadecimal digits that change when any setting changes."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:8]


def diff(a: Recipe, b: Recipe) -> dict[str, tuple[object, object]]:
    """Settings in which two recipes differ, with both values."""
    pairs = {f.name: (getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(Recipe)}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def typed(texts: Iterable[str]) -> dict[str, str]:
    """Read ``key=value`` as typed, the last of a key counts; raises ``UsageError``."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(f"the setting '{text}' cannot be read", remedy="write key=value")
        found[name.strip()] = value.strip()
    return found


def from_settings(given: Mapping[str, object], base: Recipe | None = None) -> Recipe:
    """``base``, or the recipe that changes nothing, with the settings that are given.

    Args:
        given: Names of ``Recipe`` with values as typed on a command line, or as TOML has them.
        base: What all others are taken from.

    Raises:
        UsageError: A name is not known (tells the nearest) or needs more than Keras' ``fit``, or
            a value is not possible.
    """
    fields = {field.name: str(field.type) for field in dataclasses.fields(Recipe)}
    for name in given:
        if name.partition(".")[0] in NOT_OF_KERAS:
            why = "it is not a setting of Keras' own fit, which is what is measured here"
            raise UsageError(f"{name} cannot be set", why=why, remedy="leave it out")
        one_of(name, fields, "setting")
    read = {name: _read(name, value, fields[name]) for name, value in given.items()}
    return dataclasses.replace(base or Recipe(), **read)  # type: ignore[arg-type]


def _read(name: str, value: object, kind: str) -> str | bool | int | float | None:
    """A value in the type of its field."""
    text = str(value).strip()
    if kind == "bool":
        if text.lower() in _BOOLEANS:
            return _BOOLEANS[text.lower()]
        raise UsageError(f"{name} = {value} is not possible", remedy="give true or false")
    if kind in {"str", "Execution"}:
        if isinstance(value, str) or name == "visible_devices":
            return text
        raise UsageError(f"{name} = {value} is not a name", remedy='put it in quotes: "..."')
    if isinstance(value, bool):
        raise UsageError(f"{name} = {text.lower()} is not a number")
    if kind == "int | None" and text.lower() == "none":
        return None
    found = parse_bytes(text) if name == "memory_limit_bytes" else settings.number(text, name)
    if kind == "float":
        return found
    if found != int(found):
        raise UsageError(f"{name} = {value} is not possible", remedy="give a whole number")
    return int(found)
