"""Where a call stands in a script tells whether it comes again."""

from __future__ import annotations

import runpy
from typing import TYPE_CHECKING

import pytest

from tfdyno.runtime.diagnose.look.calls_again import calls_again

if TYPE_CHECKING:
    from pathlib import Path

AGAIN = {
    "a loop": "for width in range(3):\n    fit()\n",
    "a loop over a function": "def train():\n    fit()\nwhile True:\n    train()\n",
    "a comprehension": "scores = [fit() for _ in range(3)]\n",
    "a second call below": "fit()\nprint('one')\nfit()\n",
    "a method below": "class Model:\n    def fit(self):\n        fit()\n"
    "Model().fit()\nModel().fit()\n",
    "a function called twice": "def train():\n    fit()\ntrain()\ntrain()\n",
    "a loop of a library": "import timeit\ntimeit.repeat(fit, number=1, repeat=3)\n",
}
ONCE = {
    "one call": "x = [1 for _ in range(3)]\nfit()\nfor row in x:\n    print(row)\n",
    "a function": "def main():\n    for _ in range(3):\n        pass\n    fit()\nmain()\n",
    "a loop around the definition": "for _ in range(1):\n    def train():\n        fit()\n"
    "train()\n",
    "the second of two": "if False:\n    fit()\nfit()\n",
}  # fmt: skip


def _told(folder: Path, code: str) -> bool:
    told: list[bool] = []

    def fit() -> None:
        told.append(calls_again("fit"))
        raise KeyboardInterrupt

    (folder / "search.py").write_text(code)
    with pytest.raises(KeyboardInterrupt):
        runpy.run_path(str(folder / "search.py"), init_globals={"fit": fit})
    return told[0]


@pytest.mark.parametrize("name", AGAIN)
def test_a_call_that_comes_again_is_seen(name: str, tmp_path: Path) -> None:
    assert _told(tmp_path, AGAIN[name])


@pytest.mark.parametrize("name", ONCE)
def test_a_call_that_comes_once_is_seen(name: str, tmp_path: Path) -> None:
    assert not _told(tmp_path, ONCE[name])
