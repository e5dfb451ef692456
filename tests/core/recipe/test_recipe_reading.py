"""core/recipe_reading, by from_settings: values as typed or from TOML in their field's type."""

from __future__ import annotations

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import InputOptions, Recipe, flat, from_settings, typed


def test_settings_are_read_in_the_type_of_their_field() -> None:
    texts = [
        "batch_size=64",
        "clip_norm=0.5",
        "memory_growth=true",
        "seed=7",
        "memory_limit_bytes=4GiB",
        "visible_devices=0,1",
        "precision=mixed_float16",
    ]
    assert from_settings(typed(texts)) == Recipe(
        batch_size=64, clip_norm=0.5, memory_growth=True, seed=7, memory_limit_bytes=4 << 30,
        visible_devices="0,1", precision="mixed_float16",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("remat=true", "remat", "blocks"),
        ("remat=8GiB", "remat", "8GiB"),
        ("remat=block*,head", "remat", "block*,head"),
        ("remat=false", "remat", ""),
        ("remat=Off", "remat", ""),
        ("remat=none", "remat", ""),
        ("ema=true", "ema", 0.99),
        ("ema=false", "ema", 0.0),
        ("ema=0.999", "ema", 0.999),
        ("precision=float8", "precision", "float8"),
        ("strategy=ps", "strategy", "ps"),
        ("memory_fraction=0.5", "memory_fraction", 0.5),
        ("input.prefetch=auto", "input.prefetch", -1),
        ("input.parallel_calls=8", "input.parallel_calls", 8),
        ("input.deterministic=false", "input.deterministic", False),
        ("input.deterministic=none", "input.deterministic", None),
        ("input.cache=true", "input.cache", True),
        ("seed=9007199254740993", "seed", 2**53 + 1),  # which a float cannot hold
    ],
)
def test_a_setting_is_read(text: str, name: str, value: object) -> None:
    found = flat(from_settings(typed([text])))[name]
    assert (type(found), found) == (type(value), value)


def test_a_table_of_the_input_leaves_the_rest_of_the_base() -> None:
    base = Recipe(input=InputOptions(prefetch=2, cache=True))
    read = from_settings({"input": {"prefetch": 4}, "remat": True, "ema": 0}, base)
    assert read == Recipe(remat="blocks", input=InputOptions(prefetch=4, cache=True))


def test_toml_values_are_taken_as_they_are_and_the_rest_from_the_base() -> None:
    base = Recipe(batch_size=32, seed=3)
    given = {"deterministic": True, "visible_devices": 0, "seed": "none", "batch_size": 8}
    read = from_settings(given, base)
    assert read == Recipe(batch_size=8, deterministic=True, visible_devices="0")
    assert from_settings({}, base) == base


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batchsize=3", "setting 'batchsize' is not one of .*; did you mean batch_size"),
        ("batch_size", "the setting 'batch_size' cannot be read; write key=value"),
        ("=3", "cannot be read"),
        ("batch_size=", "cannot be read"),
        ("batch_size=big", "batch_size 'big' is not a number"),
        ("batch_size=1.5", "batch_size = 1.5 is not possible; give a whole number"),
        ("batch_size=nan", "batch_size nan is not possible; give a finite number"),
        ("batch_size=-3", "batch_size = -3 is not possible; give 0 or more"),
        ("memory_growth=yes", "memory_growth = yes is not possible; give true or false"),
        ("memory_limit_bytes=much", "'much' is not an amount of memory"),
        ("precision=fp16", "precision 'fp16' is not one of"),
        ("input.prefech=2", r"setting 'input.prefech' is not one of .*; did you mean input.pref"),
        ("input=2", r"input = 2 is not possible; write input.prefetch=4, or in a file"),
        ("input.cache=2", r"input.cache = 2 is not possible; give true or false"),
        ("ema=high", "ema 'high' is not a number"),
        ("strategy=ddp", "strategy 'ddp' is not one of single, mirrored, multiworker, ps, tpu"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_settings(typed([text]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"batch_size": True}, "batch_size = true is not a number"),
        ({"precision": 16}, "precision = 16 is not a name"),
        ({"input": {"prefetch": "many"}}, "input.prefetch 'many' is not a number"),
        ({"input": {"prefetch": True}}, "input.prefetch = true is not a number"),
        ({"remat": [1]}, r"remat = \[1\] is not possible; give true, a budget"),
        ({"batch_size": [1, 2]}, "is not a number"),
    ],
)
def test_a_value_of_the_wrong_type_in_a_file_is_refused(
    given: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        from_settings(given)
