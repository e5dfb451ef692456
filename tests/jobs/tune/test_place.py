"""jobs/tune: what the place does is no trial's fault, and a study stays where it began."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs.made_up_node import OWN_BATCH, PLACE, TASK, Machine

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.base.untyped import Value
from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.jobs.bench import bench
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.tune.request import NodeLost, TuneRequest
from tfdyno.jobs.tune.tune import tune
from tfdyno.words.train.tune import losses_warning

if TYPE_CHECKING:
    from tfdyno.core.measure.fix_proof import Agreement
    from tfdyno.core.measure.measurement import Measured
    from tfdyno.core.messages.bench import MeasureHere
    from tfdyno.core.train.search_space import Value
    from tfdyno.core.train.tuning import Tuning
    from tfdyno.jobs.child.worker import Progress

SPACE: dict[str, tuple[Value, ...]] = {
    "batch_size": (64, 128), "execution": ("graph", "xla"), "input.cache": (False, True),
    "steps_per_execution": (1,), "precision": ("",), "input.prefetch": (0,),
    "input.parallel_calls": (0,),
}  # fmt: skip
OTHER = replace(PLACE, cpu="another CPU", host="there")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    return tmp_path


def step_s(recipe: Recipe) -> float:
    """XLA and a cache make it faster, a larger batch too."""
    whole_s = 0.004 + 0.0001 * (recipe.batch_size or OWN_BATCH)
    return (
        whole_s * (0.7 if recipe.execution == "xla" else 1.0) * (0.6 if recipe.input.cache else 1.0)
    )


def request(**fields: Any) -> TuneRequest:
    given = {"workload": parse_reference("train.py"), "folder": Path("out"), "named": SPACE,
             "trials": 8, **fields}  # fmt: skip
    return TuneRequest(**given)


def last(asked: TuneRequest, *machines: Machine, said: list[str] | None = None) -> Tuning:
    nodes = contextlib.nullcontext(tuple(one.node for one in machines))
    *_, end = tune(asked, engine=nodes, progress=(said if said is not None else []).append)
    return end


def failed(told: Tuning) -> list[str]:
    return [one.reason for one in told.trials if one.status == "failed"]


def test_a_full_card_ends_the_sitting_and_is_no_trials_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine, looks = Machine(step_s=step_s), iter(range(100))

    def check(*_asked: object) -> None:
        if next(looks) == 2:
            raise ToolError("GPU 0 has 1 GiB of 24 GiB of memory free")

    monkeypatch.setattr(bench, "_look_for_room", check)
    with pytest.raises(ToolError, match="GPU 0 has"):
        last(request(), machine)
    told = last(request(resume=True), machine)
    assert (failed(told), told.left) == ([], 0)
    assert all(one.ran for one in told.trials if one.status in ("measured", "pruned"))


def test_a_run_that_crashed_is_made_once_more() -> None:
    machine = Machine(step_s=step_s, fails={4: ToolError("run 2 failed", why="it crashed")})
    told = last(request(), machine)
    assert failed(told) == []
    assert machine.ran[4] == machine.ran[5]


def test_what_crashes_twice_is_told_so_and_blamed_on_no_setting() -> None:
    machine = Machine(step_s=step_s)
    named = {**SPACE, "execution": ("graph",)}
    made = machine.node.run

    def run(asked: MeasureHere, progress: Progress) -> Measured:
        if asked.recipe.input.cache and not asked.recipe.batch_size:
            machine.ran.append(asked.recipe)
            raise ToolError("run 1 failed", why="it crashed")
        return made(asked, progress)

    nodes = contextlib.nullcontext((replace(machine.node, run=run),))
    *_, told = tune(request(named=named), engine=nodes)
    assert len(failed(told)) == 1
    cached = [one for one in told.trials if one.changes.get("input.cache") and one.ran]
    assert {one.status for one in cached} == {"failed", "measured"}
    assert len([one for one in machine.ran if one.input.cache and not one.batch_size]) == 2


def test_another_tensorflow_is_refused_before_anything_runs() -> None:
    machine = Machine(step_s=step_s)
    last(request(trials=2), machine)
    count = len(machine.ran)
    machine.place = replace(PLACE, tensorflow="2.22.0")
    with pytest.raises(UsageError) as caught:
        last(request(resume=True), machine)
    assert str(caught.value) == (
        "the study in out cannot go on here: tensorflow was 2.21.0 and is 2.22.0; "
        "go on where it began, or give another --output."
    )
    assert len(machine.ran) == count


def test_a_machine_that_changes_in_a_sitting_ends_it() -> None:
    machine = Machine(step_s=step_s)
    made = machine.node.run

    def run(asked: MeasureHere, progress: Progress) -> Measured:
        if len(machine.ran) == 3:
            machine.place = OTHER
        return made(asked, progress)

    nodes = contextlib.nullcontext((replace(machine.node, run=run),))
    with pytest.raises(ToolError, match="not as it was when the start was measured: cpu was a CPU"):
        list(tune(request(), engine=nodes))
    machine.place = PLACE
    told = last(request(resume=True), machine)
    assert (failed(told), told.left) == ([], 0)
    kept = [one for one in told.trials if one.rates_per_s]
    assert len(machine.ran) == 3 + sum(len(one.rates_per_s) for one in kept) + 2 * told.proof.runs  # type: ignore[union-attr]


def test_a_node_of_another_kind_is_left_out_and_runs_nothing() -> None:
    alike = [Machine(step_s=step_s, name=name, place=replace(PLACE, host=name)) for name in "ac"]
    other, said = Machine(step_s=step_s, name="b", place=OTHER), list[str]()
    told = last(request(), alike[0], other, alike[1], said=said)
    assert other.ran == []
    assert "Node b is left out: cpu was a CPU and is another CPU." in told.notes
    assert {one.where for one in told.trials if one.ran} == {"a", "c"}
    assert failed(told) == []


def test_a_node_that_is_lost_is_dropped_and_its_trial_runs_elsewhere() -> None:
    nodes = [Machine(step_s=step_s, name=name, place=replace(PLACE, host=name)) for name in "abc"]
    nodes[1].fails = {0: NodeLost("Ray has lost the run", why="the node died")}
    told = last(request(), *nodes)
    assert (failed(told), told.left, len(nodes[1].ran)) == ([], 0, 1)
    assert any("Node b was lost: Ray has lost the run" in one for one in told.notes)
    nodes = [Machine(step_s=step_s, name=name, place=replace(PLACE, host=name)) for name in "ab"]
    for one in nodes:
        one.fails = {4: NodeLost("Ray has ended")}
    with pytest.raises(NodeLost):
        last(request(folder=Path("other")), *nodes)


def test_a_trial_that_a_kill_left_on_one_node_is_measured_anew_on_another() -> None:
    first, other = (
        Machine(step_s=step_s, name=name, place=replace(PLACE, host=name)) for name in "ab"
    )
    first.fails = {4: NodeLost("Ray has ended")}
    with pytest.raises(NodeLost):
        last(request(), first)
    told = last(request(resume=True), other)
    assert (failed(told), told.left) == ([], 0)


def test_stalls_that_a_median_does_not_see_cost_the_first_place() -> None:
    machine = Machine(step_s=step_s, stalls=lambda recipe: recipe.input.cache)
    told = last(request(named={**SPACE, "batch_size": (64,)}), machine)
    assert told.trial(told.best or 0).changes == {"execution": "xla"}
    assert told.proof
    assert told.proof.kept


def test_a_model_alone_is_proven_by_its_speed_and_the_answer_says_so() -> None:
    said: list[str] = []
    machine = Machine(step_s=step_s)
    named = {"batch_size": (64,), "execution": ("graph", "xla"), "precision": ("",),
             "steps_per_execution": (1,)}  # fmt: skip
    told = last(request(workload=parse_reference("keras:MobileNetV2"), data="synthetic",
                         named=named), machine, said=said)  # fmt: skip
    why = "keras:MobileNetV2 brings no data"
    assert f"the proof will be of speed alone: {why}" in said[: said.index(next(
        one for one in said if one.startswith("trial 1")))]  # fmt: skip
    assert told.proof
    assert (told.proof.kept, told.recipe.execution) == (True, "xla")
    assert told.proof.reason == f"It is faster. Losses were not compared: {why}."
    assert losses_warning(told) == f"Only the speed was compared, not the losses: {why}."
    assert machine.compared == []


def test_a_function_whose_data_turns_out_to_be_made_up_is_proven_by_its_speed_too() -> None:
    machine = Machine(step_s=step_s)

    def compare(_pair: object, _progress: object) -> Agreement:
        raise UsageError("make brings no data, and train needs data")

    nodes = contextlib.nullcontext((replace(machine.node, compare=compare),))
    named = {**SPACE, "batch_size": (64,)}
    *_, told = tune(request(named=named), engine=nodes)
    assert told.proof
    assert told.proof.kept
    assert losses_warning(told).endswith("not the losses: train.py brings no data.")


def test_a_loop_is_given_what_a_loop_can_take_and_its_losses_are_compared_as_such() -> None:
    machine = Machine(step_s=step_s, task=replace(TASK, is_loop=True))
    told = last(request(named={"precision": ("",)}), machine)
    assert set(told.space.choices) == {"execution"}
    assert told.proof
    assert told.proof.kept
    assert [one.is_loop for one in machine.compared] == [True]
    with pytest.raises(UsageError, match="batch_size cannot be tuned for a loop"):
        last(request(folder=Path("other")), machine)


def test_a_start_that_accumulates_keeps_its_update_at_every_batch() -> None:
    machine = Machine(step_s=step_s)
    start = from_settings({"batch_size": "64", "accumulation": "4"})
    told = last(request(recipe=start, keep_batch=True, named={"execution": ("graph",)},
                         trials=12), machine)  # fmt: skip
    assert told.space.choices["batch_size"] == (64, 128, 256)
    assert all(one.recipe.batch_size * one.recipe.accumulation == 256 for one in told.trials)
    assert not any(one.changes_batch for one in told.trials)


def test_a_command_that_failed_before_its_first_trial_can_be_repeated() -> None:
    machine = Machine(step_s=step_s, fails={0: UsageError("train.py failed", why="a typo")})
    with pytest.raises(UsageError, match="a typo"):
        last(request(), machine)
    machine.fails = {}
    assert last(request(trials=2), machine).best is not None
    with pytest.raises(UsageError, match="holds a study already"):
        last(request(), machine)


def test_a_proof_without_steady_runs_goes_on_and_is_measured_again() -> None:
    machine = Machine(step_s=step_s, steady=lambda number: number < 6)
    named = {**SPACE, "batch_size": (64,), "input.cache": (False,)}
    told = last(request(named=named), machine)
    assert told.proof
    assert (told.proof.kept, told.proof.verdict, told.proof.runs) == (False, "not_comparable", 8)
    machine.steady = lambda _number: True
    again = last(request(named=named, resume=True), machine)
    assert again.proof
    assert again.proof.kept
    count = len(machine.ran)
    assert last(request(named=named, resume=True), machine).proof == again.proof
    assert len(machine.ran) == count


def test_a_proof_of_another_place_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(step_s=step_s)
    told = last(request(), machine)
    assert told.proof
    kept = bench.kept_answer

    def of_another(asked: Value) -> Value:
        found = kept(asked)
        return tuple(replace(one, environment=OTHER) for one in found) if asked.against else found

    monkeypatch.setattr(bench, "kept_answer", of_another)
    count = len(machine.ran)
    assert last(request(resume=True), machine).proof
    assert len(machine.ran) > count


def test_without_room_for_the_start_execution_is_tried_and_none_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from types import SimpleNamespace

    trace = SimpleNamespace(title="net", policy="float32")
    traced = SimpleNamespace(traced=SimpleNamespace(trace=trace), execution_for=lambda _n: "xla")
    monkeypatch.setattr("tfdyno.jobs.tune._look.predictor_for", lambda *_a, **_k: traced)
    monkeypatch.setattr("tfdyno.jobs.tune._look.cpu_policy", lambda: "mixed_bfloat16")
    machine = Machine(step_s=step_s, peak_bytes=lambda r: float(r.batch_size), most_bytes=100.0)
    named = {"batch_size": (64,), "steps_per_execution": (1,)}
    asked = request(recipe=Recipe(batch_size=128), named=named, trials=40)
    told = last(asked, machine)
    assert told.space.choices["execution"] == ("xla", "graph")
    assert told.space.choices["precision"] == ("", "mixed_bfloat16")
    assert {one.recipe.execution for one in told.trials} == {"auto", "graph"}
    assert losses_warning(told) == (
        "Only the speed was compared, not the losses: the start does not fit, so that there is "
        "nothing to compare with."
    )
    count = len(machine.ran)
    last(replace(asked, resume=True), machine)
    assert len(machine.ran) == count


def test_every_combination_counts_as_left_however_many_there_are() -> None:
    named: dict[str, tuple[Value, ...]] = {
        "batch_size": tuple(range(64, 164)), "threads_intra": tuple(range(1, 101)),
    }  # fmt: skip
    told = last(request(named=named, trials=2), Machine(step_s=step_s))
    assert told.left == told.space.size - 2 > 10_000
