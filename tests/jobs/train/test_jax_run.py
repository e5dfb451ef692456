"""jobs/_jax_run: variables of a process that trains on JAX."""

from __future__ import annotations

from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.jobs.train.jax_run import host_devices, jax_environment


def test_a_process_stands_for_several_devices_and_keeps_other_flags() -> None:
    given = {"XLA_FLAGS": "--xla_foo=1 --xla_force_host_platform_device_count=8"}
    found = jax_environment(JaxPlan(host_devices=4), given)
    assert found["XLA_FLAGS"] == "--xla_foo=1 --xla_force_host_platform_device_count=4"
    assert found["KERAS_BACKEND"] == "jax"
    assert "XLA_FLAGS" not in jax_environment(JaxPlan(), given)


def test_where_cards_are_hidden_jax_does_not_look_for_them() -> None:
    hidden = {"CUDA_VISIBLE_DEVICES": "-1"}
    assert jax_environment(JaxPlan(), hidden)["JAX_PLATFORMS"] == "cpu"
    assert "JAX_PLATFORMS" not in jax_environment(JaxPlan(), {})
    assert "JAX_PLATFORMS" not in jax_environment(JaxPlan(), {**hidden, "JAX_PLATFORMS": "tpu"})


def test_host_devices_are_those_asked_for_or_the_users_own() -> None:
    given = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    assert host_devices(JaxPlan(), given) == 8
    assert host_devices(JaxPlan(host_devices=2), given) == 2
    assert host_devices(JaxPlan(), {}) == 1
