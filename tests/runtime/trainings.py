"""Real trainings, each in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.runtime.forks import handled

from tfdyno.core.messages.train import TRAIN, Train
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import RunSettings
from tfdyno.jobs.choose.reference import parse_reference

if TYPE_CHECKING:
    from pathlib import Path

AROUND = ("refused", "exit_code", "said", "printed")
MODEL = (
    "import sys, keras, numpy as np, tensorflow as tf\n"
    "x = np.random.default_rng(0).normal(size=(64, 8)).astype('float32')\n"
    "y = x.sum(1, keepdims=True)\n"
    "def model(**how):\n"
    "    m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, name='head')])\n"
    "    m.compile(keras.optimizers.SGD(how.pop('rate', 0.01)), 'mse', **how)\n"
    "    return m\n"
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """The code of a workload and how it is trained; runs of one folder follow one another."""

    code: str = ""
    function: str = ""
    reference: str = ""
    folder: str = ""
    """Empty: the run's own name."""
    words: tuple[str, ...] = ()
    recipe: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    data: str = ""


def _trained(folder: Path, run: Run) -> dict[str, Any]:
    """Of a child whose working folder is ``folder``."""
    folder.mkdir(exist_ok=True)
    if run.code:
        (folder / "train.py").write_text(run.code)
    reference = run.reference or f"{folder / 'train.py'}:{run.function}".rstrip(":")
    workload = parse_reference(reference, script_arguments=run.words)
    request = Train(
        workload=workload,
        recipe=Recipe(**run.recipe),
        settings=RunSettings(**run.settings),
        data=run.data,
    )
    found = handled(TRAIN, request, folder)
    outcome = {name: found.pop(name) for name in list(found) if name not in AROUND}
    return {**found, "outcome": outcome} if outcome else found


def all_trained(folder: Path, runs: dict[str, Run]) -> dict[str, dict[str, Any]]:
    """The results by name, with what the code printed; a refusal stands under ``refused``."""
    return {name: _trained(folder / (run.folder or name), run) for name, run in runs.items()}
