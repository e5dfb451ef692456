"""Fit after fit of a script: what stays is told, and what is not looked at is said."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.looks import START, Looks, Training, facts_of

from tfdyno.runtime.diagnose.look.fits import calls_again

pytestmark = pytest.mark.tf
LEAK = {"memory_alone": True, "until_sure": True, "own_s": 0.3, "most_s": 1.0, "least_steps": 30}
LOOP = (
    "for width in range(40):\n"
    "    m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])\n"
    "    m.compile('adam', 'mse')\n"
    "    h = m.fit(x, y, batch_size=20, epochs=2, verbose=0)\n"
)
RUNS = {
    "new": Training(code=START + LOOP + "    m.save('best.keras')\n"
                    "    keras.backend.clear_session()\n", limits=LEAK),
    "kept": Training(code=START + "all_of_them = []\n" + LOOP + "    all_of_them.append(h)\n",
                     limits=LEAK),
    "same": Training(code=START + "m = model()\nfor _ in range(40):\n"
                     "    m.fit(x, y, batch_size=20, verbose=0)\n", limits=LEAK),
    "two": Training(code=START + "model().fit(x, y, batch_size=20)\n"
                    "model().fit(x, y, batch_size=20, epochs=100_000_000)\n", limits=LEAK),
    "one": Training(code=START + "model().fit(x, y, batch_size=20)\nopen('after', 'w')\n",
                    limits=LEAK),
    "steps": Training(code=START + LOOP, limits={"own_s": 0.3, "most_s": 1.0}),
}  # fmt: skip
MIB = 2**20


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return Looks(tmp_path_factory.mktemp("fits"), RUNS)


def test_a_new_model_for_each_fit_leaves_megabytes_behind(found: dict[str, Any]) -> None:
    fits = facts_of(found["new"]).fits
    assert fits
    assert fits.is_told
    assert 0.5 * MIB < fits.low_bytes_per_fit <= fits.bytes_per_fit < 40 * MIB
    assert fits.place == f"train.py:{START.count(chr(10)) + 4}"
    assert fits.fits == len(fits.begin_bytes) >= 9


def test_cleared_models_do_not_become_more_and_kept_ones_do(found: dict[str, Any]) -> None:
    cleared, kept = (facts_of(found[name]).fits for name in ("new", "kept"))
    assert cleared
    assert kept
    assert cleared.models[-1] == cleared.models[1]
    # one and its functional part in each fit
    assert kept.models[-1] - kept.models[0] == 2 * (len(kept.models) - 1)


def test_the_same_model_again_and_again_leaves_next_to_nothing(found: dict[str, Any]) -> None:
    fits = facts_of(found["same"]).fits
    assert fits
    assert fits.is_told
    assert fits.bytes_per_fit < 0.25 * MIB


def test_a_later_fit_is_cut_and_too_few_are_said_to_be_too_few(found: dict[str, Any]) -> None:
    facts = facts_of(found["two"])
    assert facts.fits
    assert (facts.fits.fits, facts.fits.is_told) == (2, False)
    assert any("only 2 ran: too few to tell" in note for note in facts.notes)


def test_a_script_with_one_fit_ends_with_it_and_that_is_said(found: dict[str, Any]) -> None:
    facts = facts_of(found["one"])
    assert facts.fits is None
    assert any(note.startswith("One call of fit was looked at") for note in facts.notes)


def test_other_looks_end_with_the_first_fit(found: dict[str, Any]) -> None:
    assert facts_of(found["steps"]).fits is None


def test_what_the_script_saves_is_not_saved(found: dict[str, Any]) -> None:
    assert found["new"]
    assert not list(Path.cwd().glob("best.keras"))


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
