"""Steps back from compiles that fail, in real child processes where they can be planted."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.forks import NO_GPU

from tfdyno.core.base.errors import CompilerError, RetreatAsked, TfdynoError, ToolError, UsageError
from tfdyno.core.cluster.launch_plan import LaunchPlan
from tfdyno.core.measure.measurement import Protocol
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import FIRST_STEP, FIRST_STEP_XLA, Retreat
from tfdyno.core.train.training import RunSettings
from tfdyno.engines.process.process import ChildCrash
from tfdyno.jobs.bench import bench
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.diagnose import diagnose
from tfdyno.jobs.launch.local import Launched, launch_local
from tfdyno.jobs.retreat.retreating import Trial, Work, retreating
from tfdyno.jobs.train.train import Trained, TrainRequest, train
from tfdyno.model.measure.comparison import compare

DATA = Path(__file__).parents[2] / "data" / "xla"
TILE = "InternalError: Failed to compute symbolic tile for (d0, d1)"


class Attempts:
    """Fails by these errors in turn, then works."""

    def __init__(self, *errors: TfdynoError) -> None:
        self.errors, self.trials = list(errors), list[Trial]()

    def __call__(self, trial: Trial) -> str:
        self.trials.append(trial)
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    @property
    def steps(self) -> list[list[str]]:
        return [[one.step for one in trial.retreats] for trial in self.trials]


def told(raised: str, kind: type[TfdynoError] = UsageError, *, at: str = "") -> TfdynoError:
    error = kind("train.py failed")
    error.raised, error.at = raised, at
    return error


def crash(signal_number: int, said: str = "", *, at: str) -> ChildCrash:
    error = ChildCrash("training train.py failed")
    error.child_exit_code, error.raised, error.at = -signal_number, said, at
    return error


def work(**changes: Any) -> Work:
    return replace(Work(subject="train.py", recipe=Recipe()), **changes)


@pytest.fixture(autouse=True)
def no_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)


def test_each_failure_is_one_step_and_one_line() -> None:
    said: list[str] = []
    kept: list[tuple[Retreat, ...]] = []
    attempts = Attempts(told(TILE), told(TILE), told(TILE))
    result, retreats = retreating(attempts, work(tell=said.append, keep=kept.append))
    assert result == "done"
    assert attempts.steps == [
        [], ["no_triton"], ["no_triton", "no_autotuning"], ["no_triton", "no_autotuning", "graph"],
    ]  # fmt: skip
    assert [trial.recipe.execution for trial in attempts.trials] == ["auto"] * 3 + ["graph"]
    assert len(said) == len(kept) == 3
    assert kept[-1] == retreats
    assert said[0].startswith("XLA failed to compile train.py: Triton finds no tile")
    assert said[0].endswith(
        "it is run again without Triton's matrix products (XLA_FLAGS "
        "--xla_gpu_enable_triton_gemm=false)."
    )


def test_flags_stand_behind_those_that_are_set_already(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/tmp/x")
    attempts = Attempts(told(TILE))
    retreating(attempts, work())
    first, second = attempts.trials
    assert first.variables({"A": "1"}) == {"A": "1"}
    flags = "--xla_gpu_enable_triton_gemm=false"
    assert second.variables({"A": "1"})["XLA_FLAGS"] == f"--xla_dump_to=/tmp/x {flags}"
    assert second.variables({"XLA_FLAGS": "--xla_b=1"})["XLA_FLAGS"] == f"--xla_b=1 {flags}"


def test_when_all_steps_fail_the_error_names_the_fault_and_what_was_tried() -> None:
    with pytest.raises(CompilerError) as caught:
        retreating(Attempts(*[told(TILE)] * 4), work())
    assert str(caught.value).startswith("XLA failed to compile train.py: Triton finds no tile")
    assert "jax-ml/jax#40237" in str(caught.value)
    assert caught.value.__notes__ == [
        "It was run without Triton's matrix products, then with kernels that were not measured, "
        "then in graph execution without XLA by then."
    ]


def test_a_forbidden_step_back_is_told_at_once() -> None:
    attempts = Attempts(told(TILE))
    with pytest.raises(CompilerError, match="or leave out retreat=false"):
        retreating(attempts, work(recipe=Recipe(retreat=False)))
    assert len(attempts.trials) == 1


def test_what_is_no_fault_of_the_compiler_is_not_run_again() -> None:
    attempts = Attempts(told("ValueError: shapes do not match"))
    with pytest.raises(UsageError, match=r"train\.py failed"):
        retreating(attempts, work())
    assert len(attempts.trials) == 1


@pytest.mark.parametrize(
    ("at", "number", "steps"),
    [(FIRST_STEP_XLA, 11, 1), (FIRST_STEP, 11, 0), (FIRST_STEP_XLA, 9, 0), ("measuring", 6, 0)],
)
def test_a_crash_counts_where_xla_compiled_and_the_process_ended_itself(
    at: str, number: int, steps: int
) -> None:
    attempts = Attempts(crash(number, "free(): invalid pointer", at=at))
    if steps:
        _, retreats = retreating(attempts, work())
        assert "the process crashed while XLA compiled" in retreats[0].cause
    else:
        with pytest.raises(ChildCrash):
            retreating(attempts, work())


def test_a_flag_that_this_xla_does_not_know_is_skipped() -> None:
    flag = "Unknown flag in XLA_FLAGS: --xla_gpu_enable_triton_gemm=false"
    kept: list[tuple[Retreat, ...]] = []
    attempts = Attempts(told(TILE), told(flag, ChildCrash))
    _, retreats = retreating(attempts, work(keep=kept.append))
    assert attempts.steps == [[], ["no_triton"], ["no_autotuning"]]
    assert kept[-1] == retreats


def test_a_flag_of_an_earlier_run_that_is_unknown_now_is_left_out() -> None:
    had = (Retreat(step="no_triton", words="so", flags=("--xla_gpu_enable_triton_gemm=false",)),)
    flag = "Unknown flag in XLA_FLAGS: --xla_gpu_enable_triton_gemm=false"
    attempts = Attempts(told(flag, ChildCrash))
    assert retreating(attempts, work(had=had)) == ("done", ())


def test_code_that_needs_xla_fails_by_the_compilers_fault_and_not_by_the_last_step() -> None:
    refused = UsageError("execution=graph is not possible here")
    with pytest.raises(CompilerError, match="Triton finds no tile"):
        retreating(Attempts(*[told(TILE)] * 3, refused), work())


def test_one_of_several_processes_keeps_the_step_and_does_not_take_it() -> None:
    kept: list[tuple[Retreat, ...]] = []
    attempts = Attempts(told(TILE))
    with pytest.raises(RetreatAsked, match="started again, it runs without Triton's"):
        retreating(attempts, work(may=False, keep=kept.append))
    assert len(attempts.trials) == 1
    assert [one.step for one in kept[0]] == ["no_triton"]
    later = Attempts()
    assert retreating(later, work(had=kept[0]))[1] == kept[0]
    assert later.steps == [["no_triton"]]


def test_a_failure_after_a_step_back_says_how_it_ran() -> None:
    with pytest.raises(ToolError) as caught:
        retreating(Attempts(told(TILE), ToolError("the disk is full")), work())
    assert caught.value.__notes__ == ["It was run without Triton's matrix products by then."]


# In real child processes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, value in NO_GPU.items():
        monkeypatch.setenv(name, value)
    shutil.copy(DATA / "planted_fault.py", "train.py")
    shutil.copy(DATA / "symbolic_tile.log", tmp_path)
    return tmp_path


def trained(fault: str, output: str, printed: list[str] | None = None, **recipe: Any) -> Trained:
    request = TrainRequest(
        workload=parse_reference("train.py", script_arguments=(fault,)),
        recipe=Recipe(seed=3, **recipe),
        settings=RunSettings(output=output),
    )
    return train(request, output=(printed if printed is not None else []).append)


@pytest.mark.tf
@pytest.mark.parametrize("execution", ["auto", pytest.param("xla", marks=pytest.mark.slow)])
def test_a_training_learns_the_same_as_without_the_fault(folder: Path, execution: str) -> None:
    printed: list[str] = []
    sound = trained("none", "sound", execution=execution)
    found = trained("triton", "run", printed, execution=execution)
    assert found.outcome.history == sound.outcome.history
    assert (found.outcome.steps, found.outcome.resumed_from) == (sound.outcome.steps, "")
    assert [one.step for one in found.outcome.retreats] == ["no_triton"]
    assert sound.outcome.retreats == ()
    lines = [line for line in printed if "it is run again" in line]
    assert len(lines) == 1
    assert not [line for line in printed if "%bitcast" in line]
    kept = json.loads((folder / "run/run.json").read_text())
    assert [one["fault"] for one in kept["retreats"]] == ["symbolic_tile"]
    assert (kept["status"], kept["sittings"]) == ("finished", 1)
    assert kept["outcome"]["retreats"] == kept["retreats"]
    assert "%bitcast" in (folder / "run/logs/worker-0.log").read_text()


@pytest.mark.tf
def test_a_crash_ends_in_graph_execution_and_a_resume_begins_there(folder: Path) -> None:
    sound = trained("none", "sound", execution="graph")
    found = trained("crash", "run")
    steps = [one.step for one in found.outcome.retreats]
    assert steps == ["no_triton", "no_autotuning", "graph"]
    assert found.outcome.history == sound.outcome.history
    again = train(
        TrainRequest(
            workload=parse_reference("train.py", script_arguments=("crash",)),
            settings=RunSettings(output="run", resume=True, epochs=3),
            given=frozenset({"epochs"}),
        )
    )
    assert [one.step for one in again.outcome.retreats] == steps
    assert again.outcome.history["loss"][:2] == found.outcome.history["loss"]


@pytest.mark.tf
def test_an_operation_that_xla_lacks_is_the_users_to_mend(folder: Path) -> None:
    with pytest.raises(UsageError, match="Detected unsupported operations"):
        trained("own", "run")
    assert json.loads((folder / "run/run.json").read_text())["retreats"] == []


@pytest.mark.tf
def test_a_bench_of_xla_against_graph_does_not_become_graph_against_graph(folder: Path) -> None:
    workload = parse_reference("train.py", script_arguments=("never",))
    asked = bench.BenchRequest(
        workload=workload, recipe=Recipe(execution="xla"), against=Recipe(execution="graph"),
        protocol=Protocol(least_runs=3, most_runs=3, least_s=0.2, most_s=0.5), folder=folder,
    )  # fmt: skip
    a, b = bench.bench(asked)
    assert (a.task.execution, b.task.execution) == ("graph", "graph")
    assert [one.step for one in a.task.retreats] == ["no_triton", "no_autotuning", "graph"]
    assert b.task.retreats == ()
    assert any("it ran in graph execution" in note for note in a.task.notes)
    found = compare(a, b)
    assert found.verdict == "not_comparable"
    assert "both are the same run" in found.reason


@pytest.mark.tf
def test_a_diagnosis_takes_the_step_and_tells_it(folder: Path) -> None:
    printed: list[str] = []
    asked = diagnose.DiagnoseRequest(
        workload=parse_reference("train.py", script_arguments=("autotune",)), steps=12
    )
    found = diagnose.examined(asked, output=printed.append)
    steps = [one.step for one in found.facts.retreats]
    assert steps == ["no_triton", "no_autotuning"]
    assert any("it ran with kernels that were not measured" in one for one in found.facts.notes)
    assert len([line for line in printed if "it is run again" in line]) == 2


@pytest.mark.slow  # both nodes start twice; one process on JAX is in the plain run
@pytest.mark.tf
def test_two_nodes_start_again_together_with_the_same_step(folder: Path) -> None:
    said: list[str] = []
    run = launched(2, said)
    steps = [one.step for one in run.outcome.retreats]
    assert steps == ["no_autotuning"]
    assert run.failures == ()
    assert any("started again, it runs with kernels that were not measured" in x for x in said)
    assert [one.step for one in run.record.retreats] == steps
    assert (run.record.status, len(run.outcome.history["loss"])) == ("finished", 2)


@pytest.mark.tf
def test_a_process_on_jax_takes_the_steps_that_jax_has(folder: Path) -> None:
    run = launched(1, [])
    assert [one.step for one in run.outcome.retreats] == ["no_autotuning"]
    assert run.record.status == "finished"


def launched(nodes: int, said: list[str]) -> Launched:
    plan = LaunchPlan(
        engine="local", name="planted", reference="train.py", script_arguments=("autotune",),
        options=("--backend", "jax", "--set", "seed=1"), output="run", nodes=nodes,
        folder=str(Path.cwd()), python=sys.executable,
    )  # fmt: skip
    return launch_local(plan, output=said.append)
