"""jobs/_jax_run: variables of a process that trains on JAX."""

from __future__ import annotations

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.jobs.train.jax_run import host_devices, jax_environment


def test_a_process_stands_for_several_devices_and_keeps_other_flags() -> None:
    given = {"XLA_FLAGS": "--xla_foo=1 --xla_force_host_platform_device_count=8"}
    found = jax_environment(JaxPlan(host_devices=4), Recipe(), given)
    assert found["XLA_FLAGS"] == "--xla_foo=1 --xla_force_host_platform_device_count=4"
    assert found["KERAS_BACKEND"] == "jax"
    assert "XLA_FLAGS" not in jax_environment(JaxPlan(), Recipe(), given)


def test_where_cards_are_hidden_jax_does_not_look_for_them() -> None:
    hidden = {"CUDA_VISIBLE_DEVICES": "-1"}
    assert jax_environment(JaxPlan(), Recipe(), hidden)["JAX_PLATFORMS"] == "cpu"
    assert "JAX_PLATFORMS" not in jax_environment(JaxPlan(), Recipe(), {})
    assert "JAX_PLATFORMS" not in jax_environment(
        JaxPlan(), Recipe(), {**hidden, "JAX_PLATFORMS": "tpu"}
    )


def test_host_devices_are_those_asked_for_or_the_users_own() -> None:
    given = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    assert host_devices(JaxPlan(), given) == 8
    assert host_devices(JaxPlan(host_devices=2), given) == 2
    assert host_devices(JaxPlan(), {}) == 1


def test_a_recipe_for_the_memory_of_a_card_is_said_to_jax() -> None:
    grows = jax_environment(JaxPlan(), Recipe(memory_growth=True), {})
    assert grows["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    part = jax_environment(JaxPlan(), Recipe(memory_fraction=0.5), {})
    assert part["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.5"
    assert not {name for name in jax_environment(JaxPlan(), Recipe(), {}) if "CLIENT" in name}


def test_deterministic_operations_are_a_flag_beside_the_users_own() -> None:
    given = {"XLA_FLAGS": "--xla_foo=1"}
    found = jax_environment(JaxPlan(), Recipe(deterministic=True), given)
    assert found["XLA_FLAGS"] == "--xla_foo=1 --xla_gpu_deterministic_ops=true"
