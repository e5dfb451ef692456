"""jobs/_recipe_reasons: why a setting is there, and why another is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.choices import option

from tfdyno.catalog.gpus import find
from tfdyno.core.choose.workload import Trace, Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.jobs.recipe._reasons import notes, reasons

if TYPE_CHECKING:
    from tfdyno.core.choose.auto_recipe import Option

T4 = find("t4")
TRACE = Trace(
    workload=Workload(reference="train.py", kind="script"), title="net", batch_size=97, marker=97,
    script_batch_size=32, policy="float32", path="jax", path_reason="", loss="", optimizer="",
    execution="xla", parameter_count=1, trainable_parameter_count=1, tensors=(),
    stablehlo_sha256="", seconds_s=1.0, script_seconds_s=0.0, versions={},
)  # fmt: skip
OWN = "the script's own"


def why(recipe: Recipe, chosen: Option, *others: Option, **changes: Any) -> dict[str, str]:
    return reasons(recipe, chosen, (chosen, *others), gpu=T4, trace=TRACE, batch_source=OWN,
                   found=(), **changes)  # fmt: skip


def test_a_precision_says_what_it_saves() -> None:
    half = option(4.0, 0.3, precision="mixed_float16", changes=1)
    said = why(Recipe(precision="mixed_float16"), half, option(10.0))
    assert said == {
        "precision": "4 ms (3.2–4.8) an update instead of 10 ms (8–12) in the script's own "
        "float32, and 0.3 GiB instead of 0.5 GiB; the tensor cores of Tesla T4 are made for it."
    }
    unfit = option(10.0, 9.0)
    assert (
        "not even one sample fits"
        in why(Recipe(precision="mixed_float16"), half, unfit)["precision"]
    )


def test_an_execution_says_what_the_other_takes_or_why_there_is_none() -> None:
    compiled, by_operation = option(10.0), option(15.0, execution="graph")
    recipe = Recipe(execution="xla")
    assert why(recipe, compiled, by_operation)["execution"] == (
        "10 ms (8–12) an update instead of 15 ms (12–18) run operation by operation; the first "
        "step compiles for about 20 s."
    )
    too_big = option(15.0, 3.0, execution="graph")
    assert why(recipe, compiled, too_big)["execution"] == (
        "Run operation by operation a step needs more memory than there is."
    )
    graph = Recipe(execution="graph")
    assert why(graph, by_operation)["execution"] == ("The script, or a layer of it, keeps XLA off.")


def test_parts_of_a_batch_name_the_samples_of_an_update() -> None:
    parts = option(batch_size=8, accumulation=4)
    said = why(Recipe(batch_size=8, accumulation=4), parts)
    assert said["batch_size"].endswith("keeps its 32 samples (the script's own).")
    assert said["accumulation"].startswith("4 batches of 8 make an update of 32 samples")
    assert said["accumulation"].endswith("sees 8 samples.")


def test_several_cards_say_what_one_takes() -> None:
    two, one = option(6.0, replicas=2, batch_size=16, changes=1), option(10.0)
    said = why(Recipe(strategy="mirrored", batch_size=16), two, one)
    assert said["strategy"] == (
        "2 x Tesla T4 share the batch: 6 ms (4.8–7.2) an update instead of 10 ms (8–12) on one."
    )
    full = option(10.0, 3.0)
    assert why(Recipe(strategy="mirrored"), two, full)["strategy"].endswith("it does not fit.")


def test_what_was_not_chosen_is_told_with_its_numbers() -> None:
    own = option(10.0)
    half = option(9.8, precision="mixed_float16", changes=1)
    two = option(9.7, replicas=2, batch_size=16, changes=1)
    said = notes(own, (own, half, two), TRACE, OWN)
    assert said[0] == (
        "Precision stays float32: an update takes 9.8 ms (7.8–12) in mixed_float16 and 10 ms "
        "(8–12) as it is."
    )
    assert said[1] == (
        "One card trains alone: an update takes 9.7 ms (7.8–12) on 2 cards and 10 ms (8–12) on one."
    )
    assert said[-1].startswith("Input, seed and determinism stay as the script has them")


def test_what_was_not_compiled_is_not_called_sure() -> None:
    near = option(10.0, 1.9, warnings=("Whether it fits has not been verified by a compile.", "W."))
    said = notes(near, (near,), TRACE, "assumed: Keras' default")
    assert said[0] == "The batch is Keras' default: the workload names none."
    assert said[1].startswith("It takes about 1.9 of 2 GiB (1.5–2.3), which was computed")
    assert said[2] == "W."
