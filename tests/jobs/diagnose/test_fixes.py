"""jobs/diagnose_fixes: measured in turns, kept only if faster and with the same losses."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs import bench_child, diagnose_child
from tests.view.diagnoses import CACHE, DIAGNOSIS, FACTS, HEALTHY, LEAK, SERIAL, only

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.measure.bottleneck import Bottleneck, Gain, StepDiagnosis
from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.diagnose.diagnose import DiagnoseRequest, Examined
from tfdyno.jobs.diagnose.fixes import LEAST_RUNS, NOT_EXPECTED, fixes, proven

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value
    from tfdyno.core.measure.fix_proof import ProvenDiagnosis

ROOT = Path(__file__).parents[3]
AFTER = replace(FACTS, step_s=(0.05,) * 5, held_s=(0.045,), input=None)
"""What is seen of the steps with all that was kept."""
SIDES = "ABBAABBA"
"""Whose run is which, of the four of each side."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script, whose runs and losses are made up."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "src"))))
    monkeypatch.setattr("tfdyno.jobs.bench.run.RUN", bench_child.MADE_UP)
    monkeypatch.setattr("tfdyno.jobs.diagnose.diagnose.LOOK", diagnose_child.MADE_UP)
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    (tmp_path / "seen.json").write_text(json.dumps({"facts": to_builtins(AFTER)}))
    return tmp_path


