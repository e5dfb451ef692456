"""Notice that the user's code trains under ``tf.distribute``, and build its model for one device.

What is traced is the step of one replica. A model that is built inside a strategy's scope has
distributed variables, which can only be used there; here a scope does nothing but leave its name.
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import sys
from typing import TYPE_CHECKING, Any

from tfdyno.runtime.base.replaced import to_the_end
from tfdyno.runtime.base.tensorflow_internals import STRATEGIES, scope_changed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from tfdyno.core.base.untyped import Instance


def note_strategies() -> list[str]:
    """Replace ``scope`` of every strategy; returns the list that collects the strategies' names.

    TensorFlow is not imported for it: where the user's code does so later, it is noticed then.
    """
    entered: list[str] = []
    if STRATEGIES in sys.modules:
        _replace(sys.modules[STRATEGIES], entered)
    else:
        sys.meta_path.insert(0, _OnImport(entered))
    return entered


def strategy_note(name: str) -> str:
    """Return what the strategy means for the step, as a sentence."""
    return f"tf.distribute.{name}: Keras does not compile with XLA under it."


class _OnImport(importlib.abc.MetaPathFinder):
    """Waits for the import of the library of strategies, then replaces ``scope`` there."""

    def __init__(self, entered: list[str]) -> None:
        self.entered = entered

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != STRATEGIES:
            return None
        sys.meta_path.remove(self)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            run = spec.loader.exec_module

            def run_and_replace(module: ModuleType) -> None:
                run(module)
                _replace(module, self.entered)

            spec.loader.exec_module = run_and_replace  # type: ignore[method-assign]
        return spec


def _replace(library: ModuleType, entered: list[str]) -> None:
    @contextlib.contextmanager
    def scope(self: Instance) -> Iterator[Any]:
        entered.append(type(self).__name__)
        yield self

    to_the_end(scope_changed(library, scope))
