"""Devices in rows with names: along which of them a batch is split, and along which a weight."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError

DATA, MODEL = "data", "model"
DATA_NAMES = (DATA, "batch")
"""Names of the axis along which the samples of a batch are split."""
_AXIS = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\d{1,6})\s*")
Axes = tuple[str, ...]
"""The axis that splits each dimension of a tensor; empty: that dimension is whole everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMesh:
    """How many devices lie along each axis; the last axis counts fastest."""

    names: tuple[str, ...] = (DATA,)
    sizes: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        """Refuse a mesh that cannot be; raises ``UsageError``."""
        if len(self.names) != len(self.sizes) or not self.names:
            raise UsageError("a mesh needs a size for each of its axes")
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise UsageError(f"the axis {twice[0]} of the mesh is there twice")
        if min(self.sizes) < 1:
            raise UsageError(f"the mesh {self} is not possible", remedy="give 1 or more each")

    def __str__(self) -> str:
        """Write it as typed: ``data=2,model=4``."""
        return ",".join(f"{n}={s}" for n, s in zip(self.names, self.sizes, strict=True))

    @property
    def count(self) -> int:
        """Devices in it."""
        return math.prod(self.sizes)

    @property
    def data_name(self) -> str:
        """The axis along which a batch is split."""
        return next(name for name in (*self.names, DATA) if name in DATA_NAMES)

    @property
    def replica_count(self) -> int:
        """Into how many parts a batch is split: copies of the model that train together."""
        return self.size(self.data_name) if self.data_name in self.names else 1

    @property
    def model_names(self) -> tuple[str, ...]:
        """Axes along which weights may be split without a copy of the batch's part on each."""
        return tuple(name for name in self.names if name != self.data_name)

    def size(self, name: str) -> int:
        """Return devices along an axis."""
        return self.sizes[self.names.index(name)]


def read_mesh(text: str) -> DeviceMesh:
    """Return a mesh as typed: ``data=2,model=4``.

    Raises:
        UsageError: It cannot be read.
    """
    found = [_AXIS.fullmatch(part) for part in text.split(",")]
    if not all(found):
        remedy = "write each axis with its size, as data=2,model=4"
        raise UsageError(f"--mesh {text} cannot be read", remedy=remedy)
    pairs = [(part[1], int(part[2])) for part in found if part]
    return DeviceMesh(names=tuple(n for n, _ in pairs), sizes=tuple(s for _, s in pairs))


def filled(mesh: DeviceMesh | None, devices: int) -> DeviceMesh:
    """Return the mesh over all devices: without an axis for the data one is put in front.

    Args:
        mesh: That is asked for; None: all devices split the batch.
        devices: Of all processes.

    Raises:
        UsageError: It has more or fewer places than there are devices.
    """
    if mesh is None:
        return DeviceMesh(names=(DATA,), sizes=(devices,))
    has_data = any(name in DATA_NAMES for name in mesh.names)
    if not has_data and devices % mesh.count == 0:
        size = devices // mesh.count
        return DeviceMesh(names=(DATA, *mesh.names), sizes=(size, *mesh.sizes))
    if mesh.count != devices:
        raise UsageError(
            f"the mesh {mesh} does not fit",
            why=f"it has {mesh.count} places, and all processes together have {devices} "
            f"device{'s' * (devices != 1)}",
            remedy="let the product of its sizes be the number of devices",
        )
    return mesh


def check_axes(axes: Axes, names: tuple[str, ...], where: str) -> None:
    """Refuse axes that the mesh has not, or one that splits two dimensions.

    Args:
        axes: Of one rule.
        names: Of the mesh.
        where: The rule, for the message.

    Raises:
        UsageError: Tells the nearest name.
    """
    used = [name for name in axes if name]
    for name in used:
        settings.one_of(name, names, f"axis of {where}")
    twice = [name for name in used if used.count(name) > 1]
    if twice:
        what = f"{where} splits two dimensions along {twice[0]}"
        raise UsageError(what, remedy="use each axis of the mesh once")
