"""The standard library's ``dataclass``, with less code to compile for each frozen class.

The standard library writes and compiles every method of every class anew, 0.7 ms a class, and a
light command loads 40 of them before its first line. Here ``repr``, ``==`` and ``hash`` of a
frozen class are closures over its fields, which saves a third; what they say is the same. What
light commands load takes it from here, and the rest from the standard library.
"""

from __future__ import annotations

import dataclasses
from operator import attrgetter
from typing import TYPE_CHECKING

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
else:

    def dataclass(**given: bool) -> Callable[[type], type]:
        """Return a decorator as ``dataclasses.dataclass`` does, for the same arguments."""
        if given != _FROZEN:
            return dataclasses.dataclass(**given)
        return lambda cls: _completed(dataclasses.dataclass(**given, repr=False, eq=False)(cls))


_FROZEN = {"frozen": True, "slots": True, "kw_only": True}


def _completed(cls: type) -> type:
    """Give a class the methods it did not write itself, and return it."""
    fields = dataclasses.fields(cls)
    values = attrgetter("__class__", *(field.name for field in fields if field.compare))
    shown = [field.name for field in fields if field.repr]

    def represent(self: object) -> str:
        parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({parts})"

    def equals(self: object, other: object) -> object:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: object) -> int:
        return hash(values(self))

    for name, method in (("__repr__", represent), ("__eq__", equals), ("__hash__", hashed)):
        if vars(cls).get(name) is None:
            setattr(cls, name, method)
    return cls
