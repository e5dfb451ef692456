"""Which program of a trace serves a card: under JAX, with cuDNN's attention where that is there."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tfdyno.catalog.gpus import find
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose._programs import fuses_attention, quick_program
from tfdyno.jobs.choose.estimate import EstimateRequest, estimate
from tfdyno.jobs.choose.predict import Predictor, StepSettings, predictor_for
from tfdyno.jobs.choose.reference import parse_reference

MODELS = Path(__file__).parents[2] / "data" / "models" / "attention.py"
T4, A100, H100 = find("t4"), find("a100-sxm4-80gb"), find("h100-sxm5-80gb")
pytestmark = pytest.mark.tf


@cache
def predictor(name: str, software: str = "jax") -> Predictor:
    workload = parse_reference(f"{MODELS}:{name}", software=software)
    return predictor_for(workload, StepSettings(), batch_size=16, progress=silent)


def kinds(made: Predictor, slug: str, execution: str = "xla") -> set[str]:
    return {one.kind for one in quick_program(made.traced, find(slug), execution).kernels}


def test_under_jax_attention_is_one_kernel_from_ampere_on() -> None:
    made = predictor("narrow")
    assert "attention" not in kinds(made, "t4")
    assert "attention" in kinds(made, "l4")
    assert [fuses_attention(made.traced, one) for one in (T4, A100, H100)] == [False, True, True]
    assert made.traced.wide_attention is None


def test_heads_wider_than_128_are_fused_from_hopper_on() -> None:
    traced = predictor("wide").traced
    assert [fuses_attention(traced, one) for one in (T4, A100, H100)] == [False, False, True]
    assert traced.fused_attention is None


def test_tensorflow_computes_every_score() -> None:
    traced = predictor("narrow", "").traced
    assert not any(fuses_attention(traced, one) for one in (T4, A100, H100))


def test_what_is_fused_takes_less_memory_and_time_and_says_that_nobody_measured_it() -> None:
    made = predictor("narrow")
    plain = replace(made, traced=replace(made.traced, fused_attention=None))
    fused, whole = made.estimate(H100), plain.estimate(H100)
    # 512 x 512 scores of 4 heads and 16 samples in two layers, in 16 bits each
    scores = 2 * 16 * 4 * 512 * 512 * 2
    assert whole.peak_memory_bytes.best - fused.peak_memory_bytes.best > scores
    assert fused.step_s.best < whole.step_s.best
    (told,) = set(fused.warnings) - set(whole.warnings)
    assert told.startswith("Keras on JAX lets cuDNN compute attention in one kernel")


def test_a_program_of_the_compiler_does_not_stand_for_cudnns() -> None:
    made = predictor("narrow")
    compiled = replace(made, exact={"8.x": made.traced.program, "7.x": made.traced.program})
    assert compiled.program_for(A100) is quick_program(made.traced, A100)
    assert compiled.program_for(T4) is made.traced.program
    answer = estimate(EstimateRequest(workload=made.traced, gpus=(A100,), batch_size=16,
                                      route="exact"))  # fmt: skip
    assert answer.notes[0].startswith("The quick answer is kept: XLA compiles cuDNN's attention")
    assert answer.estimates[0].made_by["memory"] == "quick"
