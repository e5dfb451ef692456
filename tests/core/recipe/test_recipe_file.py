"""core/recipe_file: what is written reads back; only what differs is written; a file is named."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import (
    PRECISIONS,
    Execution,
    InputOptions,
    Recipe,
    Strategy,
    flat,
    from_settings,
)
from tfdyno.core.recipe.recipe_file import given_recipe, read_recipe, to_toml

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = st.integers(0, 2**70)
CHOSEN = st.integers(-1, 2**40)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(str.strip)
REMATS = st.one_of(
    st.sampled_from(["", "blocks", "8GiB", "1.5 GB", "123"]),
    NAMES.filter(
        lambda name: name[:1] not in "-+." and not name[:1].isdigit()
        and name.lower() not in {"true", "false", "off", "none"}
    ),
)  # fmt: skip
FACTORS = st.floats(0, 1e30, allow_nan=False)
INPUTS = st.builds(
    InputOptions,
    prefetch=CHOSEN,
    parallel_calls=CHOSEN,
    cache=st.booleans(),
    shuffle_buffer=COUNTS,
    deterministic=st.one_of(st.none(), st.booleans()),
    private_threads=COUNTS,
)
RECIPES = st.builds(
    Recipe,
    precision=st.sampled_from(PRECISIONS),
    execution=st.sampled_from(get_args(Execution)),
    batch_size=COUNTS,
    accumulation=st.integers(1, 2**40),
    remat=REMATS,
    ema=st.floats(0, 1, exclude_max=True),
    ema_overwrite=COUNTS,
    clip_norm=FACTORS,
    loss_scale=FACTORS,
    steps_per_execution=st.integers(1, 2**40),
    strategy=st.sampled_from(get_args(Strategy)),
    devices=COUNTS,
    memory_growth=st.booleans(),
    memory_limit_bytes=st.one_of(COUNTS, st.integers(0, 9999).map(lambda n: n << 20)),
    memory_fraction=st.floats(0, 1),
    visible_devices=NAMES,
    threads_intra=COUNTS,
    threads_inter=COUNTS,
    deterministic=st.booleans(),
    seed=st.one_of(st.none(), COUNTS),
    input=INPUTS,
)


@given(recipe=RECIPES, full=st.booleans())
def test_a_written_recipe_reads_back(recipe: Recipe, full: bool) -> None:
    assert from_settings(tomllib.loads(to_toml(recipe, full=full))) == recipe


@given(recipe=RECIPES)
def test_a_full_recipe_says_everything_and_replaces_any_base(recipe: Recipe) -> None:
    other = Recipe(seed=5, ema=0.5, remat="x", input=InputOptions(cache=True, deterministic=True))
    assert from_settings(tomllib.loads(to_toml(recipe, full=True)), other) == recipe


def test_only_what_differs_is_written_with_what_it_means() -> None:
    recipe = Recipe(
        precision="mixed_bfloat16", memory_limit_bytes=3 << 29, input=InputOptions(prefetch=4)
    )
    assert to_toml(recipe) == (
        "# A recipe of tfdyno. What is not set here stays as the script has it.\n"
        "\n"
        "# Dtype policy of the layers (mixed_bfloat16, mixed_float16, float32, …),\n"
        "# tf32, or float8 for Dense and EinsumDense; empty: the script's own.\n"
        'precision = "mixed_bfloat16"\n'
        "\n"
        "# Bytes of each card that TensorFlow may take; 0: all that is free.\n"
        'memory_limit_bytes = "1536MiB"\n'
        "\n"
        "[input]\n"
        "# Batches made ready ahead; -1: TensorFlow chooses; 0: as the pipeline has it.\n"
        "prefetch = 4\n"
    )
    assert tomllib.loads(to_toml(Recipe())) == {}


def test_a_full_recipe_has_every_setting_once() -> None:
    found: dict[str, Any] = tomllib.loads(to_toml(Recipe(), full=True))
    names = [name for name in found if name != "input"]
    names += [f"input.{name}" for name in found["input"]]
    assert names == list(flat(Recipe()))
    assert (found["seed"], found["input"]["deterministic"]) == ("none", "none")


def test_reasons_stand_in_place_of_meanings() -> None:
    text = to_toml(Recipe(seed=1), comments={"seed": "Because."}, head=("For one\ncard.",))
    assert text == "# For one card.\n\n# Because.\nseed = 1\n"


def test_python_gives_a_recipe_in_any_form(tmp_path: Path) -> None:
    wanted = Recipe(seed=3)
    (tmp_path / "r.toml").write_text("seed = 3")
    for form in (wanted, {"seed": 3}, tmp_path / "r.toml", str(tmp_path / "r.toml")):
        assert given_recipe(form) == wanted
    assert given_recipe(None) is None
    with pytest.raises(UsageError, match="did you mean seed"):
        given_recipe({"sed": 3})


def test_a_file_or_the_folder_of_a_run_is_read(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("seed = 1\n[input]\ncache = true\n")
    expected = Recipe(seed=1, input=InputOptions(cache=True))
    assert read_recipe(tmp_path) == read_recipe(tmp_path / "recipe.toml") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeed = 1", r"in .*r\.toml: setting 'seeed' is not one of .*; did you mean seed\?"),
        ("seed = -1", r"in .*r\.toml: seed = -1 is not possible; give 0 or more"),
        ("[seed]", r"in .*r\.toml: seed '\{\}' is not a number"),
        ("seed = ", r"r\.toml is not valid TOML"),
        ("input = 3", r"in .*r\.toml: input = 3 is not possible"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_name(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "r.toml").write_text(text)
    with pytest.raises(UsageError, match=message):
        read_recipe(tmp_path / "r.toml")
    with pytest.raises(UsageError, match=r"nothing\.toml does not exist"):
        read_recipe(tmp_path / "nothing.toml")
