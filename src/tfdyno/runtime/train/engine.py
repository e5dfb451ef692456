"""What runs the steps of a training: Keras' own function, ours, or other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfdyno.runtime.base.replicas import replicas
from tfdyno.runtime.checkpoint.state import State, state_of
from tfdyno.runtime.recipe import preprocessing
from tfdyno.runtime.recipe.build import (
    build_for,
    build_model,
    change_model,
    is_always_full,
)
from tfdyno.runtime.recipe.composed_step import ComposedStep, Whole
from tfdyno.runtime.recipe.settle import is_composed, settle_training, taken_over
from tfdyno.runtime.recipe.strategy import tpu_notes, worker_count
from tfdyno.runtime.train.outcome import iterations_of
from tfdyno.runtime.workload.input_options import with_input_options

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Dataset, Model, Spec, Value
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.runtime.remat.rewrite import RematPlan


class Engine:
    """The steps of one model under one recipe.

    Attributes:
        notes: Sentences for the user.
        composed: The step of a strategy, once it is built.
    """

    def __init__(self, model: Model, recipe: Recipe) -> None:
        """Set the recipe on the model; raises ``UsageError`` where it cannot be."""
        self.model, self.recipe = model, recipe
        # What is recomputed is cut out of the whole graph of the model.
        is_whole = bool(recipe.remat)
        if recipe.execution == "xla":
            preprocessing.check_xla(model, is_whole=is_whole)
        self._parts = None if is_whole else preprocessing.split(model)
        self.notes = settle_training(model, recipe, is_split=self._parts is not None)
        self.notes += [layer.sentence for layer in preprocessing.found(model, is_whole=is_whole)]
        self._accumulation = 1
        self.composed: ComposedStep | None = None
        self._scheduled: Any = None
        self._remat: RematPlan | None = None
        self.is_composed = is_composed(model) and recipe.strategy != "ps"

    @property
    def whole(self) -> Callable[[Any], Any] | None:
        """Marks an iterator that has batches enough for a whole execution; None: nobody asks."""
        return Whole if self.is_composed and self.model.steps_per_execution > 1 else None

    @property
    def is_scheduled(self) -> bool:
        """Whether other processes run the steps, each by itself."""
        return self._scheduled is not None

    @property
    def compiled(self) -> bool:
        """Whether XLA compiles the step, or that of each replica."""
        return self.composed.compiled if self.composed else bool(self.model.jit_compile)

    @property
    def accumulation(self) -> int:
        """Batches per iteration of the optimizer: Keras' own accumulation counts each batch."""
        return self.composed.accumulation if self.composed else 1

    def enter(self, stack: contextlib.ExitStack) -> None:
        """Take the model over until the stack is left.

        Raises:
            UsageError: A layer in it cannot be compiled, or it was built outside of the strategy.
        """
        if self.recipe.strategy == "ps":
            from tfdyno.runtime.base.tensorflow_internals import outside_scope
            from tfdyno.runtime.recipe.scheduled_step import ScheduledSteps

            self._scheduled = ScheduledSteps(self.model, self.model.distribute_strategy)
            stack.callback(self._scheduled.give_back)
            stack.enter_context(outside_scope())
        if self._parts:
            compiled = self.recipe.execution == "xla" and not self.is_composed
            stack.enter_context(self._parts.in_step(compiled=compiled))
        if self.is_composed:
            self._accumulation = stack.enter_context(taken_over(self.model, self.recipe))
        stack.callback(self._give_back)

    def _give_back(self) -> None:
        if self.composed:
            self.composed.give_back()
        if self._remat:
            self._remat.undo()
            self.notes += self._remat.notes

    def change(self, dataset: Dataset) -> Value:
        """Return the data of training as the step takes them."""
        changed, notes = with_input_options(dataset, self.recipe.input)
        self.notes += notes
        if self.recipe.strategy == "tpu":
            is_full = is_always_full(changed.element_spec)
            self.notes += tpu_notes(self.model.steps_per_execution, is_always_full=is_full)
        return self.change_test(changed)

    def change_test(self, dataset: Dataset) -> Value:
        """Return the data of validation as the step takes them."""
        return self._parts.dataset(dataset) if self._parts else dataset

    def build(self, element_spec: Spec, *, batch_size: int, early: bool) -> None:
        """Make the variables before the first step, where something needs them then.

        Args:
            element_spec: Of the changed dataset.
            batch_size: Over all replicas; 0: not known.
            early: Whether they are needed before it.
        """
        model, recipe = self.model, self.recipe
        changes = bool(recipe.remat)
        if not (early or changes or self.is_composed or self._scheduled):
            return  # Keras builds with the first batch
        strategy = self._scheduled.strategy if self._scheduled else model.distribute_strategy
        with strategy.scope():
            build_model(model, element_spec)
            if changes:
                per_replica = batch_size // replicas(model)
                self._remat = change_model(model, recipe, element_spec, per_replica, self.notes)
            if self._scheduled:
                self._scheduled.build(element_spec)
                return
            build_for(model, element_spec)
            if self.is_composed:
                self.composed = ComposedStep(
                    model,
                    compiled=recipe.execution == "xla",
                    accumulation=self._accumulation,
                    timed=worker_count() > 1,
                )
                is_even = batch_size % replicas(model) == 0
                self.composed.always_full = is_even and is_always_full(element_spec)

    def state(self) -> State:
        """Return all variables that training changes, at rest."""
        if self._scheduled:
            self._scheduled.join()
        step = self.composed or self._scheduled
        return state_of(self.model, step.variables if step else ())

    def iterations(self) -> int:
        """Return batches that the optimizer has taken (updates, where tfdyno accumulates)."""
        return iterations_of(self.model)

    def one_batch(self) -> Callable[[Any], Any]:
        """Make a function that trains on one batch and returns the logs, nothing around it."""
        if self.composed:
            run = self.composed.train_function()
        else:
            type(self.model).make_train_function(self.model, True)
            run = self.model.train_function
        return lambda batch: run(iter([batch]))
