from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.advice import candidate, estimate

from tfdyno.catalog.gpus import find, parse_list
from tfdyno.core.errors import ToolError
from tfdyno.jobs import _verify
from tfdyno.jobs._market import Conditions
from tfdyno.jobs._predict import Predictor, predictor_for
from tfdyno.jobs._worker import silent
from tfdyno.jobs.advise import Outcome, Request, advise
from tfdyno.jobs.compile import compile_exact
from tfdyno.jobs.reference import parse_reference
from tfdyno.view.advice_words import fit_words

MODEL = f"{Path(__file__).parent.parent / 'data' / 'models' / 'small.py'}:convnet"
T4 = find("t4")


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return predictor_for(parse_reference(MODEL), batch_size=64, progress=silent)


def answer(gpu: str, told: list[str], **changes: object) -> Outcome:
    asked = Request(
        workload=parse_reference(MODEL),
        conditions=Conditions(gpus=parse_list(gpu)),
        batch_size=64,
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
    assert "verifying that T4 holds batch 64" in told
    assert fit_words(pick.candidate).endswith(", compiled at this very batch.")
    assert not [note for note in advice.notes if "verified" in note]


def test_the_proof_is_cached() -> None:
    answer("t4", [])
    told: list[str] = []
    answer("t4", told)
    assert not [line for line in told if line.startswith(("compiling", "importing"))]


def test_the_quick_route_says_that_it_verifies_nothing() -> None:
    advice = answer("t4", [], route="quick").advice
    assert advice.notes == (
        "Memory of T4 was not verified by a compile at batch 64 itself: "
        "--route quick compiles nothing.",
    )


def test_a_pick_that_turns_out_too_small_makes_room_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = answer("t4,l4", []).advice.pick("balanced")
    assert first

    def swollen(*given: object, **named: object) -> object:
        program = compile_exact(*given, **named)  # type: ignore[arg-type]
        if named["family"] != {"t4": "7.x", "l4": "8.x"}[first.candidate.gpu]:
            return program
        peak = replace(program.buffers.peak_bytes, fixed=1e12)
        return replace(program, buffers=replace(program.buffers, peak_bytes=peak, envelope=()))

    monkeypatch.setattr("tfdyno.jobs._verify.compile_exact", swollen)
    advice = answer("t4,l4", []).advice
    second = advice.pick("balanced")
    assert second
    assert second.candidate.gpu != first.candidate.gpu
    assert second.candidate.estimate.fits_verified
    out = [one for one in advice.ranking if one.gpu == first.candidate.gpu]
    assert {one.verdict for one in out if one.estimate.execution == "xla"} == {"does not fit"}


def test_a_card_that_nothing_compiles_for_is_named(predictor: Predictor) -> None:
    one = candidate("T4", estimate=estimate(batch_size=64))
    same, doubt = _verify.prove(predictor, one, T4, progress=silent)
    assert same is predictor
    assert doubt.endswith("at batch 64 itself: nothing could be compiled for it.")


def test_a_compile_that_fails_leaves_the_answer_and_a_sentence(
    predictor: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_given: object, **_named: object) -> object:
        raise ToolError("the compiler ran out of memory")

    monkeypatch.setattr("tfdyno.jobs._verify.compile_exact", fails)
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
    advice = answer("t4", told, execution="graph").advice
    pick = advice.pick("balanced")
    assert pick
    assert pick.candidate.estimate.execution == "graph"
    assert pick.candidate.estimate.made_by["memory"] == "quick"
    assert not [line for line in told if line.startswith(("compiling", "verifying"))]
    assert any(note.endswith("the step runs without XLA there.") for note in advice.notes)
