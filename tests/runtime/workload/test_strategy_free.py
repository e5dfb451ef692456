"""A distribution strategy is noticed without loading TensorFlow, and its scope does nothing."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

from tfdyno.runtime.workload import strategy_free as strategy

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
class StrategyBase:
    def scope(self):
        raise AssertionError("would make distributed variables")

class MirroredStrategy(StrategyBase):
    pass
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that stands where a user's code would import TensorFlow's own."""
    (tmp_path / "made_distribute.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(strategy, "STRATEGIES", "made_distribute")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.delitem(sys.modules, "made_distribute", raising=False)
    return "made_distribute"


@pytest.mark.parametrize("loaded_before", [True, False])
def test_a_scope_leaves_its_name_and_does_nothing_else(loaded_before: bool, library: str) -> None:
    if loaded_before:
        importlib.import_module(library)
    entered = strategy.note_strategies()
    assert (library in sys.modules) is loaded_before
    mirrored = importlib.import_module(library).MirroredStrategy()
    with mirrored.scope() as inside:
        assert inside is mirrored
    assert entered == ["MirroredStrategy"]


def test_the_watch_for_the_import_ends_with_it(library: str) -> None:
    before = list(sys.meta_path)
    strategy.note_strategies()
    assert len(sys.meta_path) == len(before) + 1
    importlib.import_module(library)
    assert sys.meta_path == before


def test_other_imports_are_left_alone(library: str) -> None:
    strategy.note_strategies()
    assert importlib.import_module("json").dumps([]) == "[]"
    assert library not in sys.modules


def test_the_note_is_a_sentence() -> None:
    assert strategy.strategy_note("MirroredStrategy") == (
        "tf.distribute.MirroredStrategy: Keras does not compile with XLA under it."
    )
