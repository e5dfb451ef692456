from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.model.steps import convolution, kernel, program, trace
from tests.turns import loops_of

from tfdyno.catalog.clusters import cluster_of
from tfdyno.catalog.gpus import all_gpus, find
from tfdyno.catalog.time_model import memory_model, time_model
from tfdyno.core.base.interval import Scaled
from tfdyno.model.time.estimate import StepCase, estimate_step

if TYPE_CHECKING:
    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.program import Program
    from tfdyno.core.choose.workload import Mode

NET = program(
    *[convolution(flops=4e9 / 50, traffic_bytes=4e5, window=(3, 3)) for _ in range(50)],
    *[kernel("loop", traffic_bytes=2e6) for _ in range(100)],
    kernel("gemm", flops=4e6),
    peak=Scaled(fixed=0.3e9, per_sample=0.05e9),
)


def estimate(
    gpu: str = "a100-sxm4-40gb",
    *,
    made: Program = NET,
    batch_size: int = 64,
    replicas: int = 1,
    precision: str = "",
    policy: str = "mixed_float16",
    execution: str = "xla",
    mode: Mode = "train",
    **named: Any,
) -> Estimate:
    card = find(gpu)
    case = StepCase(
        trace=trace(policy=policy, parameters=25_000_000),
        gpu=card,
        batch_size=batch_size,
        replicas=replicas,
        cluster=cluster_of(card, replicas) if replicas > 1 and mode == "train" else None,
        precision=precision,
        mode=mode,
        execution=execution,
        time_model=time_model(),
        memory_model=memory_model(),
    )
    return estimate_step(case, time_program=made, memory_program=made, **named)


def with_dtype(dtype: str) -> Program:
    return replace(NET, kernels=tuple(replace(k, dtype=dtype) for k in NET.kernels))


def test_causes_add_up_to_the_step_on_one_card() -> None:
    found = estimate()
    assert sum(found.terms_s.values()) == pytest.approx(found.step_s.best)
    assert found.bound_by == max(found.terms_s, key=lambda cause: found.terms_s[cause])


def test_layers_and_classes_add_up_to_the_device_time() -> None:
    found = estimate()
    device_s = sum(found.class_s.values())
    assert sum(layer.step_s for layer in found.layers) == pytest.approx(device_s)
    assert device_s <= found.step_s.best
    assert {layer.layer for layer in found.layers} == {"conv", "layer"}


def test_flops_and_utilisation_are_those_of_the_useful_work() -> None:
    found = estimate(batch_size=10)
    assert found.flops_per_step == pytest.approx(10 * (4e9 + 4e6))
    peak = 108 * 2048 * 1.41e9
    assert found.mfu_ratio == pytest.approx(found.flops_per_step / found.step_s.best / peak)


def test_strict_float32_is_slower_than_what_tensorflow_does_on_ampere() -> None:
    single = with_dtype("f32")
    default = estimate(made=single, policy="float32")
    tf32 = estimate(made=single, policy="float32", precision="tf32")
    strict = estimate(made=single, policy="float32", precision="float32")
    assert default.step_s == tf32.step_s
    assert strict.terms_s["compute"] > 1.3 * default.terms_s["compute"]


def test_mixed_precision_pays_no_compute_on_pascal_and_says_so() -> None:
    half = estimate("gtx-1080-ti")
    single = estimate("gtx-1080-ti", made=with_dtype("f32"), policy="float32")
    assert half.terms_s["compute"] == pytest.approx(single.terms_s["compute"])
    assert any("float16" in warning for warning in half.warnings)


def test_a_missing_type_is_priced_as_float32_with_a_warning() -> None:
    found = estimate("t4", made=with_dtype("bf16"), policy="mixed_bfloat16")
    assert found.terms_s["compute"] > estimate("t4").terms_s["compute"]
    assert any("bfloat16" in warning for warning in found.warnings)


def test_replicas_add_communication_and_throughput() -> None:
    one, eight = estimate(), estimate(replicas=8)
    assert eight.step_s.best > one.step_s.best
    assert eight.terms_s["communication"] > 0.0 == one.terms_s["communication"]
    assert eight.global_batch_size == 512
    assert one.samples_per_s.best < eight.samples_per_s.best < 8 * one.samples_per_s.best
    assert (eight.link, one.link) == ("nvlink3-nvswitch-a100", "")


