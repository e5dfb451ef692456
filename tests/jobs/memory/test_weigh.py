"""jobs/memory: what a step holds, what a log says, and how a model is made to fit a card."""

from __future__ import annotations

import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.workload import FineTune
from tfdyno.core.recipe.composition import check_composition
from tfdyno.core.recipe.recipe import from_settings
from tfdyno.core.recipe.recipe_file import to_toml
from tfdyno.jobs.choose.estimate import EstimateRequest, estimate
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.memory.weigh import Asked, memory
from tfdyno.jobs.recipe.auto import auto_recipe

if TYPE_CHECKING:
    from tfdyno.core.choose.memory_plan import MemoryPlan

DATA = Path(__file__).parents[2] / "data"
MODELS = DATA / "models" / "tower.py"
TOWER, STACK, WIDE = (parse_reference(f"{MODELS}:{name}") for name in ("tower", "stack", "wide"))
OLD, SMALL, T4 = find("gtx-1050"), find("mx250"), find("t4")
ASKED_FOR = (
    "W tensorflow/tsl/framework/bfc_allocator.cc:479] Allocator (GPU_0_bfc) ran out of memory "
    "trying to allocate 1.14GiB (rounded to 1228800000)requested by op GatherV2\n"
)
pytestmark = pytest.mark.tf


def planned(asked: Asked, *, told: list[str] | None = None) -> MemoryPlan:
    """The plan, checked for what every plan has to keep to."""
    lines = told if told is not None else []
    (plan,) = memory(asked, progress=lines.append).plans
    for one in plan.options:
        option = one.option
        assert option.fits
        assert option.device_memory_bytes.best <= option.usable_memory_bytes
        assert option.batch_size * option.accumulation == plan.samples
        assert one.time_ratio.low <= one.time_ratio.best <= one.time_ratio.high
    if plan.chosen and plan.recipe:
        assert plan.chosen in plan.options
        check_composition(plan.recipe)
        assert set(plan.reasons) <= set(tomllib.loads(to_toml(plan.recipe)))
        assert from_settings(tomllib.loads(to_toml(plan.recipe))) == plan.recipe
    assert all(note.endswith(".") for note in plan.notes)
    return plan


def test_under_jax_the_map_is_of_what_the_card_fuses_too() -> None:
    attention = parse_reference(f"{DATA / 'models' / 'attention.py'}:narrow", software="jax")
    asked = Asked(workload=attention, gpus=(find("l4"), T4), batch_size=64)
    fused, whole = memory(asked).cards
    for card in (fused, whole):
        assert card.map.peak_bytes == pytest.approx(card.estimate.peak_memory_bytes.best, rel=0.1)
    # Scores of two layers, 64 samples, 4 heads and 512 tokens, in the float32 that a T4 has.
    assert whole.map.peak_bytes - fused.map.peak_bytes > 2 * 64 * 4 * 512**2 * 4
    assert not any(len(one.shape) > 4 for one in fused.map.tensors)


def test_the_map_is_of_the_estimates_own_step() -> None:
    answer = memory(Asked(workload=TOWER, gpus=(OLD,), batch_size=64, execution="graph"))
    (card,) = answer.cards
    (expected,) = estimate(
        EstimateRequest(workload=TOWER, gpus=(OLD,), batch_size=64, execution="graph")
    ).estimates
    assert card.estimate.device_memory_bytes == expected.device_memory_bytes
    assert card.map.execution == "graph"
    buffers = sum(card.map.parts_bytes.values())
    # the estimate adds the workspaces of libraries, which are not in the plan, and in graph mode
    # what the allocator gives out beyond what it is asked for
    more = expected.memory_parts_bytes["workspace"] + expected.memory_parts_bytes["allocator"]
    plan = expected.peak_memory_bytes.best - more
    assert buffers == pytest.approx(plan, rel=0.01)
    need = card.map.allocator
    assert need is not None
    assert need.pool_bytes == expected.usable_memory_bytes - expected.context_bytes
    assert answer.exit_code == 0
    assert answer.findings == ()


