"""What a child is told of kept programs, and what is left to the user."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.compiled.flags import KNOWN, PLACES, own_choice, variables_for
from tfdyno.store.compiled.programs import ProgramStore, View

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tfdyno.probe.python.compilers import Framework


@pytest.fixture(params=["plain", "with a blank"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder: Path = tmp_path / request.param
    folder.mkdir()
    return folder


@pytest.fixture
def view(root: Path) -> Iterator[View]:
    one = ProgramStore(root=root).view("ab", {}, PLACES["tensorflow"])
    yield one
    one.close()


def told(view: View, framework: Framework = "tensorflow", **changed: Any) -> dict[str, str]:
    given: dict[str, Any] = {
        "known": frozenset(KNOWN), "variables": {}, "recipe": Recipe(), "has_cards": False,
        "has_room": True,
    }  # fmt: skip
    return variables_for(framework, view, **{**given, **changed})


def test_tensorflow_is_told_a_folder_for_programs(view: View) -> None:
    found = told(view)
    assert found.keys() == {"TF_XLA_FLAGS"}
    place = view.place("programs")
    assert shlex.split(found["TF_XLA_FLAGS"]) == [f"--tf_xla_persistent_cache_directory={place}"]


def test_with_a_card_xla_is_told_a_folder_for_autotuning_that_is_there(view: View) -> None:
    found = told(view, has_cards=True, variables={"XLA_FLAGS": "--xla_dump_to=/x"})
    own, ours = shlex.split(found["XLA_FLAGS"])
    assert own == "--xla_dump_to=/x"
    name, _, place = ours.partition("=")
    assert name == "--xla_gpu_per_fusion_autotune_cache_dir"
    assert place == str(view.place("autotune"))
    assert view.place("autotune").is_dir()


def test_a_deterministic_recipe_gets_no_autotune_results(view: View) -> None:
    recipe = Recipe(deterministic=True, seed=1)
    assert told(view, has_cards=True, recipe=recipe).keys() == {"TF_XLA_FLAGS"}


def test_a_flag_that_the_installed_xla_does_not_know_is_not_given(view: View) -> None:
    assert told(view, known=frozenset()) == {}
    old = frozenset({"tf_xla_persistent_cache_directory"})
    assert told(view, known=old, has_cards=True).keys() == {"TF_XLA_FLAGS"}
    assert told(view, known=old, has_room=False) == {}


def test_on_a_full_disk_programs_are_only_read(view: View) -> None:
    flags = told(view, has_room=False, has_cards=True)
    assert flags.keys() == {"TF_XLA_FLAGS"}
    assert flags["TF_XLA_FLAGS"].endswith("--tf_xla_persistent_cache_read_only=true")


def test_what_the_user_has_set_of_tensorflow_is_his(view: View) -> None:
    assert own_choice("tensorflow", {}) == ""
    assert own_choice("tensorflow", {"TF_XLA_FLAGS": "--tf_xla_auto_jit=2"}) == ""
    own = {"TF_XLA_FLAGS": "--tf_xla_persistent_cache_directory=/mine"}
    assert own_choice("tensorflow", own) == "TF_XLA_FLAGS"
    assert own_choice("tensorflow", {"TF_XLA_FLAGS": "/a/file"}) == "TF_XLA_FLAGS"
    other = told(view, variables={"TF_XLA_FLAGS": "--tf_xla_auto_jit=2"})
    assert other["TF_XLA_FLAGS"].startswith("--tf_xla_auto_jit=2 --tf_xla_persistent")


def test_jax_is_told_by_its_own_variables_unless_the_user_did(view: View) -> None:
    found = told(view, "jax", variables={"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "5"})
    assert found == {
        "JAX_COMPILATION_CACHE_DIR": str(view.place("programs")),
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",
    }
    own = {"JAX_COMPILATION_CACHE_DIR": "/mine"}
    assert own_choice("jax", own) == "JAX_COMPILATION_CACHE_DIR"
    assert own_choice("jax", {"JAX_ENABLE_COMPILATION_CACHE": "False"}) == (
        "JAX_ENABLE_COMPILATION_CACHE"
    )
    assert own_choice("jax", {"JAX_ENABLE_COMPILATION_CACHE": "1"}) == ""
