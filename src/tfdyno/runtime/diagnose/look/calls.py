"""Several steps in one call, as ``steps_per_execution`` puts them there, beside steps one by one.

Where a step is short, starting it may take as long as the step itself. A profile cannot tell: it
makes each operation longer. So both ways of calling the same step are run in turns.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import keras

from tfdyno.core.measure.step_facts import CallFacts
from tfdyno.model.measure.statistics import median

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.base.untyped import DataIterator, Model

STEPS = 8
"""The steps of one call. More would only delay callbacks: 7 of 8 calls are gone."""
MOST_STEP_S = 0.02
"""A call from Python takes up to 5 ms, so that longer steps gain little by fewer calls."""
MOST_FIRST_S = 20.0
"""The step is traced and compiled once more, which takes as long as its first call."""
MOST_S = 2.0
_LEAST_ROUNDS, _MOST_ROUNDS = 7, 60
_WARM_CALLS = 12
"""TensorFlow learns in some 90 runs which operations are too short to be handed to a thread."""


def worth_a_look(model: Model, held_s: Sequence[float], first_s: float) -> bool:
    """Return whether several steps can go into one call, and the step is so short that it matters.

    Args:
        model: A compiled Keras model on one device.
        held_s: Seconds of its step on a batch that is held.
        first_s: What its first call took.
    """
    makes = type(model).make_train_function is keras.Model.make_train_function
    can = makes and not model.run_eagerly and int(model.steps_per_execution) == 1
    return can and bool(held_s) and median(held_s) <= MOST_STEP_S and first_s <= MOST_FIRST_S


def in_turns(
    model: Model,
    single: Callable[[Any], Any],
    iterator: DataIterator,
    *,
    sync: Callable[[], None] | None = None,
    most_s: float = MOST_S,
    now: Callable[[], float] = time.perf_counter,
) -> CallFacts:
    """Return seconds of a step called one by one, and of the same step in calls of eight, in turns.

    Args:
        model: That is trained.
        single: Its train function.
        iterator: Of a batch without end.
        sync: Waits for the device; None: a call returns when its work is done.
        most_s: For so long, but for a few rounds that always run.
        now: A clock in seconds.

    Raises:
        Exception: What TensorFlow raises where it cannot put such steps into one call.
    """
    together = _together(model, iterator)
    for _ in range(_WARM_CALLS):
        together(iterator)

    def timed(function: Callable[[Any], Any], calls: int) -> float:
        began = now()
        for _ in range(calls):
            function(iterator)
        if sync:
            sync()
        return (now() - began) / STEPS

    pairs: list[tuple[float, float]] = []
    began = now()
    while len(pairs) < _LEAST_ROUNDS or (now() - began < most_s and len(pairs) < _MOST_ROUNDS):
        pairs.append((timed(single, STEPS), timed(together, 1)))
    single_s, together_s = zip(*pairs, strict=True)
    return CallFacts(steps=STEPS, single_s=single_s, together_s=together_s)


def _together(model: Model, iterator: DataIterator) -> Callable[[Any], Any]:
    """Return the train function that Keras makes for several steps, traced; the model stays."""
    before = model.steps_per_execution, model.train_function
    try:
        model.steps_per_execution = STEPS
        type(model).make_train_function(model, force=True)
        function: Callable[[Any], Any] = model.train_function
        function(iterator)  # Keras looks at the number while it traces
        return function
    finally:
        model.steps_per_execution, model.train_function = before
