"""A recipe set on a compiled model that is to be trained, on one device or under a strategy."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.composition import refuse_float8_under
from tfdyno.runtime.base.replicas import replicas
from tfdyno.runtime.recipe.apply import (
    check_optimizers,
    check_policy,
    set_execution,
    settle_optimizer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Layer, Model, Tensor, Value, Variable
    from tfdyno.core.recipe.recipe import Recipe


def settle_training(model: Model, recipe: Recipe, *, is_split: bool = False) -> list[str]:
    """Set what belongs to a model that has not run a step yet; returns notes.

    Under a strategy Keras' own switches for XLA and accumulation stay off: ``ComposedStep`` does
    both, and takes from the optimizer what the script has set there.

    Args:
        model: Compiled.
        recipe: What is asked.
        is_split: Whether layers that XLA cannot compile run in the input pipeline.

    Raises:
        UsageError: The model or its optimizer cannot do what is asked.
    """
    notes: list[str] = []
    if recipe.precision == "float8" and is_composed(model):
        refuse_float8_under(type(model.distribute_strategy).__name__)
    check_policy(model, recipe)
    check_optimizers(model, recipe)
    if model.run_eagerly and recipe.execution != "auto":
        notes.append(f"run_eagerly is off: execution = {recipe.execution} holds.")
        model.run_eagerly = False
    if recipe.execution != "auto" and not (is_split and recipe.execution == "xla"):
        set_execution(model, recipe.execution)
    if recipe.steps_per_execution > 1:
        model.steps_per_execution = recipe.steps_per_execution
    ours = replace(recipe, accumulation=1) if is_composed(model) else recipe
    if ours.accumulation > 1 or ours.clip_norm:
        settle_optimizer(model, ours, notes)
    if recipe.ema:
        _set_average(model, recipe)
    if recipe.loss_scale:
        _set_loss_scale(model, recipe.loss_scale)
    for name in ("train_function", "test_function", "predict_function"):
        setattr(model, name, None)  # to be made anew
    return notes


def is_composed(model: Model) -> bool:
    """Return whether Keras' own train function cannot do what a recipe asks of it."""
    return replicas(model) > 1 or _has_cluster(model)


@contextlib.contextmanager
def taken_over(model: Model, recipe: Recipe) -> Iterator[int]:
    """Turn Keras' own switches off for a while; gives the batches per update."""
    inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    compiled, own = model.jit_compile, inner.gradient_accumulation_steps
    model.jit_compile, inner.gradient_accumulation_steps = False, None
    try:
        yield recipe.accumulation if recipe.accumulation > 1 else int(own or 1)
    finally:
        model.jit_compile, inner.gradient_accumulation_steps = compiled, own


def _has_cluster(model: Model) -> bool:
    strategy = getattr(model, "distribute_strategy", None)
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def _set_average(model: Model, recipe: Recipe) -> None:
    inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    is_kept = inner.use_ema and inner.ema_momentum == recipe.ema
    if inner.built and not is_kept:
        what = "ema cannot be set any more"
        raise UsageError(what, why="the optimizer's variables exist before fit")
    inner.use_ema, inner.ema_momentum = True, recipe.ema
    inner.ema_overwrite_frequency = recipe.ema_overwrite or None
    if recipe.accumulation > 1:
        _average_updates(inner)


def _average_updates(inner: Layer) -> None:
    """Let the average move with updates alone, as under a strategy.

    Keras moves it with every batch, those that only accumulate included: the momentum of
    ``ema`` would mean another one for each accumulation.
    """
    from keras import ops

    def with_updates(act: Tensor) -> Value:
        def acted(variables: Variable) -> None:
            steps = inner.gradient_accumulation_steps
            if not steps:  # under a strategy the optimizer sees updates alone
                act(variables)
                return
            is_update = ops.equal((inner._iterations + 1) % steps, 0)
            ops.cond(is_update, lambda: act(variables), lambda: None)

        return acted

    for name in (
        "_update_model_variables_moving_average",
        "_overwrite_model_variables_with_average_value",
    ):
        setattr(inner, name, with_updates(getattr(inner, name)))


def _set_loss_scale(model: Model, factor: float) -> None:
    """Set a fixed factor instead of Keras' dynamic one."""
    inner = getattr(model.optimizer, "inner_optimizer", None)
    if inner is None and model.optimizer.loss_scale_factor == factor:
        return  # an earlier fit has set it
    if inner is None:
        what = f"loss_scale = {factor:g} needs a loss that is scaled"
        raise UsageError(what, why="the model is not trained in mixed_float16",
                         remedy="set precision = mixed_float16")  # fmt: skip
    inner.loss_scale_factor = factor
    model.optimizer = inner
