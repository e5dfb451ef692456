"""jobs/diagnose: a child looks, rules judge; what is wrong is one sentence."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs import diagnose_child
from tests.probe.fake_nvml import FakeNvml
from tests.view.diagnoses import DIAGNOSIS, FACTS

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.measure.step_facts import GrowthFacts, MemoryCourse
from tfdyno.core.messages.diagnose import Limits
from tfdyno.core.messages.wire import decode
from tfdyno.core.recipe.recipe import InputOptions, Recipe
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.diagnose.diagnose import (
    DiagnoseRequest,
    check,
    diagnose,
    examined,
    limits_of,
)
from tfdyno.probe.telemetry.telemetry import Sampler
from tfdyno.rules.bottleneck import diagnose as by_rules

if TYPE_CHECKING:
    from tfdyno.core.measure.bottleneck import StepDiagnosis
    from tfdyno.core.measure.step_facts import StepFacts

ROOT = Path(__file__).parents[3]
COURSE = MemoryCourse(
    where="host", counted_by="allocator", steps=200, low_bytes_per_step=800.0,
    bytes_per_step=1000.0, high_bytes_per_step=2000.0, end_bytes=5_000_000, free_bytes=8_000_000,
)  # fmt: skip
GROWTH = GrowthFacts(
    where="host", bytes_per_step=1000.0, low_bytes_per_step=800.0, kind="tensors",
    suspects=("list of 3 tensors held by train.py:3 (losses)",),
)  # fmt: skip
SOFTWARE = {"tensorflow": "2.21.0", "keras": "3.15.1", "python": "3.11.7", "devices": ["CPU:0"]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script, at whose steps the stand-in looks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "src"))))
    monkeypatch.setattr("tfdyno.jobs.diagnose.diagnose.LOOK", diagnose_child.MADE_UP)
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    seen(facts=to_builtins(FACTS), software=SOFTWARE)
    return tmp_path


@pytest.fixture(autouse=True)
def judgements(monkeypatch: pytest.MonkeyPatch) -> list[StepFacts]:
    """What the rules, which a stand-in answers for, were asked."""
    asked: list[StepFacts] = []

    def judge(facts: StepFacts) -> StepDiagnosis:
        asked.append(facts)
        return DIAGNOSIS

    monkeypatch.setattr("tfdyno.rules.bottleneck.diagnose", judge)
    return asked


def seen(**found: object) -> None:
    Path("seen.json").write_text(json.dumps(found))


def request(**fields: object) -> DiagnoseRequest:
    base = DiagnoseRequest(workload=parse_reference("train.py"), steps=12, seconds_s=3.0)
    return replace(base, **fields)  # type: ignore[arg-type]


def test_the_rules_judge_what_the_child_saw(judgements: list[StepFacts]) -> None:
    assert diagnose(request()) == DIAGNOSIS
    assert judgements == [FACTS]


def test_what_its_card_does_meanwhile_is_judged_too(
    judgements: list[StepFacts], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfdyno.probe.cards.cards.bindings", lambda: FakeNvml(4))
    quick = partial(Sampler, interval_s=0.02)
    monkeypatch.setattr("tfdyno.jobs.diagnose.diagnose.Sampler", quick)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    began_s = time.monotonic()
    steady = {"began_s": began_s, "ended_s": began_s + 60, "cards": [0]}
    told = {"facts": to_builtins(FACTS), "steady": steady, "software": SOFTWARE | {"device": "gpu"}}
    seen(**told, sleep_s=4.0)
    found = examined(request())
    assert judgements == [found.facts]
    (card,) = found.facts.cards
    assert (card.name, card.reasons) == ("NVIDIA H100 80GB HBM3", ("software power cap",))
    told["facts"] = to_builtins(replace(FACTS, growth=(GROWTH,)))
    seen(**told)
    assert examined(request(memory_alone=True, steps=60)).facts.cards == ()


def test_the_child_runs_the_recipe_in_its_own_environment() -> None:
    found = examined(request(recipe=Recipe(batch_size=8, threads_intra=2)))
    asked = json.loads(Path("asked.json").read_text())
    assert decode(asked["limits"], Limits) == Limits(own_s=0.0, most_s=3.0, least_steps=12)
    assert asked["recipe"]["batch_size"] == 8
    assert asked["workload"]["reference"] == "train.py"
    assert asked["backend"] == "tensorflow"
    assert asked["pid"] != os.getpid()
    assert found.environment
    assert (found.environment.tensorflow, found.stopped) == ("2.21.0", False)


@pytest.mark.parametrize(
    ("steps", "seconds_s", "limits"),
    [
        (0, 0.0, {}),  # the child's own choice
        (0, 5.0, {"own_s": 5.0, "most_s": 5.0}),
        (40, 0.0, {"own_s": 0.0, "most_s": 3600.0, "least_steps": 40}),
    ],
)
def test_steps_or_seconds_say_how_long_is_looked(
    steps: int, seconds_s: float, limits: dict[str, Any]
) -> None:
    assert limits_of(request(steps=steps, seconds_s=seconds_s)) == Limits(**limits)


@pytest.mark.parametrize(
    ("fields", "limits"),
    [
        ({}, {"own_s": 8.0, "most_s": 30.0, "least_steps": 60, "until_sure": True}),
        ({"seconds_s": 90.0},
         {"own_s": 90.0, "most_s": 90.0, "least_steps": 60, "until_sure": False,
          "fits_s": 90.0}),
        ({"steps": 500}, {"own_s": 0.0, "most_s": 3600.0, "least_steps": 500, "until_sure": False}),
    ],
)  # fmt: skip
def test_memory_is_looked_at_until_it_is_sure_or_for_as_long_as_is_said(
    fields: dict[str, object], limits: dict[str, Any]
) -> None:
    asked = request(**{"steps": 0, "seconds_s": 0.0, "memory_alone": True, **fields})
    assert limits_of(asked) == Limits(**limits, memory_alone=True)


def test_memory_has_its_own_answer_and_the_hour_at_which_it_is_full() -> None:
    seen(facts=to_builtins(replace(FACTS, growth=(GROWTH,), memory=(COURSE,))))
    found = examined(request(memory_alone=True, steps=60))
    assert found.diagnosis.primary.cause == "leak.tensors"
    (host,) = found.growth
    assert host.full_in_s
    # By hand: 8 MB at 1000 B a step are 8000 steps of 418 ms, the middle of five.
    assert host.full_in_s.best == pytest.approx(8000 * 0.418)
    assert examined(request()).growth == ()


def test_growth_that_is_no_finding_is_none_in_the_outlook_either() -> None:
    uneven = replace(GROWTH, kind="unknown", suspects=(), low_bytes_per_step=100.0)
    seen(facts=to_builtins(replace(FACTS, growth=(uneven,), memory=(COURSE,))))
    found = examined(request(memory_alone=True, steps=60))
    assert found.diagnosis.primary.bottleneck_class == "healthy"
    assert [one.grows for one in found.growth] == [False]


def test_a_training_too_short_for_a_slope_is_refused_unless_a_name_grows() -> None:
    asked = request(memory_alone=True, steps=0, seconds_s=0.0)
    seen(facts=to_builtins(replace(FACTS, steps_seen=12)))
    with pytest.raises(UsageError, match=r"ran too few steps to tell .*: 12 were seen") as error:
        examined(asked)
    assert "--steps 60" in str(error.value)
    seen(facts=to_builtins(replace(FACTS, growth=(GROWTH,))))
    assert examined(asked).diagnosis.primary.cause == "leak.tensors"
    seen(facts=to_builtins(FACTS), stopped="SIGTERM")
    assert examined(asked).diagnosis.primary.cause == "healthy.few_steps"


def test_too_few_steps_for_a_slope_start_nothing() -> None:
    with pytest.raises(UsageError, match=r"27 steps are too few .* look at 28 or more"):
        examined(request(memory_alone=True, steps=27))
    assert not Path("asked.json").exists()


FAILED = {"kind": "usage", "what": "train.py failed at step 90", "why": "line 7: KeyError: 'x'",
          "remedy": ""}  # fmt: skip


def test_a_failure_in_steady_steps_comes_with_what_was_seen() -> None:
    seen(facts=to_builtins(FACTS), failed=FAILED)
    found = examined(request())
    assert found.diagnosis == DIAGNOSIS
    assert isinstance(found.failed, UsageError)
    assert str(found.failed) == "train.py failed at step 90: line 7: KeyError: 'x'."
    with pytest.raises(UsageError, match="at step 90"):
        diagnose(request())
    seen(facts=to_builtins(FACTS), failed={**FAILED, "kind": "tool"})
    assert isinstance(examined(request()).failed, ToolError)


def test_a_stop_before_there_are_steady_steps_says_how_far_it_came() -> None:
    seen(stopped="SIGTERM", seen="2 steps ran: the first took 1 s with compiling, the other 9 ms")
    with pytest.raises(KeyboardInterrupt) as stop:
        examined(request())
    assert stop.value.__notes__ == [
        "2 steps ran: the first took 1 s with compiling, the other 9 ms: too few to say anything "
        "of a steady one."
    ]
    seen(facts=to_builtins(FACTS), stopped="SIGTERM")
    with pytest.raises(KeyboardInterrupt):
        diagnose(request())


def test_a_child_that_is_killed_is_a_failure_of_the_tool() -> None:
    seen(facts=to_builtins(FACTS), signal=signal.SIGKILL)
    with pytest.raises(ToolError, match=r"diagnosing train\.py failed: it was killed by SIGKILL"):
        examined(request())


def test_stages_are_told() -> None:
    said: list[str] = []
    diagnose(request(), progress=said.append)
    assert said == ["12 steps, median 52.1 ms", "judging what was seen"]


def test_a_script_that_fails_is_told_with_its_step() -> None:
    seen(fail="KeyError: no label")
    with pytest.raises(UsageError, match=r"train\.py failed at step 3: KeyError: no label\."):
        diagnose(request())


def test_what_was_seen_before_the_end_was_asked_for_is_judged() -> None:
    seen(facts=to_builtins(FACTS), stopped="SIGTERM")
    found = examined(request())
    assert (found.stopped, found.diagnosis, found.environment) == (True, DIAGNOSIS, None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"workload": parse_reference("keras:ResNet50", mode="infer")}, "is not trained"),
        ({"recipe": Recipe(remat="blocks")}, "remat cannot be set"),
        ({"recipe": Recipe(deterministic=True, execution="xla")}, "do not go together"),
    ],
)
def test_a_question_without_an_answer_starts_nothing(
    fields: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        diagnose(request(**fields))
    assert not Path("asked.json").exists()


def test_settings_of_the_input_may_be_diagnosed() -> None:
    check(request(recipe=Recipe(input=InputOptions(prefetch=-1))))


def test_the_rules_own_answer_is_one_class_and_a_split_that_adds_up() -> None:
    found = by_rules(replace(FACTS, held_s=(0.16, 0.161, 0.162), waits_s=0.25))
    assert found.primary.bottleneck_class == "input"
    assert found.findings[0] == found.primary
    assert sum(found.split_s.values()) == pytest.approx(found.step_s)
    assert min(found.split_s.values()) >= 0.0
