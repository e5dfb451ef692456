"""The configurations as they are written by hand in ``*.toml`` of this folder, not yet proven.

A table is a family, named as its folder in ``keras_hub/src/models``; each of its ``sizes`` is one
model under the names of all presets that differ in their weights only. What sizes have in common
stands in the family, as ``backbone``, ``source``, ``sequence_length`` and parts of ``config``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tfdyno.core.base.codec import from_builtins, read_toml
from tfdyno.core.base.errors import UsageError

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one model is said to be built with."""

    family: str
    presets: tuple[str, ...]
    backbone: str
    config: dict[str, object]
    sequence_length: int
    source: str
    task: str = ""
    """The class whose parameters keras-hub counts; empty: the backbone."""
    task_config: dict[str, object] = field(default_factory=dict)
    trainable_only: bool = False
    """Whether keras-hub leaves moving averages out of its count."""

    @property
    def counted(self) -> str:
        """Say what keras-hub counts; empty for all parameters of the backbone."""
        given = ", ".join(f"{key} = {value}" for key, value in self.task_config.items())
        what = f"{self.task or self.backbone}({given})" if self.task else ""
        if self.trainable_only:
            what = f"what can be trained of {what or self.backbone}"
        return what


def read_claims(folder: Path = FOLDER) -> list[Claim]:
    """Read all tables, sorted by family and then by name.

    Raises:
        UsageError: A table is damaged, or a preset is named twice.
    """
    claims, seen = [], set[str]()
    for path in sorted(folder.glob("*.toml")):
        for family, table in read_toml(path).items():
            sizes = table.pop("sizes")
            for size in sizes:
                row = {"family": family, **merged(table, size)}
                claim = from_builtins(row, Claim, where=f"{path.name} [{family}]")
                twice = seen & set(claim.presets)
                if twice:
                    raise UsageError(f"{path.name} [{family}] names {min(twice)} a second time")
                seen.update(claim.presets)
                claims.append(claim)
    return sorted(claims, key=lambda claim: (claim.family, claim.presets))


def merged(common: dict[str, object], own: dict[str, object]) -> dict[str, object]:
    """Return a table with the entries of both; those of ``own`` stand, tables are merged too."""
    result = {**common, **own}
    for key, value in common.items():
        other = own.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            result[key] = merged(value, other)
    return result
