"""core/composition: what excludes each other is refused with the reason, the rest passes."""

from __future__ import annotations

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.composition import check_composition, refuse_trainer_settings
from tfdyno.core.recipe.recipe import Recipe, from_settings, typed


def recipe(text: str) -> Recipe:
    return from_settings(typed(text.split()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "strategy=ps execution=xla",
            "strategy = ps and execution = xla do not go together: .*XLA",
        ),
        ("strategy=ps accumulation=4", "ps and accumulation = 4 .* each worker updates"),
        ("strategy=ps deterministic=true", "ps and deterministic .* in the order"),
        ("deterministic=true execution=xla", "deterministic and execution = xla do not go"),
        ("strategy=single devices=2", "single and devices = 2 .*; use strategy = mirrored"),
        ("memory_limit_bytes=1GiB memory_fraction=0.5", "memory_limit_bytes and memory_fraction"),
        ("memory_limit_bytes=1GiB memory_growth=true", "memory_limit_bytes and memory_growth"),
        (
            "precision=float32 loss_scale=1024",
            "loss_scale and precision = float32 .* only mixed_fl",
        ),
        ("precision=mixed_bfloat16 loss_scale=8", "precision = mixed_bfloat16 do not go together"),
        (
            "precision=float8 strategy=mirrored",
            "float8 and strategy = mirrored .*: Keras' float8 .*; use precision = mixed_bfloat16",
        ),
        ("precision=float8 strategy=multiworker", "float8 and strategy = multiworker do not go"),
        ("precision=float8 strategy=ps", "float8 and strategy = ps do not go together"),
        ("ema_overwrite=10", "ema_overwrite needs ema: without it .* set ema too"),
        ("strategy=tpu precision=mixed_float16", "float32 and bfloat16; use precision = mixed_bf"),
        ("strategy=tpu precision=float8", "float8 and strategy = tpu do not go together"),
        ("strategy=tpu execution=graph", "tpu and execution = graph do not go .* leave execution"),
        ("strategy=tpu devices=8", "tpu and devices = 8 do not go .* leave devices out"),
        ("strategy=tpu memory_growth=true", "tpu and memory_growth do not go .* setting of GPUs"),
        ("strategy=tpu visible_devices=0", "tpu and visible_devices do not go together"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_composition(recipe(text))


@pytest.mark.parametrize(
    "text",
    [
        "seed=1",
        "strategy=ps steps_per_execution=4 remat=true ema=true precision=mixed_bfloat16",
        "strategy=mirrored devices=2 execution=xla accumulation=4 remat=8GiB ema=0.9",
        "strategy=multiworker devices=3 deterministic=true seed=1",
        "strategy=single devices=1 visible_devices=0,1",
        "precision=mixed_float16 loss_scale=1024",
        "loss_scale=1024",
        "memory_fraction=0.5 memory_growth=true",
        "ema=true ema_overwrite=10",
        "precision=float8 execution=xla",
        "precision=float8 strategy=single accumulation=4",
        "strategy=tpu precision=mixed_bfloat16 steps_per_execution=50 execution=xla seed=1",
    ],
)
def test_settings_that_go_together_pass(text: str) -> None:
    check_composition(recipe(text))


@pytest.mark.parametrize(
    "text",
    [
        "remat=true", "ema=0.9", "ema_overwrite=3", "loss_scale=8", "strategy=single", "devices=2",
        "memory_fraction=0.5", "precision=float8",
    ],
)  # fmt: skip
def test_a_setting_of_the_trainer_is_refused_where_keras_own_fit_is_measured(text: str) -> None:
    with pytest.raises(
        UsageError, match="cannot be set: it is not a setting of Keras' own fit"
    ) as e:
        refuse_trainer_settings(recipe(text))
    assert str(e.value).startswith(text.partition("=")[0])


def test_a_setting_of_keras_own_fit_is_none_of_the_trainers() -> None:
    refuse_trainer_settings(recipe("batch_size=3 precision=mixed_float16 accumulation=2 remat=off"))


def test_settings_of_the_input_are_for_data_that_are_not_made_up() -> None:
    refuse_trainer_settings(recipe("input.prefetch=2 input.cache=true"))
    refuse_trainer_settings(recipe("batch_size=3"), made_up=True)
    with pytest.raises(UsageError, match=r"input.cache cannot be set for made-up data: it has no"):
        refuse_trainer_settings(recipe("input.cache=true"), made_up=True)
