"""core/recipe: what no run can be is refused, and two recipes tell where they differ."""

from __future__ import annotations

import pytest

from tfdyno.core.errors import UsageError
from tfdyno.core.recipe import Recipe, diff, from_settings, typed


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"precision": "mixed_float8"}, "precision 'mixed_float8' is not one of"),
        ({"execution": "xlaa"}, "did you mean xla?"),
        ({"accumulation": 0}, "accumulation = 0 is not possible; give 1 or more"),
        ({"batch_size": -1}, "batch_size = -1 is not possible; give 0 or more"),
        ({"clip_norm": float("nan")}, "clip_norm = nan is not possible"),
    ],
)
def test_what_no_run_can_be_is_refused(setting: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as told:
        Recipe(**setting)  # type: ignore[arg-type]
    assert message in str(told.value)


def test_equal_recipes_have_one_id_and_any_change_another() -> None:
    assert Recipe().id == Recipe(accumulation=1).id
    changed = [Recipe(seed=0), Recipe(deterministic=True), Recipe(batch_size=64), Recipe()]
    assert len({one.id for one in changed}) == len(changed)


def test_a_difference_names_the_setting_and_both_values() -> None:
    a, b = Recipe(precision="float32"), Recipe(precision="mixed_float16", batch_size=64)
    assert diff(a, b) == {"precision": ("float32", "mixed_float16"), "batch_size": (0, 64)}
    assert diff(a, a) == {}


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
        ("remat=true", "remat cannot be set: it is not a setting of Keras' own fit"),
        ("input.prefetch=2", "input.prefetch cannot be set"),
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
        ({"input": {"prefetch": 2}}, "input cannot be set"),
        ({"batch_size": [1, 2]}, "is not a number"),
    ],
)
def test_a_value_of_the_wrong_type_in_a_file_is_refused(
    given: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        from_settings(given)
