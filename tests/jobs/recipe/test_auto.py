"""jobs/recipe_auto: the estimate's advice as a recipe, with a reason for each line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.probe.fake_nvml import FakeNvml, NoNvml, on

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.composition import check_composition
from tfdyno.core.recipe.recipe import Recipe, diff
from tfdyno.core.train.jax_plan import check_recipe
from tfdyno.jobs.choose.estimate import EstimateRequest, estimate
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.recipe.auto import auto_recipe

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.choose.auto_recipe import AutoRecipe

MOBILENET = parse_reference("keras:MobileNetV2")
NET = """
import keras

def build():
    layers = keras.layers
    model = keras.Sequential([
        keras.Input((None, None, 3)),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(10),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model

def wide():
    model = keras.Sequential([keras.Input((60_000,)), keras.layers.Dense(60_000)])
    model.compile("adam", "mse")
    return model
"""
BEFORE_TENSOR_CORES = find("gtx-1060-6gb")
"""float32 is what it is made for: one trace serves."""


def sound(found: AutoRecipe) -> AutoRecipe:
    """Every line has a reason, the settings go together, an update keeps its samples."""
    check_composition(found.recipe)
    assert list(found.reasons) == list(diff(Recipe(), found.recipe))
    for sentence in (*found.reasons.values(), *found.notes):
        assert sentence.endswith(".")
        assert "None" not in sentence
        assert ".." not in sentence
    if found.chosen:
        assert found.chosen in found.options
        one = found.chosen
        assert one.batch_size * one.accumulation * one.replicas == found.global_batch_size
    return found


def test_a_named_card_gets_what_the_estimate_calls_fastest() -> None:
    found = sound(auto_recipe(MOBILENET, gpu=find("l4")))
    expected = estimate(
        EstimateRequest(workload=MOBILENET, gpus=(find("l4"),), precision="mixed_bfloat16")
    ).estimates[0]
    assert found.recipe == Recipe(precision="mixed_bfloat16", execution="xla")
    assert expected.execution == "xla"
    assert found.chosen
    assert found.chosen.update_s == expected.step_s
    assert found.chosen.device_memory_bytes == expected.device_memory_bytes
    assert {(one.precision, one.execution) for one in found.options} == {
        ("mixed_bfloat16", "xla"), ("mixed_bfloat16", "graph"),
        ("float32", "xla"), ("float32", "graph"),
    }  # fmt: skip
    assert "instead of" in found.reasons["precision"]
    assert "the first step compiles for about" in found.reasons["execution"]
    assert "Planned for L4, not for this machine." in found.notes
    assert any("Keras' default: the workload names none" in note for note in found.notes)


def test_without_a_card_the_cpu_gets_what_is_right_for_it() -> None:
    found = sound(on(NoNvml(), auto_recipe, MOBILENET))
    assert found.recipe == Recipe(precision="float32", execution="graph")
    assert (found.target, found.chosen, found.options) == ("the CPU of this machine", None, ())
    assert "1.2 to 1.8 times as long with XLA" in found.reasons["execution"]
    assert found.notes[0].startswith("No NVIDIA GPU was found: nothing was estimated.")


def test_on_jax_only_settings_are_chosen_that_it_has() -> None:
    here = on(NoNvml(), auto_recipe, MOBILENET, on_jax=True)
    assert here.recipe == Recipe(precision="float32")
    assert set(here.reasons) == {"precision"}
    assert not [note for note in here.notes if "TensorFlow" in note]
    card = sound(auto_recipe(MOBILENET, gpu=find("a100-sxm4-80gb"), count=4, on_jax=True))
    check_recipe(card.recipe)
    assert card.recipe.execution == "auto"
    assert card.chosen
    assert (card.chosen.execution, card.chosen.replicas) == ("xla", 1)


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def test_the_equal_cards_of_the_machine_share_the_batch_and_leave_others_theirs(net: Path) -> None:
    nvml = FakeNvml(count=3)  # H100s of which 41 GB are held; 32 samples do not go into three
    nvml.processes = [(4711, 41_000_000_000)]
    workload = parse_reference("net.py:build", input_shapes=((512, 512, 3),))
    found = sound(on(nvml, auto_recipe, workload, visible="0,1,2"))
    assert found.recipe == Recipe(
        precision="mixed_bfloat16", execution="xla", batch_size=16, strategy="mirrored",
        memory_growth=True, visible_devices="0,1",
    )  # fmt: skip
    assert (found.gpu, found.replicas) == ("h100-sxm5-80gb", 2)
    assert found.chosen
    assert found.chosen.usable_memory_bytes == 85520809984 - 41_000_000_000
    assert found.reasons["memory_growth"].startswith("Other processes (4711) hold 38.2 GiB of the")
    assert found.reasons["strategy"].endswith("on one.")
    alone = sound(on(nvml, auto_recipe, workload, visible="2")).recipe
    assert (alone.strategy, alone.batch_size, alone.visible_devices) == ("", 0, "")


def test_a_batch_that_does_not_fit_is_accumulated(net: Path) -> None:
    workload = parse_reference("net.py:build", input_shapes=((512, 512, 3),))
    found = sound(auto_recipe(workload, gpu=BEFORE_TENSOR_CORES))
    recipe = found.recipe
    assert (recipe.precision, recipe.remat) == ("", "")
    assert recipe.batch_size * recipe.accumulation == 32
    assert recipe.accumulation > 1
    assert found.chosen
    assert found.chosen.fits
    fuller = estimate(
        EstimateRequest(workload=workload, gpus=(BEFORE_TENSOR_CORES,),
                        batch_size=2 * recipe.batch_size, execution=recipe.execution)
    ).estimates[0]  # fmt: skip
    assert fuller.device_memory_bytes.best > fuller.usable_memory_bytes
    assert "BatchNormalization" in found.reasons["accumulation"]


def test_where_one_sample_does_not_fit_layers_are_computed_again(net: Path) -> None:
    workload = parse_reference("net.py:build", input_shapes=((8192, 8192, 3),))
    found = sound(auto_recipe(workload, gpu=BEFORE_TENSOR_CORES))
    recipe = found.recipe
    assert (recipe.batch_size, recipe.accumulation) == (1, 32)
    usable_bytes = BEFORE_TENSOR_CORES.usable_memory_bytes
    assert 0.7 * usable_bytes < recipe.remat_budget_bytes < usable_bytes
    assert "Only the run shows" in found.reasons["remat"]


def test_what_weights_take_is_no_room_for_activations(net: Path) -> None:
    wide = """
def dense():
    x = inputs = keras.Input((8192, 8192, 3))
    x = keras.layers.Conv2D(64, 3, padding="same", activation="relu")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    for units in (10_000, 10_000):
        x = keras.layers.Dense(units)(x)
    model = keras.Model(inputs, keras.layers.Dense(10)(x))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model
"""
    (net / "net.py").write_text(NET + wide)
    workload = parse_reference("net.py:dense")
    found = sound(auto_recipe(workload, gpu=BEFORE_TENSOR_CORES))
    weights = 10_000 * 10_000 * 4
    usable_bytes = BEFORE_TENSOR_CORES.usable_memory_bytes
    # Weights, two moments of Adam, the sums of the gradients.
    assert 0 < found.recipe.remat_budget_bytes < usable_bytes - 4 * weights


def test_weights_that_do_not_fit_have_no_recipe(net: Path) -> None:
    with pytest.raises(UsageError, match=r"does not fit .* at any batch: weights, gradients and"):
        auto_recipe(parse_reference("net.py:wide"), gpu=BEFORE_TENSOR_CORES)


def test_only_training_by_fit_has_a_recipe(net: Path) -> None:
    with pytest.raises(UsageError, match="a recipe is for a training run by fit"):
        auto_recipe(parse_reference("keras:ResNet50", mode="infer"))
    (net / "net.py").write_text("def step(x):\n    return x\n")
    step = parse_reference("net.py:step", input_spec=("float32[batch,3]",))
    with pytest.raises(UsageError, match=r"there is no recipe for net.py:step"):
        auto_recipe(step)
