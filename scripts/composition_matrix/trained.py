"""A cell trained: by tfdyno's trainer, or by plain Keras with the same settings."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from composition_matrix import subject
from composition_matrix.cells import EMA_OVERWRITE, Cell, recipe_of
from composition_matrix.reference import expected
from tfdyno.core.train.training import RunSettings, TrainOutcome
from tfdyno.runtime.recipe.apply import apply_recipe
from tfdyno.runtime.recipe.strategy import is_chief
from tfdyno.runtime.train.loop import train
from tfdyno.runtime.train.watch import TrainPlan, Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Model, Strategy

TOLERANCES = {"float32": 1e-4, "mixed_bfloat16": 4e-3, "mixed_float16": 1e-3}
"""How far a weight, or the mean loss of an epoch, may be from the reference: XLA leaves roundings
to 16 bits out that TensorFlow does. Training moves the weights by about 0.2."""
MOVING_TIMES = 4
"""How much farther a moving average may be. Seen with mixed_bfloat16 and XLA on a CPU without
AVX-512: 0.011, where the weights stayed within their tolerance; not looked into further."""
REPLICAS = {"single": 1, "mirrored": 2, "multiworker": 2}
"""With parameter servers the order of the updates is chance: there is no reference."""


class Wrong(Exception):  # noqa: N818  (it is what the cell is)
    """A cell trained, but not as its settings say."""


def by_tfdyno(cell: Cell, strategy: Strategy) -> dict[str, Any]:
    """Train a cell and check what came out.

    Returns:
        What was measured.

    Raises:
        Wrong: It trained something else.
    """
    recipe = recipe_of(cell)
    apply_recipe(recipe)
    subject.begin(cell.precision)
    with strategy.scope() if strategy else contextlib.nullcontext():
        model = subject.network()
        model.compile(subject.optimizer(), subject.loss())
        x, y = subject.data()
        arguments = {"x": x, "y": y, "batch_size": subject.BATCH, "epochs": subject.EPOCHS,
                     "shuffle": False}  # fmt: skip
        plan = TrainPlan(
            recipe=recipe, settings=RunSettings(), watch=Watch(_nobody), progress=_nobody,
        )  # fmt: skip
        outcome = train(model, arguments, plan)
    _check_outcome(cell, outcome)
    return _checked_numbers(cell, model, outcome.history["loss"])


def by_keras(cell: Cell, strategy: Strategy) -> dict[str, Any]:
    """Give the same settings to Keras' own ``compile`` and ``fit``.

    Raises:
        Wrong: It trained something else.
        Exception: Whatever Keras raises.
    """
    subject.begin(cell.precision)
    options: dict[str, Any] = {}
    if cell.accumulation > 1:
        options["gradient_accumulation_steps"] = cell.accumulation
    if cell.ema:
        options |= {"use_ema": True, "ema_momentum": cell.ema,
                    "ema_overwrite_frequency": EMA_OVERWRITE}  # fmt: skip
    with contextlib.ExitStack() as stack:
        if strategy:
            stack.enter_context(strategy.scope())
        if cell.remat:
            stack.enter_context(keras.RematScope(mode="full"))
        model = subject.network()
        model.compile(
            subject.optimizer(**options), subject.loss(), jit_compile=cell.execution == "xla",
            steps_per_execution=cell.steps_per_execution,
        )  # fmt: skip
        x, y = subject.data()
        history = model.fit(
            x, y, batch_size=subject.BATCH, epochs=subject.EPOCHS, shuffle=False, verbose=0
        ).history
    return _checked_numbers(cell, model, history["loss"])


def _checked_numbers(cell: Cell, model: Model, losses: list[float]) -> dict[str, Any]:
    if not all(map(math.isfinite, losses)):
        raise Wrong(f"the loss is not finite: {losses}")
    if losses[-1] >= losses[0]:
        raise Wrong(f"the loss does not fall: {losses[0]:.4f} to {losses[-1]:.4f}")
    found = {"first_loss": losses[0], "last_loss": losses[-1]}
    if cell.strategy not in REPLICAS or not is_chief():
        return found  # what another worker has is the same, and nobody hears of it
    wanted = expected(cell.precision, cell.accumulation, cell.ema, REPLICAS[cell.strategy])
    pairs = zip(subject.weights(model), wanted.weights, strict=True)
    each = [float(np.max(np.abs(a - b))) for a, b in pairs]
    tolerance = TOLERANCES[cell.precision]
    trained = [at for at, variable in enumerate(_floats(model)) if variable.trainable]
    if not (apart := max(each[at] for at in trained)) <= tolerance:
        raise Wrong(f"a weight is {apart:.2g} from what the settings mean")
    _check_replicas(model)
    if not (apart := max(each)) <= MOVING_TIMES * tolerance:
        raise Wrong(f"a moving average is {apart:.2g} from what the settings mean")
    loss_apart = float(np.max(np.abs(np.subtract(losses, wanted.losses))))
    if not loss_apart <= tolerance:
        raise Wrong(f"the loss it tells is {loss_apart:.2g} from the true one")
    return {**found, "weights_apart": apart, "loss_apart": loss_apart}


def _check_outcome(cell: Cell, outcome: TrainOutcome) -> None:
    """Counts, and what is reported of each setting."""
    updates = subject.BATCHES // cell.accumulation
    wanted = {"stopped": "", "epochs": subject.EPOCHS, "steps": subject.BATCHES,
              "updates": updates, "skipped_updates": 0}  # fmt: skip
    found = {name: getattr(outcome, name) for name in wanted}
    if apart := [name for name in wanted if found[name] != wanted[name]]:
        told = ", ".join(f"{name} is {found[name]!r}, not {wanted[name]!r}" for name in apart)
        raise Wrong(told)
    if outcome.findings:
        raise Wrong(outcome.findings[0].summary)
    reported = {one.name: one.reported for one in outcome.applied}
    asked = {"precision": cell.precision, "execution": cell.execution}
    if cell.accumulation > 1:
        asked["accumulation"] = str(cell.accumulation)
    if cell.steps_per_execution > 1:
        asked["steps_per_execution"] = str(cell.steps_per_execution)
    if cell.ema:
        asked["ema"] = str(cell.ema)
    for name, text in asked.items():
        if text not in reported.get(name, "").split(", "):
            raise Wrong(f"{name} = {text} is reported as {reported.get(name, 'nothing')!r}")
    if cell.remat and not any(note.startswith("remat recomputes") for note in outcome.notes):
        raise Wrong("nothing is said to be recomputed")


def _check_replicas(model: Model) -> None:
    """Every replica of this process has the same weights and moving averages."""
    for variable in _floats(model):
        copies = getattr(variable._value, "values", ())
        if not isinstance(copies, tuple):
            continue
        if any(not np.array_equal(copies[0].numpy(), copy.numpy()) for copy in copies[1:]):
            what = "weights" if variable.trainable else "moving averages"
            raise Wrong(f"the replicas have different {what}, and only the first's are kept")


def _floats(model: Model) -> list[Any]:
    return [variable for variable in model.variables if "float" in variable.dtype]


def _nobody(_line: str) -> None:
    """Tell nobody."""


RUNS: dict[str, Callable[[Cell, Any], dict[str, Any]]] = {"tfdyno": by_tfdyno, "keras": by_keras}
