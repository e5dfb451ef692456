"""A child process as its parent knows it: a module, what it is asked, what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

ERROR = "$error"
"""Key of what went wrong, in place of a result; no field has such a name."""
Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Child(Generic[Asked, Answer]):
    """The one declaration that both ends of a child process use."""

    module: str
    """Its ``__main__`` calls ``process.child.serve`` with this declaration."""
    request: type[Asked]
    result: type[Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """What a child is asked, or answers, that needs no words."""
