"""The outputs of a joined call, of which each request sees its own rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tfdyno.serving.front.predict import listed
from tfdyno.serving.front.tensor import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.base.untyped import Value
    from tfdyno.serving.front.table import TensorSpec


@dataclass(slots=True, kw_only=True)
class Outputs:
    """What one call gave; turned into lists once for all requests that shared it."""

    arrays: dict[str, Array]
    _lists: dict[str, Any] = field(default_factory=dict)
    _finite: bool | None = None

    def lists(self, face: TensorSpec) -> Value:
        """Return the output as JSON has it."""
        if face.name not in self._lists:
            self._lists[face.name] = listed(self.arrays[face.name], face)
        return self._lists[face.name]

    def flat(self, face: TensorSpec) -> list[Any]:
        """Return all values in one list, row by row."""
        key = f"{face.name}\0flat"
        if key not in self._lists:
            self._lists[key] = listed(self.arrays[face.name].reshape(-1), face)
        flat: list[Any] = self._lists[key]
        return flat

    def finite(self) -> bool:
        """Return whether all floats are finite, so that plain JSON can say them."""
        if self._finite is None:
            floats = [array for array in self.arrays.values() if array.dtype.kind == "f"]
            self._finite = all(bool(np.isfinite(array).all()) for array in floats)
        return self._finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The rows of one request; ``rows`` None means all of the call."""

    outputs: Outputs
    start: int = 0
    rows: int | None = None

    def lists(self, face: TensorSpec) -> Value:
        """Return the output as nested lists for JSON."""
        values = self.outputs.lists(face)
        return values if self.rows is None else values[self.start : self.start + self.rows]

    def flat(self, face: TensorSpec) -> list[Any]:
        """Return the output's values in one list."""
        values = self.outputs.flat(face)
        if self.rows is None:
            return values
        each = len(values) // len(self.outputs.arrays[face.name])
        return values[self.start * each : (self.start + self.rows) * each]

    def array(self, name: str) -> Array:
        """Return the output as an array."""
        array = self.outputs.arrays[name]
        return array if self.rows is None else array[self.start : self.start + self.rows]


def put_together(pieces: Sequence[Answer]) -> Answer:
    """Return one answer from those to the pieces of a large request."""
    names = pieces[0].outputs.arrays
    joined = {name: np.concatenate([piece.array(name) for piece in pieces]) for name in names}
    return Answer(outputs=Outputs(arrays=joined))
