"""What a process that runs already cannot take: told from what stands there, without TensorFlow."""

from __future__ import annotations

from typing import Any

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import InputOptions, Recipe
from tfdyno.runtime.train.fit_refusals import Standing, refuse_late

MIRRORED = Standing(policies=("float32",), strategy="MirroredStrategy", replica_count=2)
ONE = Standing(policies=("mixed_float16", "float32"), threads_intra=4, visible_devices="1")


@pytest.mark.parametrize(
    ("recipe", "standing"),
    [
        (Recipe(), ONE),
        (Recipe(execution="xla", accumulation=4, ema=0.9, clip_norm=1.0, seed=1), ONE),
        (Recipe(precision="mixed_float16", threads_intra=4, visible_devices="1"), ONE),
        (Recipe(precision="tf32", strategy="single", devices=1), ONE),
        (Recipe(input=InputOptions(private_threads=2, prefetch=4)), ONE),
        (Recipe(strategy="mirrored", devices=2), MIRRORED),
        (Recipe(strategy="multiworker"), Standing(strategy="CollectiveAllReduceStrategy")),
        (Recipe(memory_growth=True), ONE),
        (Recipe(memory_limit_bytes=1 << 30), Standing(memory_limit_bytes=1 << 30)),
        (Recipe(deterministic=True), Standing(is_deterministic=True)),
        (Recipe(precision="float8"), Standing(policies=("mixed_bfloat16",))),
    ],
)
def test_what_stands_or_can_be_set_at_any_time_is_taken(recipe: Recipe, standing: Standing) -> None:
    refuse_late(recipe, standing)


@pytest.mark.parametrize(
    ("settings", "standing", "names"),
    [
        ({"precision": "mixed_bfloat16"}, ONE, "precision"),
        ({"precision": "float8"}, ONE, "precision"),
        ({"strategy": "mirrored", "devices": 2}, ONE, "strategy, devices"),
        ({"strategy": "single"}, MIRRORED, "strategy"),
        ({"devices": 4}, MIRRORED, "devices"),
        ({"threads_intra": 2, "threads_inter": 1}, ONE, "threads_intra, threads_inter"),
        ({"visible_devices": "0"}, ONE, "visible_devices"),
        ({"memory_growth": True}, Standing(has_growth=False), "memory_growth"),
        ({"memory_limit_bytes": 1 << 30}, ONE, "memory_limit_bytes"),
        ({"memory_fraction": 0.5}, ONE, "memory_fraction"),
        ({"deterministic": True}, ONE, "deterministic"),
        ({}, Standing(strategy="ParameterServerStrategyV2"), "strategy"),
    ],
)
def test_what_comes_too_late_is_named(
    settings: dict[str, Any], standing: Standing, names: str
) -> None:
    with pytest.raises(UsageError) as caught:
        refuse_late(Recipe(**settings), standing)
    assert caught.value.what == f"{names} cannot be set by fit in a process that runs already"
    assert "run tfdyno train" in caught.value.remedy


def test_all_are_told_in_one_sentence_and_each_reason_once() -> None:
    recipe = Recipe(precision="float32", threads_intra=1, threads_inter=1, strategy="mirrored")
    standing = Standing(policies=("mixed_bfloat16",))
    with pytest.raises(UsageError) as caught:
        refuse_late(recipe, standing)
    assert str(caught.value) == (
        "precision, strategy, threads_intra, threads_inter cannot be set by fit in a process that "
        "runs already: the model was built in mixed_bfloat16, the model was built on one device, "
        "TensorFlow has its threads; run tfdyno train, or set it before TensorFlow starts and the "
        "model is built."
    )
