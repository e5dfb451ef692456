"""words/recipe/settings: values with their units, and what leaving a setting means."""

from __future__ import annotations

import pytest

from tfdyno.core.recipe.recipe import Recipe, flat
from tfdyno.words.recipe.settings import value_words


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("precision", "", "the script's own"),
        ("precision", "tf32", "tf32"),
        ("batch_size", 1, "1 sample"),
        ("batch_size", 2048, "2,048 samples"),
        ("accumulation", 1, "1 batch"),
        ("accumulation", 4, "4 batches"),
        ("ema", 0.0, "the optimizer's own"),
        ("ema", 0.999, "0.999"),
        ("memory_limit_bytes", 3 << 30, "3 GiB"),
        ("memory_growth", True, "true"),
        ("seed", None, "drawn anew"),
        ("seed", 123456, "123456"),
        ("devices", 0, "all cards"),
        ("devices", 2, "2"),
        ("input.prefetch", -1, "TensorFlow's choice"),
        ("input.prefetch", 4, "4 batches"),
        ("input.deterministic", None, "as the pipeline has it"),
        ("input.deterministic", False, "false"),
    ],
)
def test_a_value_says_its_unit_or_what_leaving_it_means(
    name: str, value: object, words: str
) -> None:
    assert value_words(name, value) == words


def test_no_default_is_shown_bare() -> None:
    said = {name: value_words(name, value) for name, value in flat(Recipe()).items()}
    assert [name for name, words in said.items() if words in {"", "0", "0.0", "None", "auto"}] == []
