"""Which settings of a recipe exclude each other, and which need tfdyno's own training loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import Recipe, diff

if TYPE_CHECKING:
    from collections.abc import Iterator

TRAINER_ONLY = (
    "remat", "ema", "ema_overwrite", "loss_scale", "strategy", "devices", "memory_fraction",
    "input",
)  # fmt: skip
"""Settings that Keras' own ``fit`` is not given by tfdyno: they need the trainer."""
TPU_PRECISIONS = ("float32", "bfloat16", "mixed_bfloat16")
OF_CARDS = ("memory_growth", "memory_limit_bytes", "memory_fraction", "visible_devices")
"""Settings that mean nothing without a GPU."""


def check_composition(recipe: Recipe) -> None:
    """Refuse settings that no run can have together, before TensorFlow starts.

    Raises:
        UsageError: Two settings exclude each other; says which and why.
    """
    for what, why, remedy in _impossible(recipe):
        raise UsageError(what, why=why, remedy=remedy)


def refuse_float8_under(strategy: str) -> None:
    """Refuse float8 under a strategy of several replicas that the user's code makes.

    Args:
        strategy: Its class.

    Raises:
        UsageError: Always.
    """
    what, why, remedy = _of_float8(f"tf.distribute.{strategy}")
    raise UsageError(what, why=why, remedy=remedy)


def refuse_trainer_settings(recipe: Recipe, *, made_up: bool = False) -> None:
    """Refuse what Keras' own ``fit`` cannot be told, where that is what is measured.

    Settings of the input pass: they are put onto the user's dataset before ``fit`` is given it.

    Args:
        recipe: The settings.
        made_up: Whether batches are made up, so that there is no pipeline to set.

    Raises:
        UsageError: A setting needs the trainer.
    """
    why = "it is not a setting of Keras' own fit, which is what is measured here"
    for name in diff(Recipe(), recipe):
        if name.startswith("input."):
            if made_up:
                raise UsageError(f"{name} cannot be set for made-up data",
                                 why="it has no pipeline", remedy="leave it out")  # fmt: skip
        elif is_trainer_only(name):
            raise UsageError(f"{name} cannot be set", why=why, remedy="leave it out")
    if recipe.precision == "float8":
        raise UsageError("precision = float8 cannot be set", why=why, remedy="leave it out")


def is_trainer_only(name: str) -> bool:
    """Return whether a setting, by its flat name, needs the trainer."""
    return name.partition(".")[0] in TRAINER_ONLY


def _impossible(recipe: Recipe) -> Iterator[tuple[str, str, str]]:
    """Tell what, why and remedy of each pair that does not go together."""
    yield from _of_execution(recipe)
    if recipe.precision == "float8" and recipe.strategy not in ("", "single"):
        yield _of_float8(f"strategy = {recipe.strategy}")
    if recipe.strategy == "ps":
        yield from _of_parameter_server(recipe)
    if recipe.strategy == "tpu":
        yield from _of_tpu(recipe)
    yield from _of_memory(recipe)
    yield from _alone(recipe)


def _of_float8(strategy: str) -> tuple[str, str, str]:
    what = f"precision = float8 and {strategy} do not go together"
    why = "Keras' float8 layers hold scales that are not put together over replicas"
    return what, why, "use precision = mixed_bfloat16, or one device"


def _of_execution(recipe: Recipe) -> Iterator[tuple[str, str, str]]:
    if recipe.deterministic and recipe.execution == "xla":
        why = "Keras compiles nothing with XLA while operations are deterministic"
        yield "deterministic and execution = xla do not go together", why, "leave one of them out"
    if recipe.strategy == "single" and recipe.devices > 1:
        what = f"strategy = single and devices = {recipe.devices} do not go together"
        yield what, "it trains on one device", "use strategy = mirrored, or leave devices out"


def _of_parameter_server(recipe: Recipe) -> Iterator[tuple[str, str, str]]:
    what = "strategy = ps and {} do not go together"
    if recipe.execution == "xla":
        why = "every step reads variables of another process, which XLA cannot compile"
        yield what.format("execution = xla"), why, "use execution = graph"
    if recipe.accumulation > 1:
        why = "each worker updates the weights by itself, so there is no common sum to wait for"
        yield what.format(f"accumulation = {recipe.accumulation}"), why, "leave accumulation out"
    if recipe.deterministic:
        why = "workers update the weights in the order in which they happen to be ready"
        yield what.format("deterministic"), why, "use strategy = multiworker"


def _of_tpu(recipe: Recipe) -> Iterator[tuple[str, str, str]]:
    what = "strategy = tpu and {} do not go together"
    if recipe.precision not in ("", *TPU_PRECISIONS):
        why = "TPUs compute in float32 and bfloat16"
        remedy = "use precision = mixed_bfloat16"
        yield what.format(f"precision = {recipe.precision}"), why, remedy
    if recipe.execution == "graph":
        why = "TPUs run nothing that XLA has not compiled"
        yield what.format("execution = graph"), why, "leave execution out"
    if recipe.devices:
        why = "all TPUs of the machine train together"
        yield what.format(f"devices = {recipe.devices}"), why, "leave devices out"
    for name in OF_CARDS:
        if getattr(recipe, name):
            yield what.format(name), "it is a setting of GPUs", f"leave {name} out"


def _of_memory(recipe: Recipe) -> Iterator[tuple[str, str, str]]:
    asked = [
        name
        for name in ("memory_limit_bytes", "memory_fraction", "memory_growth")
        if getattr(recipe, name)
    ]
    if recipe.memory_limit_bytes and len(asked) > 1:
        what = f"memory_limit_bytes and {asked[1]} do not go together"
        yield what, "TensorFlow takes the whole limit at once", "leave one of them out"


def _alone(recipe: Recipe) -> Iterator[tuple[str, str, str]]:
    """Tell settings that mean nothing without another."""
    if recipe.loss_scale and recipe.precision not in ("", "mixed_float16"):
        what = f"loss_scale and precision = {recipe.precision} do not go together"
        yield what, "only mixed_float16 needs its loss scaled", "leave loss_scale out"
    if recipe.ema_overwrite and not recipe.ema:
        what = "ema_overwrite needs ema"
        yield what, "without it there is no moving average", "set ema too, as ema=0.99"
