"""What a look hands over: calls of several steps as single ones, only what the noun has."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.benches import in_tensorflow

pytestmark = pytest.mark.tf
CODE = """
import dataclasses
from tfdyno.core.measure.step_facts import OperationFacts
from tfdyno.runtime.diagnose import watching as diagnose_look, operations as diagnose_operations
from tfdyno.core.messages.diagnose import Limits
from tfdyno.runtime.diagnose.clock import StepTimes

made = OperationFacts(class_s={"gemm": 0.6}, count_per_step=30.0, busy_s=0.9,
                      host_only=("Where",), largest=(("MatMul", 0.3),))
asked = []

def profiled(run, steps, names):
    asked.append([steps, sorted(names)])
    run(1)
    return made

diagnose_operations.profiled = profiled
runs = []
call = lambda: runs.append(1)
several = diagnose_look.profile_of(call, (0.05,) * 3, {"float64_names": frozenset({"a"})}, 3)
diagnose_look.profile_of(call, (0.000001,), {})
diagnose_look.profile_of(call, (9.0,), {})
result = {"several": dataclasses.asdict(several), "asked": asked, "runs": len(runs)}

# steps that end before warm-up is over
times = StepTimes(limits=Limits())
watched = diagnose_look.Watched(times)
for _ in range(3):
    times.begin()
    times.end()
subject = diagnose_look.Subject(title="t", source="run", batch_size=64, replica_count=2)
rest = diagnose_look.Rest(said={"precision": "float16", "unheard_of": 1}, notes=("after",))
facts = diagnose_look.step_facts(subject, watched, rest)
watched.close()
result["facts"] = [facts.batch_size, facts.precision, facts.host.cpus > 0, *facts.notes]
"""


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    answer: dict[str, Any] = in_tensorflow(CODE)
    return answer


def test_a_profile_of_calls_of_three_steps_is_told_by_step(found: dict[str, Any]) -> None:
    several = found["several"]
    assert several["class_s"]["gemm"] == pytest.approx(0.2)
    assert several["count_per_step"] == pytest.approx(10)
    assert several["busy_s"] == pytest.approx(0.3)
    assert several["largest"][0][1] == pytest.approx(0.1)
    assert several["host_only"] == ["Where"]


def test_a_profile_takes_about_a_second(found: dict[str, Any]) -> None:
    # 1 s / (3 x 0.05 s) = 6 calls; at most 20 and at least 3.
    assert found["asked"] == [[6, ["a"]], [20, []], [3, []]]


def test_a_training_that_ended_early_is_told_as_such(found: dict[str, Any]) -> None:
    assert found["facts"] == [
        32, "float16", True,
        "The training ended by itself after 3 steps, before warm-up was over.", "after",
    ]  # fmt: skip
