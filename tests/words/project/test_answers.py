"""words/project/answers: what each step found, in a sentence or two."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import past_runs
from tests.past_runs import FIRST, STEPS, project_run, step_run
from tests.words.project.test_key_figures import JSON

from tfdyno.core.project.report import RunTold, StepTold
from tfdyno.view.project.headings import heading, headline
from tfdyno.words.project.answers import answer, settings_words
from tfdyno.words.project.key_figures import key_figures, kind_of


def step(name: str, document: dict[str, Any], command: str = "") -> StepTold:
    run = step_run(name)
    kind = kind_of(command or run.command, document)
    return StepTold(run=run, kind=kind, state="whole", document=document,
                    figures=key_figures(kind, document))  # fmt: skip


def recorded(name: str) -> StepTold:
    return step(name, past_runs.document(STEPS[name][1]))


def told(*steps: StepTold) -> RunTold:
    return RunTold(run=project_run(FIRST, *(one.run for one in steps)), steps=steps)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("choose", "Advised: Tesla T4 (aws g4dn.xlarge us-east-2, spot) for $0.0098"),
        ("estimate", "On l4 a step takes 2.10 ms"),
        ("train", "Trained for 6 epochs: accuracy 100 % and loss 0.285 at the end."),
        ("speed", "samples/s ("),
        ("faster", "Tuning gained 3.13x"),
        ("look", "works on one element at a time"),
        ("export", "onnx and litert-int8 passed their gates. Accuracy: onnx 100 % of 256 rows"),
        ("keep", "Kept as shapes:1."),
        ("phones", "It fits on 7 of 7 devices. A call takes"),
        ("size", "1 machine with l4 for 1,000,000 requests a day"),
        ("load", "It answers up to 925 requests/s with p99 within 50 ms."),
    ],
)
def test_a_recorded_step_says_what_it_found(name: str, words: str) -> None:
    assert words in answer(recorded(name))


def test_what_was_estimated_says_so_and_what_was_measured_says_where() -> None:
    for name in ("choose", "estimate", "size"):
        assert answer(recorded(name)).rstrip(".").endswith("estimated")
    assert "measured on desk" in answer(recorded("speed"))


def test_a_proven_fix_is_told_with_its_interval_and_another_with_its_reason() -> None:
    raw = past_runs.document("diagnose")
    assert "The fix was measured and is not kept: it is not faster" in answer(step("look", raw))
    kept = raw["proofs"][0] | {"kept": True, "ratio": 1.8, "interval": [1.7, 1.9]}
    assert "The fix is proven: 1.80x (1.70–1.90, 99 %) as fast." in answer(
        step("look", raw | {"proofs": [kept]})
    )
    assert "No fix was tried." in answer(step("look", raw | {"proofs": []}))


def test_an_export_that_failed_its_gate_says_which_and_why() -> None:
    raw = past_runs.document("export")
    raw["formats"][1] |= {"failures": ["accuracy falls by 2.00 points"], "accuracy_after": 0.98}
    said = answer(step("export", raw))
    assert said.startswith("onnx passed its gates. Accuracy: onnx 100 %")
    assert said.endswith("litert-int8 did not pass its gates: accuracy falls by 2.00 points.")
    raw["formats"][0] |= {"accuracy_before": 0.91, "accuracy_after": 0.905}
    assert "onnx 90.5 % of 256 rows (−0.50 points)" in answer(step("export", raw))
    for one in raw["formats"]:
        one |= {"accuracy_before": None, "accuracy_after": None}
    assert "Accuracy was not looked at." in answer(step("export", raw))


def test_a_failed_load_test_gives_no_figure() -> None:
    raw = past_runs.document("load") | {"verdict": "failed", "faults": ["3 answers were wrong"]}
    assert answer(step("load", raw)) == "The load test failed: 3 answers were wrong."


def tuned(**changes: Any) -> StepTold:
    return step("faster", past_runs.document("tune") | changes, "tune")


def trial(status: str, *, ran: bool) -> dict[str, Any]:
    first: dict[str, Any] = past_runs.document("tune")["trials"][0]
    return first | {"status": status, "ran": ran}


def test_a_tuning_says_what_it_gained_out_of_the_trials_that_ran() -> None:
    gained = "Tuning gained 3.13x (2.30–4.27, 99 %) with steps_per_execution=8, "
    assert answer(tuned()).startswith(gained)
    assert answer(tuned()).endswith("input.cache=true out of 2 trials.")
    trials = [trial("measured", ran=True), trial("failed", ran=True), trial("same", ran=False),
              trial("hopeless", ran=False)]  # fmt: skip
    assert answer(tuned(trials=trials)).endswith("out of 2 trials, 1 of which failed.")
    reason = "It is faster. What is learned was not compared."
    proof = past_runs.document("tune")["proof"] | {"reason": reason}
    assert answer(tuned(proof=proof)).endswith("2 trials. What is learned was not compared.")


@pytest.mark.parametrize(
    "headline",
    [
        "Planned for l4, not measured: 3 of 8 trials would be run.",
        "The fastest that fits is batch_size=64 with 900 samples/s; the start does not fit.",
        "The starting recipe is the fastest of 8 trials.",
        "No trial could be measured to its end.",
    ],
)
def test_a_tuning_without_a_proof_says_what_its_own_headline_says(headline: str) -> None:
    trials = [trial("planned", ran=False)]
    told = tuned(headline=headline, proof=None, trials=trials)
    assert answer(told) == headline
    assert heading(told) == headline.rstrip(".")
    ran = tuned(headline=headline, proof=None, trials=[trial("measured", ran=True), *trials])
    assert answer(ran) == f"{headline} It made 1 trial."


def test_a_tuning_that_was_measured_and_not_kept_gained_nothing() -> None:
    proof = {"ratio": 1.8, "interval": [1.6, 2.0], "confidence_ratio": 0.99, "kept": False,
             "reason": "It is faster, but the losses differ."}  # fmt: skip
    told = tuned(headline="The starting recipe stays: x=1 is not proven to be better.", proof=proof)
    assert answer(told) == (
        "The starting recipe stays: x=1 is not proven to be better. Measured: 1.80x (1.60–2.00, "
        "99 %), and not kept. It is faster, but the losses differ. It made 2 trials."
    )
    assert "gained" not in heading(told)


def test_settings_are_told_however_they_are_written() -> None:
    assert settings_words({"a": 1, "b": "x"}) == "a=1, b=x"
    assert settings_words(["a=1", "b=x"]) == "a=1, b=x"
    assert settings_words(None) == ""


@given(st.sampled_from(list(STEPS)), st.data())
def test_a_document_with_anything_in_it_is_never_a_defect(name: str, data: st.DataObject) -> None:
    raw = past_runs.document(STEPS[name][1])
    for key in data.draw(st.sets(st.sampled_from(list(raw)), max_size=4)):
        raw[key] = data.draw(JSON)
    one = step(name, raw)
    assert isinstance(answer(one), str)
    assert isinstance(heading(one), str)
    headline(told(one))
