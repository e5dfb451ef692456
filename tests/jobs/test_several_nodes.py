"""The example that trains one network on two nodes with tfdyno and without says what is true."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

EXAMPLE = Path(__file__).parents[2] / "examples/several_nodes"
ROW = re.compile(r"\| (.+?) \| (\d+) \| (\d+) \((\d+)-(\d+)\) \| ([\d.]+) \|")


@pytest.fixture(scope="module")
def compare() -> ModuleType:
    spec = importlib.util.spec_from_file_location("compare_nodes", EXAMPLE / "compare.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def rows() -> dict[str, tuple[float, ...]]:
    found = ROW.findall((EXAMPLE / "README.md").read_text())
    return {title: tuple(map(float, figures)) for title, *figures in found}


def test_the_table_has_the_lines_of_the_scripts(compare: ModuleType) -> None:
    ways = {way.title: way for way in compare.WAYS}
    assert rows()
    for title, (lines, *_) in rows().items():
        assert lines == compare.lines_of(EXAMPLE / ways[title].script), title


def test_the_users_script_is_a_fraction_of_what_is_written_by_hand(compare: ModuleType) -> None:
    assert 4 * compare.lines_of(EXAMPLE / "digits.py") < compare.lines_of(
        EXAMPLE / "bare_tf_config.py"
    )


def test_all_ways_of_the_table_learn_the_same() -> None:
    losses = [figures[-1] for figures in rows().values()]
    assert max(losses) - min(losses) < 0.1


@pytest.mark.slow
@pytest.mark.tf
def test_the_training_by_hand_learns_what_launch_does(compare: ModuleType, tmp_path: Path) -> None:
    losses = []
    for way in compare.WAYS:
        if not way.needs:
            (tmp_path / way.script).mkdir()
            losses.append(way.trained(tmp_path / way.script))
    # other first weights and another order of the samples
    assert max(losses) - min(losses) < 0.1