def test_what_fits_for_certain_needs_nothing_and_costs_one_more_trace_at_most() -> None:
    told: list[str] = []
    answer = memory(Asked(workload=TOWER, gpus=(OLD,), batch_size=8, plan=True),
                    progress=told.append)  # fmt: skip
    (plan,) = answer.plans
    assert plan.chosen == plan.base
    assert plan.chosen.time_ratio.best == 1.0
    assert plan.safe is None
    assert plan.recipe is not None
    assert (plan.recipe.accumulation, plan.recipe.remat) == (1, "")
    assert not [line for line in told if "weighing" in line]


def test_a_batch_that_does_not_fit_is_split_as_recipe_auto_splits_it() -> None:
    plan = planned(Asked(workload=TOWER, gpus=(OLD,), batch_size=256, execution="xla", plan=True))
    assert plan.chosen
    assert not plan.base.option.fits
    one = plan.chosen.option
    assert one.accumulation > 1
    assert (one.remat, one.optimizer) == ("", "")
    assert plan.chosen.learns_differently == ("batch statistics",)
    assert plan.recipe
    assert (plan.recipe.batch_size, plan.recipe.accumulation) == (one.batch_size, one.accumulation)
    assert f"BatchNormalization sees {one.batch_size}" in plan.reasons["accumulation"]
    assert plan.safe
    assert plan.safe.option.fits_surely
    assert plan.safe.option.update_s.best >= one.update_s.best
    alone = auto_recipe(TOWER, gpu=OLD)  # at the 32 samples of Keras: another batch, one chooser
    assert alone.chosen
    held = planned(Asked(workload=TOWER, gpus=(OLD,), execution=alone.chosen.execution, plan=True))
    assert held.chosen
    assert held.chosen.option == alone.chosen


def test_recomputing_is_weighed_where_the_step_may_not_fit() -> None:
    plan = planned(Asked(workload=TOWER, gpus=(OLD,), batch_size=256, plan=True))
    again = [one for one in plan.options if one.option.remat]
    assert again
    for one in again:
        assert one.option.recompute_ratio > 1.1
        assert one.time_ratio.best > plan.options[0].time_ratio.best
    assert plan.weighed == 2 * 9  # 9 splits of 256, with blocks computed again and without


def test_the_precision_of_the_card_is_weighed_unless_one_is_named() -> None:
    asked = Asked(workload=TOWER, gpus=(T4,), batch_size=2048, plan=True)
    both = planned(asked)
    assert {one.option.precision for one in both.options} == {"float32", "mixed_float16"}
    assert both.chosen
    assert both.recipe
    assert both.recipe.precision == "mixed_float16"
    width = both.chosen.time_ratio
    assert width.high / width.best > 1.3  # 0.31 in the logarithm, measured
    named = Asked(workload=TOWER, gpus=(T4,), batch_size=2048, plan=True, precision="float32")
    held = planned(named)
    assert {one.option.precision for one in held.options} == {"float32"}
    assert held.recipe
    assert held.recipe.precision == "float32"


@pytest.mark.slow
def test_another_optimizer_comes_only_where_nothing_else_fits_and_is_named() -> None:
    plan = planned(Asked(workload=STACK, gpus=(SMALL,), batch_size=64, execution="xla", plan=True))
    assert plan.chosen
    one = plan.chosen.option
    assert one.optimizer == "sgd"  # which keeps nothing
    assert "optimizer" in plan.chosen.learns_differently
    assert any("compile the model with sgd" in note for note in plan.notes)
    assert any("may fit too" in note for note in plan.notes)  # its range reaches below the limit
    # weights and gradients, without two values of Adam for each weight
    state = 2 * 4 * (6 * 4096 * 4097 + 4097 * 10)
    saved = plan.base.option.device_memory_bytes.best - one.device_memory_bytes.best
    assert saved == pytest.approx(state, rel=0.08)
    kept = Asked(workload=STACK, gpus=(SMALL,), batch_size=64, execution="xla", plan=True,
                 optimizers=())  # fmt: skip
    (none,) = memory(kept).plans
    assert none.chosen is None
    assert none.closest
    assert none.closest.option.optimizer == ""


