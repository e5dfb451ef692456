"""Looks at small trainings with planted truths, each in a fork that has TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.runtime.benches import MODEL, asked
from tests.runtime.forks import handled

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.measure.step_facts import StepFacts
from tfdyno.core.messages.diagnose import LOOK, Limits, LookAtSteps

if TYPE_CHECKING:
    from pathlib import Path

SHORT: dict[str, Any] = {
    "own_s": 0.5, "most_s": 3.0, "warm_s": 0.2, "most_warm_s": 1.0, "held_s": 0.2,
    "alone_s": 0.6, "stages_s": 0.5,
}  # fmt: skip
START = MODEL.replace("import keras", "import time, keras")
WAITS = START + (
    "def waits(a, b):\n"
    "    def wait(v):\n"
    "        time.sleep(0.01)\n"
    "        return v\n"
    "    a = tf.numpy_function(wait, [a], tf.float32)\n"
    "    a.set_shape([None, 8])\n"
    "    return a, b\n"
    "data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(100).batch(20)\n"
    "data = data.map(waits)\n"
)
"""Line 15 makes ``data``, whose every batch takes 10 ms."""
STEP = (
    "m, rate = model(), keras.optimizers.SGD()\n"
    "@tf.function\n"
    "def step(a, b):\n"
    "    with tf.GradientTape() as tape:\n"
    "        loss = tf.reduce_mean((m(a) - b) ** 2)\n"
    "    gradients = tape.gradient(loss, m.trainable_variables)\n"
    "    rate.apply_gradients(zip(gradients, m.trainable_variables))\n"
    "    return loss\n"
)


@dataclass(frozen=True, kw_only=True)
class Training:
    """The code of a script and how it is looked at."""

    code: str
    function: str = ""
    recipe: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)


def looked(folder: Path, training: Training) -> dict[str, Any]:
    """What a look answers; where it is wrong use, its sentence under ``refused``."""
    given = asked(folder, training.code, function=training.function, recipe=training.recipe)
    limits = Limits(**{**SHORT, **training.limits})
    found = handled(LOOK, LookAtSteps(**given, limits=limits), folder)
    return {name: value for name, value in found.items() if value not in (None, "")}


class Looks(dict[str, dict[str, Any]]):
    """The answers by name; each training is looked at when a test first asks for it."""

    def __init__(self, folder: Path, trainings: dict[str, Training]) -> None:
        """Nothing is looked at yet."""
        super().__init__()
        self._folder, self._trainings = folder, trainings

    def __missing__(self, name: str) -> dict[str, Any]:
        """Look at one."""
        self[name] = looked(self._folder / name, self._trainings[name])
        return self[name]


def facts_of(answer: dict[str, Any]) -> StepFacts:
    """What was seen, as the noun."""
    assert "facts" in answer, answer
    return from_builtins(answer["facts"], StepFacts)


def middle(values: tuple[float, ...]) -> float:
    """The median."""
    return sorted(values)[len(values) // 2]
