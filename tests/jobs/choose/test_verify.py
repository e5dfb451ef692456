from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.advice import candidate, estimate

from tfdyno.catalog.gpus import find, parse_list
from tfdyno.core.base.errors import ToolError
from tfdyno.jobs.child.worker import silent
from tfdyno.jobs.choose import verify as _verify
from tfdyno.jobs.choose.advise import Outcome, Request, advise
from tfdyno.jobs.choose.compile import compile_exact
from tfdyno.jobs.choose.market import Conditions
from tfdyno.jobs.choose.predict import Predictor, predictor_for
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.words.choose.advice import fit_words

MODEL = f"{Path(__file__).parents[1].parent / 'data' / 'models' / 'small.py'}:convnet"
T4 = find("t4")
OPEN = 29_000
"""A batch that takes more than half of a card of 16 GB: a T4 would hold 54,237 by the estimate."""


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return predictor_for(parse_reference(MODEL), batch_size=64, progress=silent)


def answer(gpu: str, told: list[str], **changes: object) -> Outcome:
    asked = Request(
        workload=parse_reference(MODEL),
        conditions=Conditions(gpus=parse_list(gpu), counts=(1,)),
        batch_size=OPEN,
        samples=1_000_000,
    )
    return advise(replace(asked, **changes), progress=told.append)  # type: ignore[arg-type]


def test_the_pick_is_compiled_at_the_batch_of_the_run_and_says_so() -> None:
    told: list[str] = []
    advice = answer("t4", told).advice
    pick = advice.pick("balanced")
    assert pick
    assert pick.candidate.estimate.fits == "yes"
    assert pick.candidate.estimate.fits_verified
    assert "verifying that T4 holds batch 29,000" in told
    assert fit_words(pick.candidate).endswith(", compiled at this very batch.")
    assert not [note for note in advice.notes if "verified" in note]


def test_the_proof_is_cached_and_then_nothing_is_shown_before_the_answer() -> None:
    answer("t4", [])
    told: list[str] = []
    early: list[Outcome] = []
    asked = Request(
        workload=parse_reference(MODEL),
        conditions=Conditions(gpus=(T4,), counts=(1,)),
        batch_size=OPEN,
        samples=1_000_000,
    )
    advise(asked, progress=told.append, first=early.append)
    assert not [line for line in told if line.startswith(("compiling", "importing"))]
    assert early == []


@pytest.mark.parametrize("execution", ["", "graph"])
def test_a_pick_with_room_to_spare_is_not_compiled(execution: str) -> None:
    told: list[str] = []
    advice = answer("t4", told, batch_size=64, execution=execution).advice
    pick = advice.pick("balanced")
    assert pick
    assert pick.candidate.estimate.fits == "yes"
    assert not pick.candidate.estimate.fits_verified
    assert not [line for line in told if line.startswith(("compiling", "verifying"))]
    assert (advice.open_fits, advice.notes) == ((), ())


def test_what_was_compiled_before_makes_no_further_compile_needed(predictor: Predictor) -> None:
    one = candidate("T4", count=1, estimate=estimate(batch_size=64))
    compiled = replace(predictor, exact={"7.x": predictor.traced.program})
    assert not _verify.needs_proof(compiled, one, T4)
    full = replace(one, estimate=estimate(batch_size=OPEN))
    assert _verify.needs_proof(compiled, full, T4)


def test_a_share_of_a_card_is_verified_with_the_memory_of_the_share() -> None:
    third = Conditions(gpus=parse_list("a10"), providers=("azure",), counts=(1,))
    advice = answer("a10", [], batch_size=16_000, conditions=third).advice
    pick = advice.pick("balanced")
    assert pick
    assert pick.candidate.offer
    assert pick.candidate.offer.gpu_fraction < 0.5
    assert pick.candidate.estimate.fits_verified


def test_the_exact_route_verifies_its_pick_whatever_the_estimate_says() -> None:
    told: list[str] = []
    advice = answer("t4", told, batch_size=64, route="exact").advice
    pick = advice.pick("balanced")
    assert pick
    assert pick.candidate.estimate.fits_verified
    assert "verifying that T4 holds batch 64" in told


def test_the_quick_route_says_that_it_verifies_nothing_where_that_matters() -> None:
    advice = answer("t4", [], route="quick", batch_size=38_000).advice
    assert advice.open_fits == ("Tesla T4",)
    assert advice.notes == (
        "Memory of T4 was not verified by a compile at batch 38,000 itself: "
        "--route quick compiles nothing.",
    )
    assert answer("t4", [], route="quick", batch_size=64).advice.notes == ()


def test_a_pick_that_turns_out_too_small_makes_room_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = answer("t4,rtx-a4000", []).advice.pick("balanced")
    assert first

    def swollen(*given: object, **named: object) -> object:
        program = compile_exact(*given, **named)  # type: ignore[arg-type]
        if named["family"] != {"t4": "7.x", "rtx-a4000": "8.x"}[first.candidate.gpu]:
            return program
        peak = replace(program.buffers.peak_bytes, fixed=1e12)
        return replace(program, buffers=replace(program.buffers, peak_bytes=peak, envelope=()))

    monkeypatch.setattr("tfdyno.jobs.choose.verify.compile_exact", swollen)
    advice = answer("t4,rtx-a4000", []).advice
    second = advice.pick("balanced")
    assert second
    assert second.candidate.gpu != first.candidate.gpu
    assert second.candidate.estimate.fits_verified
    out = [one for one in advice.ranking if one.gpu == first.candidate.gpu]
    assert {one.verdict for one in out if one.estimate.execution == "xla"} == {"does not fit"}


def test_a_card_that_nothing_compiles_for_is_named(predictor: Predictor) -> None:
    one = candidate("T4", estimate=estimate(batch_size=64))
    same, doubt = _verify.prove(predictor, one, T4, failed=["7.x"], progress=silent)
    assert same is predictor
    assert doubt.endswith("at batch 64 itself: nothing could be compiled for it.")


def test_a_compile_that_fails_leaves_the_answer_and_a_sentence(
    predictor: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_given: object, **_named: object) -> object:
        raise ToolError("the compiler ran out of memory")

    monkeypatch.setattr("tfdyno.jobs.choose.verify.compile_exact", fails)
    compiled = replace(predictor, exact={"7.x": predictor.traced.program})
    one = candidate("T4", estimate=estimate(batch_size=64))
    same, doubt = _verify.prove(compiled, one, T4, progress=silent)
    assert same is compiled
    assert doubt == (
        "Memory of T4 was not verified by a compile at batch 64 itself: "
        "the compiler ran out of memory."
    )


def test_a_step_without_xla_is_not_compiled_and_says_so(predictor: Predictor) -> None:
    told: list[str] = []
    compiled = replace(predictor, exact={"7.x": predictor.traced.program})
    one = candidate("T4", estimate=estimate(batch_size=64, execution="graph"))
    same, doubt = _verify.prove(compiled, one, T4, progress=told.append)
    assert (same, told) == (compiled, [])
    assert doubt.endswith("at batch 64 itself: the step runs without XLA there.")


def test_advice_on_a_step_without_xla_compiles_nothing() -> None:
    told: list[str] = []
    advice = answer("t4", told, execution="graph", batch_size=50_000).advice
    pick = advice.pick("balanced")
    assert pick
    assert pick.candidate.estimate.execution == "graph"
    assert pick.candidate.estimate.made_by["memory"] == "quick"
    assert not [line for line in told if line.startswith(("compiling", "verifying"))]
    assert any(note.endswith("the step runs without XLA there.") for note in advice.notes)
