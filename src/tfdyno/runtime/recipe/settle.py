"""A recipe set on a compiled model: on one that is measured, and on one that is trained."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import keras
import tensorflow as tf

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.composition import refuse_float8_under
from tfdyno.core.recipe.retreat import FIRST_STEP, FIRST_STEP_XLA
from tfdyno.runtime.base.keras_internals import all_layers
from tfdyno.runtime.base.replicas import replicas
from tfdyno.runtime.base.step_hooks import has_own_step
from tfdyno.runtime.checkpoint.state import optimizers_of
from tfdyno.runtime.recipe.apply import OF_OPTIMIZER, TRAINING_ONLY, asked, policy_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.base.untyped import Layer, Model, Tensor, Value, Variable
    from tfdyno.core.choose.workload import Mode
    from tfdyno.core.recipe.recipe import Recipe


def settle(model: Model, recipe: Recipe, mode: Mode) -> list[str]:
    """Set what belongs to a compiled model that Keras itself runs; returns notes.

    Raises:
        UsageError: Keras cannot do what is asked with this model or its strategy, or the model
            keeps a dtype policy of its own.
    """
    _check_strategy(model, recipe)
    if mode == "train":
        _check_optimizers(model, recipe)
    notes = settle_step(model, recipe)
    if mode == "train" and asked(recipe, TRAINING_ONLY):
        _settle_optimizer(model, recipe, notes)
    return notes


def settle_training(model: Model, recipe: Recipe, *, is_split: bool) -> list[str]:
    """Set what belongs to a model that is to be trained, on one device or under a strategy.

    Under a strategy Keras' own switches for XLA and accumulation stay off: ``ComposedStep`` does
    both, and takes from the optimizer what the script has set there.

    Args:
        model: Compiled.
        recipe: What is asked.
        is_split: Whether layers that XLA cannot compile run in the input pipeline.

    Returns:
        Notes.

    Raises:
        UsageError: The model or its optimizer cannot do what is asked.
    """
    if recipe.precision == "float8" and is_composed(model):
        refuse_float8_under(type(model.distribute_strategy).__name__)
    _check_optimizers(model, recipe)
    notes = settle_step(model, recipe, is_split=is_split)
    if recipe.precision == "float8":
        _quantize(model, notes)
    ours = replace(recipe, accumulation=1) if is_composed(model) else recipe
    if asked(ours, TRAINING_ONLY):
        _settle_optimizer(model, ours, notes)
    if recipe.ema:
        _set_average(model, recipe)
    if recipe.loss_scale:
        _set_loss_scale(model, recipe.loss_scale)
    return notes


def settle_step(model: Model, recipe: Recipe, *, is_split: bool = False) -> list[str]:
    """Set how a compiled model that has not run yet runs its steps, on any backend; returns notes.

    Raises:
        UsageError: The model keeps a dtype policy of its own, or XLA cannot compile it.
    """
    _check_policy(model, recipe)
    notes = settle_execution(model, recipe, is_split=is_split)
    if recipe.steps_per_execution > 1:
        model.steps_per_execution = recipe.steps_per_execution
    for name in ("train_function", "test_function", "predict_function"):
        setattr(model, name, None)  # to be made anew
    return notes


def settle_execution(model: Model, recipe: Recipe, *, is_split: bool = False) -> list[str]:
    """Let a compiled model run its step as the recipe asks; returns notes.

    What is split compiles by itself that part which XLA can.

    Raises:
        UsageError: Keras cannot compile it with XLA.
    """
    if recipe.execution == "auto":
        return []
    notes = []
    if model.run_eagerly:
        notes.append(f"run_eagerly is off: execution = {recipe.execution} holds.")
        model.run_eagerly = False
    if not _is_on_jax() and tf.config.functions_run_eagerly():
        notes.append(f"run_functions_eagerly is off: execution = {recipe.execution} holds.")
        tf.config.run_functions_eagerly(False)
    if not (is_split and recipe.execution == "xla"):
        _set_execution(model, recipe.execution)
    return notes


def first_step_words(model: Model, execution: str) -> str:
    """Return words for the first step; whether XLA compiles it decides what a crash in it means."""
    compiled = execution == "xla" or (execution == "auto" and bool(model.jit_compile))
    return FIRST_STEP_XLA if compiled else FIRST_STEP


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


def _check_strategy(model: Model, recipe: Recipe) -> None:
    """Refuse settings with which Keras 3 fails inside TensorFlow on more than one replica."""
    if replicas(model) == 1:
        return
    impossible = {"accumulation": 1, "steps_per_execution": 1}
    names = asked(recipe, impossible) + (["execution=xla"] if recipe.execution == "xla" else [])
    for name in names:
        strategy = type(model.distribute_strategy).__name__
        what = f"{name} is not possible under tf.distribute.{strategy} with Keras 3"
        raise UsageError(what, remedy=f"leave {name.partition('=')[0]} out, or use one device")


def _check_policy(model: Model, recipe: Recipe) -> None:
    """Refuse a model that keeps another dtype policy; raises ``UsageError``."""
    if not recipe.precision:
        return
    wanted = "float32" if recipe.precision == "tf32" else policy_of(recipe.precision)
    names = [part.dtype_policy.name for part in all_layers(model) if part.weights]
    found = [name.removeprefix("float8_from_") for name in names]  # an earlier fit has done it
    if found and wanted not in found:  # one float32 layer at the end is common and right
        raise UsageError(
            f"precision = {recipe.precision} does not reach the layers of {model.name}",
            why=f"they keep a policy of their own, {found[0]}",
            remedy="set the precision in the code that builds the model",
        )


def _check_optimizers(model: Model, recipe: Recipe) -> None:
    """Refuse what would reach one of several optimizers of an own ``train_step``, or none.

    Which of them the step uses cannot be told before it runs, and half of a GAN clipped is none.

    Raises:
        UsageError: The model keeps others than that of ``compile``.
    """
    kept = getattr(model, "optimizer", None)
    of_compile = (kept, getattr(kept, "inner_optimizer", kept))
    others = [one for one in optimizers_of(model) if all(one is not own for own in of_compile)]
    names = asked(recipe, OF_OPTIMIZER)
    if names and others and has_own_step(model):
        raise UsageError(
            f"{names[0]} cannot be set for {model.name}",
            why="its train_step keeps optimizers beside that of compile",
            remedy="set it on each of them in the script",
        )


def _set_execution(model: Model, execution: str) -> None:
    """Let Keras compile its step with XLA or not; raises ``UsageError`` where a layer cannot."""
    model.jit_compile = execution == "xla"
    if bool(model.jit_compile) != (execution == "xla"):
        unfit = [part.name for part in all_layers(model) if not part.supports_jit]
        what = f"{model.name} cannot be compiled with XLA"
        why = f"{', '.join(unfit[:3])} cannot" if unfit else "Keras does not allow it"
        raise UsageError(what, why=why, remedy="use execution = graph")


def _settle_optimizer(model: Model, recipe: Recipe, notes: list[str]) -> None:
    """Set accumulation and clipping; raises ``UsageError`` where the optimizer cannot."""
    optimizer = getattr(model, "optimizer", None)
    inner = getattr(optimizer, "inner_optimizer", optimizer)
    if inner is None or not hasattr(inner, "gradient_accumulation_steps"):
        name = ", ".join(asked(recipe, TRAINING_ONLY))
        raise UsageError(f"{name} needs a Keras 3 optimizer", why="the model has none")
    if recipe.accumulation > 1 and inner.gradient_accumulation_steps != recipe.accumulation:
        if inner.built:
            what = "accumulation cannot be set any more"
            raise UsageError(what, why="the optimizer's variables exist before fit")
        inner.gradient_accumulation_steps = recipe.accumulation
    if recipe.clip_norm:
        if inner.clipnorm or inner.clipvalue:
            notes.append("The optimizer's own clipping is off: clip_norm of the recipe holds.")
        inner.clipnorm = inner.clipvalue = None
        inner.global_clipnorm = recipe.clip_norm


def _quantize(model: Model, notes: list[str]) -> None:
    """Let Keras quantize the model; raises ``UsageError`` where its optimizer would not know."""
    if any(getattr(each, "_is_quantized", False) for each in all_layers(model)):
        return  # an earlier fit has done it, and Keras refuses it twice
    if not model.built:
        what = f"precision = float8 cannot be set for {model.name}"
        raise UsageError(what, why="it is not built before fit, and its layers get more variables",
                         remedy="give it an Input, or call it once on data")  # fmt: skip
    with warnings.catch_warnings():  # of each layer that has no float8
        warnings.filterwarnings("ignore", message=".*does not have a `quantize` method")
        model.quantize("float8")
    notes.append("float8: Dense and EinsumDense layers are quantized by Keras, no others.")


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
        (_keep_between_updates if _is_on_jax() else _average_updates)(inner)


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


def _keep_between_updates(inner: Layer) -> None:
    """Let the average, and the weights that it replaces, move with updates alone, on JAX.

    Keras' optimizer there does all of it in one function, without branches.
    """
    from keras import ops

    act = inner._backend_apply_gradients

    def acted(gradients: list[Any], variables: list[Any]) -> None:
        averages = inner._model_variables_moving_average
        moved = (*variables, *inner._trainable_variables, *averages)
        kept = {id(one): one for one in moved if one is not None}
        before = [(one, one.value) for one in kept.values()]
        act(gradients, variables)
        is_update = ops.equal((inner._iterations + 1) % inner.gradient_accumulation_steps, 0)
        for variable, value in before:
            variable.assign(ops.where(is_update, variable.value, value))

    inner._backend_apply_gradients = acted


def _is_on_jax() -> bool:
    return bool(keras.backend.backend() == "jax")


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
