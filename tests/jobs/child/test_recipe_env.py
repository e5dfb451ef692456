"""Environment variables of a recipe."""

from __future__ import annotations

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.child.recipe_env import recipe_environment


def test_a_plain_recipe_sets_only_the_backend_and_the_log_level() -> None:
    expected = {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "1"}
    assert recipe_environment(Recipe(), {}) == expected


def test_the_users_own_log_level_holds() -> None:
    assert "TF_CPP_MIN_LOG_LEVEL" not in recipe_environment(Recipe(), {"TF_CPP_MIN_LOG_LEVEL": "0"})


def test_devices_memory_threads_and_determinism_are_set_before_the_start() -> None:
    recipe = Recipe(
        visible_devices="1",
        memory_growth=True,
        threads_intra=3,
        threads_inter=2,
        deterministic=True,
        seed=2**32 + 5,
    )
    found = recipe_environment(recipe, {})
    assert found["CUDA_VISIBLE_DEVICES"] == "1"
    assert found["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert found["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert (found["TF_NUM_INTRAOP_THREADS"], found["TF_NUM_INTEROP_THREADS"]) == ("3", "2")
    assert found["TF_DETERMINISTIC_OPS"] == "1"
    assert found["PYTHONHASHSEED"] == "5"  # 32 bits


def test_float32_forbids_tf32_and_tf32_allows_it() -> None:
    assert recipe_environment(Recipe(precision="float32"), {})["NVIDIA_TF32_OVERRIDE"] == "0"
    assert recipe_environment(Recipe(precision="tf32"), {})["NVIDIA_TF32_OVERRIDE"] == "1"
    assert "NVIDIA_TF32_OVERRIDE" not in recipe_environment(Recipe(precision="mixed_float16"), {})


def test_graph_execution_takes_clustering_out_of_the_users_flags() -> None:
    given = {"TF_XLA_FLAGS": "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"}
    graph = recipe_environment(Recipe(execution="graph"), given)
    assert graph["TF_XLA_FLAGS"] == "--tf_xla_cpu_global_jit"
    assert "TF_XLA_FLAGS" not in recipe_environment(Recipe(), given)
    assert "TF_XLA_FLAGS" not in recipe_environment(Recipe(execution="graph"), {})
