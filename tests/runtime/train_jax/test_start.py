"""runtime/jax_start: JAX, Keras and the devices as the plan has them, or one sentence."""

from __future__ import annotations

from tests.runtime.jaxes import looked


def test_kerass_distribution_is_set_over_all_devices() -> None:
    found = looked("start")
    assert (found["mesh"], found["kind"], found["set"]) == ("data=2,model=2", "SplitWeights", True)


def test_jax_without_the_cards_of_the_plan_is_told() -> None:
    assert "JAX sees no GPU: it computes on cpu, though 2 GPUs per node" in looked("start")["gpu"]
    assert "pip install 'jax[cuda12]'" in looked("start")["gpu"]


def test_gpus_beside_a_jax_that_has_none_are_told() -> None:
    """Else a training would go on for days on the CPU."""
    none, one, many = looked("start")["unused"]
    assert none == []
    told = "JAX computes on the CPU, though this machine has a GPU: "
    assert one == [f"{told}pip install 'jax[cuda12]' on every node."]
    assert "has 8 GPUs" in many[0]


def test_the_versions_are_told() -> None:
    software = looked("start")["software"]
    assert software["jax"]
    assert software["keras"].startswith("3")
    assert software["device"] == "cpu"


def test_a_distribution_of_the_users_code_is_left_out_with_a_note() -> None:
    note = "The code calls keras.distribution.set_distribution; --mesh holds."
    assert looked("start")["held"] == [True, [note]]
