"""Real runs of a bench: in a child as users get it, or many that share one import of TensorFlow."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.runtime.forks import NO_GPU, forked, handled

from tfdyno.core.choose.workload import Mode
from tfdyno.core.measure.measurement import Protocol
from tfdyno.core.messages.bench import RUN, MeasuredRun, MeasureRun
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.child.recipe_env import recipe_environment
from tfdyno.jobs.child.worker import run_child
from tfdyno.jobs.choose.reference import parse_reference

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tfdyno.core.base.untyped import Value

MODEL = (
    "import keras, numpy as np, tensorflow as tf\n"
    "def model(**how):\n"
    "    m = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])\n"
    "    m.compile(how.pop('optimizer', 'sgd'), 'mse', **how)\n"
    "    return m\n"
    "x, y = np.ones((200, 8), 'float32'), np.ones((200, 4), 'float32')\n"
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """The code of a script and how it is measured."""

    code: str
    function: str = ""
    mode: Mode = "train"
    recipe: dict[str, Any] = field(default_factory=dict)
    protocol: dict[str, Any] = field(default_factory=dict)


def asked(
    folder: Path,
    code: str,
    *,
    function: str = "",
    recipe: Mapping[str, Any] | None = None,
    mode: Mode = "train",
) -> dict[str, Any]:
    """What is run, a script of this code that is put into the folder, and how."""
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(code)
    reference = f"{folder / 'train.py'}:{function}".rstrip(":")
    return {
        "workload": parse_reference(reference, mode=mode),
        "recipe": Recipe(**recipe or {}),
    }


def request_of(folder: Path, run: Run) -> MeasureRun:
    """What is asked of the child for a run in this folder."""
    protocol = {"least_samples": 10, "least_s": 0.0, "most_s": 3.0, **run.protocol}
    given = asked(folder, run.code, function=run.function, recipe=run.recipe, mode=run.mode)
    return MeasureRun(**given, protocol=Protocol(**protocol))


def measured(folder: Path, run: Run) -> MeasuredRun:
    """The result of one run in a child of its own; raises as ``run_child`` does."""
    return run_child(
        RUN,
        request_of(folder, run),
        timeout_s=200,
        env={**recipe_environment(Recipe(**run.recipe)), **NO_GPU},
        doing="measuring train.py",
        hide_gpu=False,
    )


def all_measured(folder: Path, runs: dict[str, Run]) -> dict[str, dict[str, Any]]:
    """The results by name; where a run is wrong use, its sentence under ``refused``."""
    return {
        name: handled(RUN, request_of(folder / name, run), folder / name)
        for name, run in runs.items()
    }


def in_tensorflow(code: str) -> Value:
    """What ``code`` leaves in ``result``, run where Keras has the TensorFlow backend."""
    ending = "\nimport json, sys\nsys.stdout.write('\\n' + json.dumps(result))\n"
    return json.loads(forked(code + ending).splitlines()[-1])
