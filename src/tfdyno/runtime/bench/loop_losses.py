"""What the first steps of a training loop of the user's own tell of their loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.runtime.base.written_files import written_aside
from tfdyno.runtime.bench.loop import NO_CALL, Loop, LoopDone
from tfdyno.runtime.bench.script_training import by_itself, of_script

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Dataset, Value
    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.runtime.workload.fit_call import Call

LOSS = "loss"


def losses_of(
    workload: Workload, recipe: Recipe, steps: int, progress: Callable[[str], None]
) -> list[float]:
    """Run a loop until so many of its steps have ended.

    Args:
        workload: A script, or a step by itself.
        recipe: Of which only that is left to apply which belongs to the step.
        steps: At most.
        progress: Called with a line at every stage.

    Raises:
        UsageError: The recipe cannot be set for a loop, its code fails, or it tells no loss.
        ToolError: There is not enough memory.
    """
    loop = LoopLosses(workload, recipe, steps, progress)
    with written_aside():
        if workload.kind == "step_function":
            by_itself(loop)
        else:
            of_script(loop, _refuse)
    if loop.error:
        raise loop.error
    if loop.losses:
        return loop.losses
    title = loop.outcome.title if loop.outcome else workload.reference
    what = f"{title} does not tell its loss"
    raise UsageError(what, why="it returns no single number", remedy="let the step return its loss")


def _refuse(_call: Call) -> None:
    raise UsageError("the script has no loop of its own", why="it calls fit")


class LoopLosses(Loop):
    """Keeps the loss of each step: what it returns, or of what a tape is asked for gradients."""

    def __init__(
        self, workload: Workload, recipe: Recipe, steps: int, progress: Callable[[str], None]
    ) -> None:
        """Watch for a step, as ``Loop``; so many ``steps`` are enough."""
        super().__init__(workload, recipe, progress)
        self.losses: list[float] = []
        self._steps, self._ended = steps, 0

    def gradient_asked(self, sources: Dataset, target: Value) -> None:
        """Note that a tape was asked for gradients; in a loop without functions of its loss."""
        is_eager = not self._active and tf.executing_eagerly()
        super().gradient_asked(sources, target)
        if is_eager:
            self._keep(target)

    def _began(self, result: Value, seconds_s: float) -> None:
        if result is not NO_CALL:
            self._keep(result)

    def _timed(self, call: Callable[[], Any]) -> Value:
        result = call()
        self._keep(result)
        return result

    def _passed(self) -> None:
        """What a tape was asked for told its loss already."""

    def _keep(self, told: Value) -> None:
        self._ended += 1
        if (loss := loss_in(told)) is not None:
            self.losses.append(loss)
        if self._ended >= self._steps:
            raise LoopDone


def loss_in(told: Value) -> float | None:
    """Return a step's first single number, under the name ``loss`` where it has names.

    Of several replicas their mean; None: there is none.
    """
    if isinstance(told, Mapping):
        named = [one for name, one in told.items() if LOSS in str(name).lower()]
        told = told.get(LOSS, named)
    for one in tf.nest.flatten(told):
        parts = one.values if isinstance(one, tf.distribute.DistributedValues) else (one,)
        numbers = [_number(part) for part in parts]
        known = [number for number in numbers if number is not None]
        if known and len(known) == len(numbers):
            return math.fsum(known) / len(known)
    return None


def _number(value: Value) -> float | None:
    """Return a float, or a tensor or array of one; whole numbers count something else."""
    if isinstance(value, float):
        return value
    is_float = "float" in str(getattr(value, "dtype", ""))
    if not is_float or math.prod(value.shape) != 1:
        return None
    return float(tf.reshape(tf.convert_to_tensor(value), ()))