def test_a_program_of_one_batch_refuses_another() -> None:
    fixed = replace(NET, marker=0)
    with pytest.raises(ValueError, match="holds at batch 296 only, not at 64"):
        estimate(made=fixed)


def test_replicas_that_serve_need_no_link_and_do_not_wait_for_each_other() -> None:
    one, four = estimate(mode="infer"), estimate(mode="infer", replicas=4)
    assert four.step_s == one.step_s
    assert four.samples_per_s.best == pytest.approx(4 * one.samples_per_s.best)
    assert four.terms_s["communication"] == 0.0


EXACT = replace(NET, route="exact", family="8.x", marker=0, batch_size=64)


def test_a_program_of_one_batch_says_that_its_limit_is_not_known() -> None:
    found = estimate(made=EXACT)
    assert found.max_batch_size is None
    assert any("the batch of 64 is part of the model" in warning for warning in found.warnings)


@pytest.mark.parametrize(("fixed", "limit"), [(30e9, 64), (60e9, 63)])
def test_what_was_compiled_at_the_batch_corrects_the_limit_of_the_plan_that_grows(
    fixed: float, limit: int
) -> None:
    # the growing plan alone: less than 64 at 0.7 GB a sample, 64 and more at 0.05
    grows = 0.7e9 if limit == 64 else 0.05e9
    growing = replace(NET, buffers=program(peak=Scaled(fixed=0.3e9, per_sample=grows)).buffers)
    plan = program(peak=Scaled(fixed=fixed)).buffers
    found = estimate(made=replace(EXACT, buffers=plan), limit_program=growing)
    assert found.max_batch_size == limit


@pytest.mark.parametrize(
    ("fixed", "execution", "verified", "fits", "said"),
    [
        (39e9, "xla", False, "may not", False),
        (39e9, "xla", True, "yes", True),  # the best figure decides
        (90e9, "xla", True, "no", True),
        (20e9, "graph", True, "yes", True),  # 1.15 times as much would fit, too
        (36e9, "graph", True, "may not", False),
        (20e9, "graph", False, "yes", False),
    ],
)
def test_a_compile_at_the_very_batch_settles_what_xla_runs(
    fixed: float, execution: str, verified: bool, fits: str, said: bool
) -> None:
    plan = program(peak=Scaled(fixed=fixed)).buffers
    one = estimate(made=replace(EXACT, buffers=plan), execution=execution, verified=verified)
    assert (one.fits, one.fits_verified) == (fits, said)


def test_energy_of_an_epoch_needs_the_length_of_the_data() -> None:
    assert estimate().energy_kwh_per_epoch is None


def test_replicas_without_a_link_are_refused() -> None:
    case = StepCase(
        trace=trace(),
        gpu=find("t4"),
        batch_size=8,
        replicas=2,
        precision="",
        mode="train",
        execution="graph",
        time_model=time_model(),
        memory_model=memory_model(),
    )
    with pytest.raises(ValueError, match="2 replicas need a link between them"):
        estimate_step(case, time_program=NET, memory_program=NET)
    with pytest.raises(ValueError, match="batch_size and replicas >= 1, got 64 and 0"):
        estimate(replicas=0)


def test_the_whole_catalogue_answers_within_a_second() -> None:
    large = replace(NET, kernels=NET.kernels * 10)
    slugs = [card.slug for card in all_gpus() if card.vendor == "NVIDIA"]

    def answer_all() -> None:
        for slug in slugs:
            answer(find(slug))

    def answer(card: Gpu) -> None:
        case = StepCase(
            trace=trace(),
            gpu=card,
            batch_size=64,
            precision="",
            mode="train",
            execution="xla",
            time_model=time_model(),
            memory_model=memory_model(),
        )
        estimate_step(case, time_program=large, memory_program=large, details=False)

    assert len(slugs) > 100
    assert loops_of(answer_all) < 100.0
