"""One unmodified script on real data under five recipes: all learn the same."""

from __future__ import annotations

import importlib.util
import re
import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.runtime.forks import NO_GPU

from tfdyno.core.recipe.recipe_file import read_recipe

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value

EXAMPLE = Path(__file__).parents[3] / "examples/train_recipes"
IN_CI = "accumulation_ema"
"""The one that Keras does another way; `test_composition` has replicas and XLA."""
CLOSE, GOOD = 0.02, 0.9
"""Of the accuracy: apart at most, and at least."""

pytestmark = pytest.mark.tf


def example() -> Value:
    spec = importlib.util.spec_from_file_location("compare", EXAMPLE / "compare.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NO_GPU.items():
        monkeypatch.setenv(name, value)


@cache
def trained(name: str) -> dict[str, float]:
    found: dict[str, float] = example().trained(name)
    return found


def published() -> dict[str, float]:
    """The accuracies of the README."""
    text = (EXAMPLE / "README.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| [\d.]+ \| ([\d.]+) %", text, re.M)
    return {name: float(accuracy) / 100 for name, accuracy in rows}


def test_a_recipe_learns_what_the_readme_says_of_all() -> None:
    found = trained(IN_CI)
    assert found["updates"] == 450
    assert [one for one in published().values() if abs(one - found["accuracy"]) > CLOSE] == []


@pytest.mark.slow
def test_five_recipes_learn_the_same() -> None:
    found = {name: trained(name) for name in example().RECIPES}
    accuracies = [one["accuracy"] for one in found.values()]
    assert min(accuracies) >= GOOD, found
    assert max(accuracies) - min(accuracies) <= CLOSE, found
    assert len({one["updates"] for one in found.values()}) == 1, found
    plain = trained("float32")
    assert trained("accumulation_ema")["steps"] == 4 * plain["steps"]
    # Two replicas do what one does: but for rounding these are the same numbers.
    assert trained("multiworker")["loss"] == pytest.approx(plain["loss"], abs=0.03)


def test_the_script_knows_nothing_of_tfdyno() -> None:
    text = (EXAMPLE / "digits.py").read_text()
    assert "import tfdyno" not in text
    assert "strategy" not in text
    assert "precision" not in text


def test_the_readme_trains_under_each_recipe_and_shows_what_came_out() -> None:
    text = (EXAMPLE / "README.md").read_text()
    commands = [shlex.split(line) for line in text.splitlines() if line.startswith("tfdyno ")]
    recipes = example().RECIPES
    assert [words[-1] for words in commands] == [f"recipes/{name}.toml" for name in recipes]
    assert {path.stem for path in (EXAMPLE / "recipes").iterdir()} == set(recipes)
    assert all(read_recipe(EXAMPLE / words[-1]) for words in commands)
    assert list(published()) == list(recipes)
    assert min(published().values()) >= GOOD
    assert max(published().values()) - min(published().values()) <= CLOSE
