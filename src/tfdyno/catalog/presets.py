"""Models of keras-hub by the names of their presets: what their backbones are built with.

The configurations are data, so that a model of any size is built without its weights and without
a network. ``scripts/presets`` proves each: the backbone is built, and has exactly as many
parameters as keras-hub says.
"""

from __future__ import annotations

import difflib
from functools import lru_cache
from typing import TYPE_CHECKING

from tfdyno.catalog.tables import DATA
from tfdyno.core.base.codec import from_builtins, read_toml
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import HUB_PREFIX

if TYPE_CHECKING:
    from typing import Any

    from tfdyno.core.base.untyped import Value

NONE = "none"
"""What stands for Python's None in the file: TOML has no such value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A model of keras-hub and how its backbone is built."""

    name: str
    """The name that ``from_preset`` takes: ``gpt2_base_en``."""
    family: str
    """The folder of ``keras_hub/src/models`` that it comes from: ``gpt2``."""
    backbone: str
    """A class of ``keras_hub.models``: ``GPT2Backbone``."""
    config: dict[str, object]
    """The keyword arguments of the backbone, for its ``from_config``, which changes what it is
    given: give it a deep copy. Layers inside it are in Keras' own form,
    ``{"class_name": "keras_hub>ViTDetBackbone", "config": {...}}``."""
    parameter_count: int
    """Parameters of the backbone, as keras-hub tells and as counted when it was built."""
    sequence_length: int
    """The most tokens that the model was made for; 0: it reads no text."""
    source: str
    """Where the configuration is from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """Presets that differ in nothing but their weights."""

    presets: tuple[str, ...]
    backbone: str
    config: dict[str, object]
    parameter_count: int
    sequence_length: int
    source: str


@lru_cache(maxsize=1)
def presets() -> dict[str, Preset]:
    """Name to preset, sorted; raises ``UsageError`` when the file is damaged."""
    families = _file()["family"]
    found = (
        preset
        for family, rows in families.items()
        for row in rows
        for preset in _presets_of(family, row)
    )
    return {preset.name: preset for preset in sorted(found, key=lambda one: one.name)}


def find_preset(name: str) -> Preset:
    """Return the preset with this name, with or without ``keras_hub:``.

    Raises:
        UsageError: keras-hub has it but its configuration is not known here, or there is none:
            the nearest name is told, or the families.
    """
    known, plain = presets(), name.removeprefix(HUB_PREFIX)
    if plain in known:
        return known[plain]
    reason = left_out().get(plain)
    if reason:
        what = f"tfdyno cannot build the keras-hub preset {plain!r}"
        raise UsageError(what, why=reason, remedy=f"{once_loaded(plain)}, or name a script")
    near = difflib.get_close_matches(plain.lower(), known, n=1, cutoff=0.4)
    families = dict.fromkeys(preset.family for preset in known.values())
    remedy = f"did you mean {HUB_PREFIX}{near[0]}?" if near else f"families: {', '.join(families)}"
    raise UsageError(f"there is no keras-hub preset {plain!r}", remedy=remedy)


def once_loaded(name: str) -> str:
    """Return what brings the configuration of a preset to this machine, without its weights."""
    return f"run keras_hub.models.Backbone.from_preset({name!r}, load_weights=False) once"


def left_out() -> dict[str, str]:
    """Presets of keras-hub that are not here, and why, sorted."""
    return {name: reason for reason, names in _file()["left_out"].items() for name in names}


@lru_cache(maxsize=1)
def _file() -> dict[str, Any]:
    return read_toml(DATA / "presets.toml")


def _presets_of(family: str, row: dict[str, object]) -> list[Preset]:
    size = from_builtins(row, _Size, where=f"{DATA / 'presets.toml'} [{family}]")
    config = with_none(size.config)
    return [
        Preset(
            name=name,
            family=family,
            backbone=size.backbone,
            config=config,
            parameter_count=size.parameter_count,
            sequence_length=size.sequence_length,
            source=size.source,
        )
        for name in size.presets
    ]


def with_none(value: Value) -> Value:
    """Return a copy of what the file holds with None where it says "none"."""
    if isinstance(value, dict):
        return {key: with_none(one) for key, one in value.items()}
    if isinstance(value, list):
        return [with_none(one) for one in value]
    return None if value == NONE else value
