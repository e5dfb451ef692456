"""core/jax_plan: what means something on JAX, and what is refused by name."""

from __future__ import annotations

import dataclasses

import pytest

from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import Recipe, flat
from tfdyno.core.train import jax_plan
from tfdyno.core.train.device_mesh import read_mesh
from tfdyno.core.train.jax_plan import JaxPlan
from tfdyno.core.train.layout import Rule
from tfdyno.core.train.training import RunSettings

OTHER = {
    "remat": "blocks", "strategy": "mirrored", "precision": "bfloat16", "execution": "xla",
    "visible_devices": "0",
}  # fmt: skip


def test_options_of_jax_are_refused_on_tensorflow_with_the_reason() -> None:
    with pytest.raises(UsageError, match=r"--mesh does nothing on the TensorFlow backend: keras"):
        jax_plan.check_backend("tensorflow", ["--mesh"])
    assert jax_plan.check_backend("jax", ["--mesh"]) == "jax"
    assert jax_plan.check_backend("tensorflow", []) == "tensorflow"
    with pytest.raises(UsageError, match=r"backend 'jaxx' is not one of.*mean jax"):
        jax_plan.check_backend("jaxx", [])


@pytest.mark.parametrize("name", [one.name for one in dataclasses.fields(Recipe)])
def test_a_setting_means_something_or_is_refused_by_its_name(name: str) -> None:
    plain = getattr(Recipe(), name)
    value = OTHER.get(name, True if isinstance(plain, bool) else 2)
    if name == "input":
        value = dataclasses.replace(plain, prefetch=3)
    recipe = Recipe(**{name: 0.5 if name in ("ema", "memory_fraction") else value})  # type: ignore[arg-type]
    if name in jax_plan.WITHOUT:
        with pytest.raises(UsageError, match=f"{name}.* means nothing on the JAX backend: "):
            jax_plan.check_recipe(recipe)
    else:
        jax_plan.check_recipe(recipe)
    assert set(jax_plan.MEANINGS) ^ set(jax_plan.WITHOUT) == set(flat(Recipe()))


@pytest.mark.parametrize("recipe", [Recipe(execution="graph"), Recipe(remat="8GiB")])
def test_what_jax_has_not_is_refused(recipe: Recipe) -> None:
    with pytest.raises(UsageError, match="JAX backend"):
        jax_plan.check_recipe(recipe)


def test_what_reads_tensorflows_step_is_refused() -> None:
    jax_plan.check_settings(RunSettings())
    with pytest.raises(UsageError, match="--norms does not go with the JAX backend"):
        jax_plan.check_settings(RunSettings(norms_steps=3))


def test_rules_need_axes() -> None:
    rule = Rule(pattern="a", axes=("model",))
    with pytest.raises(UsageError, match="there is no mesh"):
        JaxPlan(rules=(rule,))
    plan = JaxPlan(mesh=read_mesh("data=2,model=2"), rules=(rule,))
    assert plan.splits_weights
    assert not JaxPlan(mesh=read_mesh("data=4")).splits_weights
    assert plan.whole_mesh(4) == plan.mesh
    with pytest.raises(UsageError, match="did you mean model"):
        JaxPlan(mesh=read_mesh("model=2"), rules=(Rule(pattern="a", axes=("mode",)),)).whole_mesh(2)


@pytest.mark.parametrize("mesh", ["", "data=2"])
def test_no_layout_is_kept_where_nothing_is_split(mesh: str) -> None:
    with pytest.raises(UsageError, match=r"--write-layout kept.toml keeps rules, and no weight"):
        JaxPlan(mesh=read_mesh(mesh) if mesh else None, write_layout="kept.toml")
    assert JaxPlan(mesh=read_mesh("model=2"), write_layout="kept.toml").splits_weights


def test_a_plan_goes_through_json() -> None:
    plan = JaxPlan(mesh=read_mesh("model=2"), rules=(Rule(pattern="a", axes=("model",)),))
    assert from_json(to_json(plan), JaxPlan) == plan