def test_where_nothing_fits_the_closest_is_told_and_the_exit_code_is_one() -> None:
    answer = memory(Asked(workload=WIDE, gpus=(OLD,), batch_size=8, plan=True))
    (plan,) = answer.plans
    assert (plan.chosen, plan.recipe, plan.options) == (None, None, ())
    assert plan.closest
    assert plan.closest.option.optimizer == "sgd"
    (finding,) = answer.findings
    assert finding.cause == "mem.nothing_fits"
    assert "wide" in finding.summary
    assert finding.fix[0].command.startswith("tfdyno advise ")
    assert answer.exit_code == 1
    assert any("do not go well into this machine" in note for note in plan.notes)


@pytest.mark.slow
def test_exact_compiles_the_chosen_option_at_its_own_batch() -> None:
    asked = Asked(workload=STACK, gpus=(SMALL,), batch_size=64, execution="xla", plan=True,
                  route="exact", optimizers=())  # fmt: skip
    plan = planned(asked)
    assert plan.chosen
    # the compiled plan holds less than the quick one, which found that nothing fits
    assert plan.chosen.option.verified
    assert plan.chosen.option.memory_made_by == "exact"
    assert plan.chosen == plan.base
    assert not any("--route exact" in note for note in plan.notes)


def test_a_log_shows_fragments_and_names_no_card(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text(ASKED_FOR + (DATA / "oom" / "tf213_gpu.log").read_text())
    answer = memory(Asked(log=str(log)))
    assert [one.cause for one in answer.findings] == ["mem.oom_model", "mem.fragmented"]
    assert answer.oom
    assert answer.oom.is_fragmented
    assert "2.71 GiB are free, but the largest free piece has 220 MiB" in answer.findings[1].summary
    assert answer.exit_code == 1
    assert answer.cards == ()
    with pytest.raises(UsageError, match="does not name the GPU"):
        memory(Asked(workload=TOWER, log=str(log)))


def test_a_log_without_exhausted_memory_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "fine.log"
    log.write_text("Epoch 1/2\nAll is well.\n")
    with pytest.raises(UsageError, match=r"shows no exhausted memory.*doctor --explain"):
        memory(Asked(log=str(log)))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked(), "name a workload"),
        (Asked(log="x", plan=True), "go with a workload"),
        (Asked(workload=TOWER), "name the card with --gpu"),
        (Asked(workload=TOWER, gpus=(T4,) * 9), "8 cards"),
        (Asked(workload=TOWER, gpus=(T4,), execution="eager-torch"), "not one of xla, graph"),
        (Asked(workload=TOWER, gpus=(T4,), batch_size=1 << 30), "not possible"),
    ],
)
def test_what_has_no_answer_is_refused_before_any_work(asked: Asked, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        memory(asked)


hub = pytest.mark.skipif(find_spec("keras_hub") is None, reason="KerasHub is not installed")


@hub
def test_a_preset_that_no_card_trains_whole_is_trained_by_adapters() -> None:
    # 355 million weights with their gradients and AdamW are 5.7 GB; they alone are 1.4
    large = parse_reference("keras_hub:gpt2_medium_en", fine_tune=FineTune(sequence_length=64))
    told: list[str] = []
    plan = planned(
        Asked(workload=large, gpus=(find("gtx-1050-ti"),), batch_size=4, plan=True,
              precision="float32"),
        told=told,
    )  # fmt: skip
    assert not plan.base.option.fits
    assert plan.chosen
    adapters = FineTune(sequence_length=64, lora_rank=8)
    assert {one.option.fine_tune for one in plan.options} == {adapters}
    assert plan.chosen.option.fine_tune == adapters
    assert plan.chosen.learns_differently == ("adapters alone",)
    assert "In Keras, before compile: " in "".join(plan.notes)
    assert "model.backbone.enable_lora(8)." in "".join(plan.notes)
    (shared,) = plan.sharding
    assert shared.batch_size == 4
    after = told[told.index("weighing LoRA 8 in float32") :]
    assert not [line for line in after if line.startswith("tracing")]  # it was traced beside