@pytest.fixture(autouse=True)
def trained(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Losses by what a recipe changes; ``""`` stands for all others."""
    losses: dict[str, Any] = {"": [1.0, 0.5]}

    def train(request: Value, **_ways: Any) -> Value:
        cached = "cache" if request.recipe.input.cache else ""
        if isinstance(made := losses.get(cached, losses[""]), BaseException):
            raise made
        return SimpleNamespace(outcome=SimpleNamespace(history={"loss": made}, stopped=""))

    monkeypatch.setattr("tfdyno.jobs.diagnose.same_losses.train", train)
    return losses


def no_second_look() -> None:
    """Whoever looks again finds nothing out: all fixes are tried."""
    Path("seen.json").write_text(json.dumps({"fail": "KeyError: no label"}))


def planned(*fix_s: float, base_s: float = 0.1) -> None:
    """Step of every run: of a fix's side as given, one number for each fix; A's is the base."""
    plan: dict[str, object] = {}
    for fix, step_s in enumerate(fix_s):
        for at, side in enumerate(SIDES):
            plan[str(len(SIDES) * fix + at)] = {"step_s": base_s if side == "A" else step_s}
    Path("plan.json").write_text(json.dumps(plan))


def ran() -> int:
    log = Path("runs.jsonl")
    return len(log.read_text().splitlines()) if log.exists() else 0


def request(**fields: Any) -> DiagnoseRequest:
    base = DiagnoseRequest(workload=parse_reference("train.py"), folder=Path("results"))
    return replace(base, **fields)


def examined(diagnosis: StepDiagnosis = DIAGNOSIS) -> Examined:
    return Examined(facts=FACTS, diagnosis=diagnosis)


def last(asked: DiagnoseRequest | None = None, found: Examined | None = None) -> ProvenDiagnosis:
    *_, end = proven(asked or request(), found or examined())
    return end


def test_a_fix_that_is_faster_and_learns_the_same_is_kept_with_its_gain() -> None:
    planned(0.05)
    end = last(found=examined(only(SERIAL)))
    (proof,) = end.proofs
    assert (proof.verdict, proof.kept, proof.runs) == ("faster", True, LEAST_RUNS)
    assert proof.ratio == pytest.approx(2.0)  # 0.1 / 0.05
    assert proof.interval[0] <= 2.0 <= proof.interval[1]
    assert proof.before_s == pytest.approx(0.1, rel=0.01)
    assert proof.after_s == pytest.approx(0.05, rel=0.01)
    assert proof.agreement
    assert proof.agreement.agrees
    assert end.recipe == from_settings(SERIAL.settings)
    assert end.diagnosis.primary.proven_gain
    assert end.diagnosis.primary.proven_gain.best == proof.ratio
    assert end.diagnosis.findings == (end.diagnosis.primary,)
    assert len(proof.measurements) == 2


def test_the_next_fix_is_measured_on_top_of_what_was_kept() -> None:
    planned(0.05, 0.04)
    no_second_look()
    end = last()
    assert [proof.kept for proof in end.proofs] == [True, True]
    assert end.recipe == from_settings({**SERIAL.settings, **CACHE.settings})
    assert end.left == ()


def test_a_fix_that_is_no_faster_is_not_kept_and_no_losses_are_trained(
    trained: dict[str, Any],
) -> None:
    planned(0.1, 0.2)
    trained[""] = AssertionError("trained")
    end = last()
    assert [proof.verdict for proof in end.proofs] == ["no_difference", "slower"]
    assert [proof.kept for proof in end.proofs] == [False, False]
    assert all(proof.reason.startswith("It is not faster: ") for proof in end.proofs)
    assert end.recipe == Recipe()
    assert end.diagnosis.findings[1].proven_gain
    assert end.diagnosis.findings[1].proven_gain.best == pytest.approx(0.5)


def test_a_faster_fix_that_learns_something_else_is_not_kept(trained: dict[str, Any]) -> None:
    planned(0.05)
    trained["cache"] = [1.0, 0.9]
    end = last(found=examined(only(CACHE)))
    (proof,) = end.proofs
    assert (proof.verdict, proof.kept) == ("faster", False)
    assert proof.reason == "It is faster, but the losses do not agree."
    assert end.recipe == Recipe()


def test_a_fix_whose_losses_cannot_be_had_is_not_kept(trained: dict[str, Any]) -> None:
    from tfdyno.core.base.errors import UsageError

    planned(0.05)
    trained[""] = UsageError("train.py has a loop of its own")
    (proof,) = last(found=examined(only(SERIAL))).proofs
    assert not proof.kept
    assert proof.reason == (
        "It is faster, but its losses could not be compared: train.py has a loop of its own."
    )


def test_a_fix_that_cannot_be_measured_does_not_end_the_others() -> None:
    planned(0.1, 0.05)
    plan = json.loads(Path("plan.json").read_text())
    moved = {"1": {"fail": "the input options cannot be set for a generator"}}
    moved |= {str(int(at) - 6): now for at, now in plan.items() if int(at) >= 8}
    Path("plan.json").write_text(json.dumps({"0": {}, **moved}))
    end = last()
    assert end.proofs[0].verdict is None
    assert "the input options cannot be set for a generator" in end.proofs[0].reason
    assert end.proofs[1].kept
    assert end.recipe == from_settings(CACHE.settings)
    assert end.diagnosis.primary.proven_gain is None


def test_who_is_stopped_between_has_what_was_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    planned(0.05)
    no_second_look()
    steps = proven(request(), examined())
    seen = [next(steps), next(steps), next(steps)]
    monkeypatch.setattr("tfdyno.jobs.bench.bench.bench", _stopped)
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    assert [len(one.proofs) for one in seen] == [0, 1, 1]
    assert seen[0].left == (SERIAL.cause, CACHE.cause)
    assert seen[1].left == (CACHE.cause,)
    assert seen[1].recipe == from_settings(SERIAL.settings)


def _stopped(*_request: object, **_ways: object) -> None:
    raise KeyboardInterrupt


def test_what_is_measured_already_is_taken_when_asked_to() -> None:
    planned(0.05, 0.04)
    no_second_look()
    first = last()
    count = ran()
    assert last(request(resume=True)).proofs == first.proofs
    assert ran() == count
    last(request(), examined(only(SERIAL)))
    assert ran() > count


def test_a_bench_that_stopped_midway_goes_on_when_asked_to() -> None:
    planned(0.05)
    plan = json.loads(Path("plan.json").read_text())
    Path("plan.json").write_text(json.dumps({**plan, "3": {"fail": "the disk was pulled"}}))
    assert last(found=examined(only(SERIAL))).proofs[0].verdict is None
    assert ran() == 4  # three runs and the one that failed
    Path("plan.json").write_text(
        json.dumps({str(4 + at): {"step_s": 0.1 if side == "A" else 0.05}
                    for at, side in enumerate(SIDES[3:])})
    )  # fmt: skip
    assert last(request(resume=True), examined(only(SERIAL))).proofs[0].kept
    assert ran() == 4 + 5


def test_a_gain_that_is_sure_takes_the_least_runs_however_noisy_they_are() -> None:
    noisy = iter([0.1, 0.13] * 8)
    plan = {str(at): {"step_s": next(noisy) if side == "A" else 0.02}
            for at, side in enumerate(SIDES * 2)}  # fmt: skip
    Path("plan.json").write_text(json.dumps(plan))
    (proof,) = last(found=examined(only(SERIAL))).proofs
    assert proof.kept
    assert ran() == len(SIDES)


def test_a_gain_that_is_not_sure_takes_more_runs() -> None:
    noisy = {"A": iter([0.1, 0.13] * 4), "B": iter([0.13, 0.1] * 4)}
    plan = {str(at): {"step_s": next(noisy[side])} for at, side in enumerate(SIDES * 2)}
    Path("plan.json").write_text(json.dumps(plan))
    assert last(found=examined(only(SERIAL))).proofs[0].verdict == "no_difference"
    assert ran() == 16


def test_only_what_changes_the_recipe_is_tried_the_largest_gain_first() -> None:
    large = replace(CACHE, expected_gain=Gain(low=3.0, best=4.0, high=5.0))
    unknown: Bottleneck = replace(CACHE, cause="x", expected_gain=None)  # as of near-full memory
    found = replace(DIAGNOSIS, findings=(SERIAL, unknown, large, LEAK))
    assert fixes(found, Recipe()) == (large, SERIAL)
    assert fixes(found, from_settings(SERIAL.settings)) == (large,)
    assert fixes(only(HEALTHY), Recipe()) == ()


def test_a_second_finding_with_the_same_change_is_not_measured_again() -> None:
    planned(0.05)
    twin = replace(SERIAL, cause="input.no_prefetch", expected_gain=CACHE.expected_gain)
    end = last(found=examined(replace(DIAGNOSIS, findings=(SERIAL, twin))))
    assert ran() == len(SIDES)
    assert end.proofs[1].reason == "A fix that is kept already makes this change too."


def test_what_was_kept_is_looked_at_again() -> None:
    planned(0.05)
    end = last(found=examined(only(SERIAL)))
    assert end.after
    assert end.after.step_s == pytest.approx(0.05)
    assert sum(end.after.split_s.values()) == pytest.approx(0.05)
    asked = json.loads(Path("asked.json").read_text())["recipe"]
    assert asked["input"]["prefetch"] == asked["input"]["parallel_calls"] == -1
    assert end.after_note == ""


def test_what_is_not_found_any_more_is_not_measured() -> None:
    planned(0.05)
    end = last()
    assert ran() == len(SIDES)
    assert [proof.kept for proof in end.proofs] == [True, False]
    assert (end.proofs[1].cause, end.proofs[1].verdict) == (CACHE.cause, None)
    assert end.proofs[1].reason == NOT_EXPECTED
    assert end.left == ()
    assert end.diagnosis.findings[1].proven_gain is None


def test_where_nothing_is_kept_nobody_looks_again() -> None:
    planned(0.1)
    assert last(found=examined(only(SERIAL))).after is None
    assert not Path("asked.json").exists()


def test_a_second_look_that_fails_takes_nothing_of_the_proof() -> None:
    planned(0.05)
    no_second_look()
    end = last(found=examined(only(SERIAL)))
    assert end.proofs[0].kept
    assert end.after is None
    assert end.after_note == (
        "The steps were not looked at again: train.py failed at step 3: KeyError: no label."
    )


def test_a_second_look_that_is_stopped_has_the_proof_before_it() -> None:
    planned(0.05)
    found = {"facts": to_builtins(AFTER), "stopped": "SIGTERM"}
    Path("seen.json").write_text(json.dumps(found))
    steps, seen = proven(request(), examined(only(SERIAL))), list[Any]()
    with pytest.raises(KeyboardInterrupt):
        seen.extend(steps)
    assert seen[-1].proofs[0].kept


def test_progress_names_the_fix() -> None:
    planned(0.05)
    said: list[str] = []
    for _ in proven(request(), examined(only(SERIAL)), progress=said.append):
        pass
    assert said[0] == "fix 1 of 1 (input.sequential_map): A, run 1 of 4: starting"


def test_a_fix_is_proven_on_the_backend_that_it_was_found_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planned(0.05)
    trained_on: list[Value] = []

    def train(request: Value, **_ways: Any) -> Value:
        trained_on.append(request.jax)
        return SimpleNamespace(outcome=SimpleNamespace(history={"loss": [1.0]}, stopped=""))

    monkeypatch.setattr("tfdyno.jobs.diagnose.same_losses.train", train)
    eager = replace(SERIAL, settings={"execution": "xla"})
    end = last(request(backend="jax"), examined(only(eager)))
    assert end.proofs[0].kept
    runs = [json.loads(line) for line in Path("runs.jsonl").read_text().splitlines()]
    assert {run["backend"] for run in runs} == {"jax"}
    assert trained_on
    assert all(trained_on)
    assert json.loads(Path("asked.json").read_text())["backend"] == "jax"  # the look behind it
