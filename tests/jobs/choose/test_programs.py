"""Which program of a trace serves a card: under JAX, with cuDNN's attention where that is there."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tfdyno.catalog.gpus import all_gpus, find
from tfdyno.core.base.errors import ToolError
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose._programs import fuses_attention, quick_program
from tfdyno.jobs.choose._request import Request
from tfdyno.jobs.choose.advise import advise
from tfdyno.jobs.choose.compile import cached_exact, cached_real, compile_exact
from tfdyno.jobs.choose.estimate import EstimateRequest, estimate
from tfdyno.jobs.choose.exact import add_family
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


def test_every_card_of_the_catalogue_is_answered() -> None:
    made = predictor("wide")
    for gpu in all_gpus():
        assert made.estimate(gpu).step_s.best > 0.0, gpu.slug


def test_no_compile_stands_for_cudnns_attention() -> None:
    """Not asked for, not kept from before, and not as the proof of a pick."""
    traced = predictor("narrow").traced
    reason = "XLA compiles cuDNN's attention only where the card is"
    with pytest.raises(ToolError, match=reason):
        compile_exact(traced, family="8.x", batch_size=16, real=True, gpu=A100)
    assert cached_exact(traced, family="8.x") is None
    assert cached_real(traced, family="9.x", batch_size=16, gpu=H100) is None
    made, told = add_family(predictor("narrow"), "8.x", progress=silent)
    assert (made.exact, told) == ({}, f"{reason}.")
    answer = estimate(EstimateRequest(workload=traced, gpus=(A100,), batch_size=16, route="exact"))
    assert answer.notes[0] == f"compute capability 8.x keeps the quick answer: {reason}."
    (one,) = answer.estimates
    assert (one.made_by["memory"], one.max_batch_verified) == ("quick", False)


def test_advice_says_that_nobody_measured_what_its_picks_fuse() -> None:
    def notes(software: str) -> str:
        request = Request(workload=predictor("narrow", software).traced, batch_size=16,
                          route="quick", details=False)  # fmt: skip
        return " ".join(advise(request).advice.notes)

    told = "Keras on JAX lets cuDNN compute attention in one kernel"
    assert told in notes("jax")
    assert told not in notes("")
