"""runtime/jax_outcome: what a training left behind, and what the recipe sets on the model."""

from __future__ import annotations

from tests.runtime.jaxes import looked


def test_the_outcome_says_what_was_trained_over_what() -> None:
    found = looked("outcome")
    assert (found["replicas"], found["batch"], found["parameters"]) == (2, 4, 49)
    assert found["model"] == "model.keras"
    assert found["memory"]
    reported = {one["name"]: one["reported"] for one in found["applied"]}
    assert reported["mesh"] == "data=2,model=2 on 4 devices of 1 process"
    assert reported["backend"].startswith("JAX ")


def test_the_recipe_is_set_or_refused() -> None:
    found = looked("outcome")
    assert found["settled"] == []
    assert found["policy"].startswith("precision = mixed_bfloat16 does not reach the layers of e")
