"""jobs/tune: trials are run once, those that need no run are not, and a kill loses one at most."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.jobs import tune_child

from tfdyno.core.base.errors import CompilerError, UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.core.recipe.recipe import Recipe, from_settings
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.tune.request import TuneRequest
from tfdyno.jobs.tune.tune import tune
from tfdyno.store.tuning_study import LOCK_FILE

if TYPE_CHECKING:
    from tfdyno.core.train.search_space import Value
    from tfdyno.core.train.tuning import Tuning
    from tfdyno.jobs.train.train import TrainRequest

ROOT = Path(__file__).parents[3]
SMALL: dict[str, tuple[Value, ...]] = {
    "batch_size": (64, 128, 256, 512), "execution": ("graph", "xla"),
    "steps_per_execution": (1, 8), "precision": ("",), "input.prefetch": (0,),
    "input.parallel_calls": (0,), "input.cache": (False,),
}  # fmt: skip
"""16 combinations."""
IN_A_CHILD = """
import sys
from types import SimpleNamespace
from tests.jobs import tune_child
import tfdyno.jobs.bench.run as run
import tfdyno.jobs.diagnose.same_losses as losses
import tfdyno.jobs.tune._place as place
run.RUN, place.PLACE = tune_child.MADE_UP, tune_child.MADE_UP_PLACE
losses.train = lambda *a, **k: SimpleNamespace(
    outcome=SimpleNamespace(history={"loss": [1.0, 0.5]}, stopped=""))
from tfdyno.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script, whose runs and losses are made up."""
    monkeypatch.chdir(tmp_path)
    path = os.pathsep.join((str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setattr("tfdyno.jobs.bench.run.RUN", tune_child.MADE_UP)
    monkeypatch.setattr("tfdyno.jobs.tune._place.PLACE", tune_child.MADE_UP_PLACE)
    monkeypatch.setattr("tfdyno.jobs.diagnose.same_losses.train", same_losses)
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    law()
    return tmp_path


def same_losses(*_request: object, **_ways: object) -> SimpleNamespace:
    return SimpleNamespace(outcome=SimpleNamespace(history={"loss": [1.0, 0.5]}, stopped=""))


def law(**numbers: object) -> None:
    Path("law.json").write_text(json.dumps(numbers))


def ran() -> list[dict[str, Any]]:
    log = Path("runs.jsonl")
    lines = log.read_text().splitlines() if log.exists() else []
    return [json.loads(line)["recipe"] for line in lines]


def request(**fields: Any) -> TuneRequest:
    base = TuneRequest(workload=parse_reference("train.py"), folder=Path("out"), named=SMALL)
    return replace(base, **fields)


def last(asked: TuneRequest | None = None) -> Tuning:
    *_, end = tune(asked or request())
    return end


def true_rate(recipe: Recipe) -> float:
    """Samples per second by the law, without noise."""
    numbers = tune_child.LAW | json.loads(Path("law.json").read_text())
    batch_size = recipe.batch_size or tune_child.OWN_BATCH
    return batch_size / tune_child.step_s(recipe, numbers)


def test_the_whole_space_is_covered_and_the_winner_is_the_fastest_of_all() -> None:
    law(several_steps=0.1)
    end = last(request(trials=16))
    best = end.trial(end.best or 0)
    assert best.changes == {"batch_size": "512", "steps_per_execution": "8"}
    assert (end.ended, end.left) == ("covered", 0)
    assert end.proof
    assert end.proof.kept
    assert end.recipe == best.recipe
    # by hand: 512 / (0.0004 + 0.0512) over 64 / (0.004 + 0.0064) = 9922 / 6154
    assert end.proof.ratio == pytest.approx(9922 / 6154, rel=0.01)


def test_no_trial_that_was_not_run_is_better_than_the_winner() -> None:
    """Every recipe of the space is looked up in the law, run or not."""
    end = last(request(trials=8))
    winner = true_rate(end.trial(end.best or 0).recipe)
    skipped = [one for one in end.trials if one.status in ("hopeless", "pruned", "not_fit")]
    assert any(one.status == "pruned" for one in skipped)
    assert all(true_rate(one.recipe) < winner for one in skipped)


def test_a_trial_that_is_surely_slower_ends_before_its_last_run() -> None:
    end = last(request(trials=16))
    early = [one for one in end.trials if one.status == "pruned"]
    assert early
    assert all(len(one.rates_per_s) < end.runs for one in early)
    assert all("surely (99%)" in one.reason for one in early)


def test_lines_through_trials_leave_hopeless_ones_out() -> None:
    """XLA takes four times as long on every batch: after a few of its batches the rest is known."""
    batches = (64, 96, 128, 160, 192, 224, 256, 320, 384, 448)
    law(xla=4.0, noise=0.0005)
    named = {**SMALL, "batch_size": batches, "steps_per_execution": (1,)}
    end = last(request(trials=20, named=named, runs=2))
    hopeless = [one for one in end.trials if one.status == "hopeless"]
    assert hopeless
    winner = true_rate(end.trial(end.best or 0).recipe)
    assert all(true_rate(one.recipe) < winner for one in hopeless)
    assert all(one.estimate and one.estimate.made_by == "law" for one in hopeless)


def test_a_trial_whose_compile_fails_inside_xla_is_judged_as_what_it_ran() -> None:
    law(xla_fails=True)
    end = last(request(trials=16, named={**SMALL, "batch_size": (64, 128)}))
    asked = [one for one in end.trials if one.values.get("execution") == "xla" and one.ran]
    assert asked
    for one in asked:
        assert [step.step for step in one.retreats] == ["no_triton", "no_autotuning", "graph"]
        assert one.recipe.execution == "auto"  # as the start, which runs without XLA
    assert {one.recipe.execution for one in end.trials if one.is_judged} == {"auto"}
    judged = [one.recipe for one in end.trials if one.is_judged]
    assert len(judged) == len(set(map(repr, judged)))  # none is counted twice
    assert all("XLA failed to compile it" in one.reason for one in asked if one.status == "same")
    assert any("XLA failed to compile it" in note for note in end.notes) or all(
        one.status == "same" for one in asked
    )
    assert end.recipe.execution == "auto"


def test_what_xla_fails_to_compile_is_not_run_without_it_on_jax() -> None:
    """There is no graph: JAX without XLA runs operation by operation, which is another run."""
    law(xla_fails=True, task={"backend": "jax", "execution": "xla"}, software={"jax": "0.11.2"})
    recipe = from_settings({"execution": "xla"})
    asked = request(backend="jax", recipe=recipe, named={"batch_size": (64, 128)})
    with pytest.raises(CompilerError):
        last(asked)
    assert {one["execution"] for one in ran()} == {"xla"}


def test_a_batch_that_runs_out_of_memory_spares_the_larger_ones() -> None:
    law(most=128)
    end = last(request(trials=16))
    unfit = [one for one in end.trials if one.status == "not_fit"]
    assert all(one.batch_size > 128 for one in unfit)
    assert any(not one.ran and "ran out of memory" in one.reason for one in unfit)
    assert end.trial(end.best or 0).batch_size == 128


def test_a_run_that_takes_more_than_the_limit_is_ended_and_told_so() -> None:
    law(held_bytes_per_sample=1 << 20)  # 64 MiB for the start, 512 for the largest batch
    named = {**SMALL, "execution": ("graph",), "steps_per_execution": (1,)}
    end = last(request(trials=8, named=named, runs=2, memory_limit_bytes=400 << 20))
    unfit = [one for one in end.trials if one.status == "not_fit" and one.ran]
    assert [one.batch_size for one in unfit] == [512]
    assert "ran out of memory: it took " in unfit[0].reason
    assert "and the limit is 400 MiB" in unfit[0].reason


def test_what_made_one_trial_fail_is_not_tried_again() -> None:
    law(no_cache=True)
    named = {**SMALL, "batch_size": (64, 128), "input.cache": (False, True)}
    end = last(request(trials=16, named=named))
    failed = [one for one in end.trials if one.status == "failed"]
    assert all(one.recipe.input.cache for one in failed)
    assert any(not one.ran and "input.cache=true made trial" in one.reason for one in failed)


def test_a_smaller_batch_is_accumulated_to_the_same_update() -> None:
    named = {**SMALL, "batch_size": (32, 64), "execution": ("graph",)}
    end = last(request(trials=4, named=named))
    small = [one for one in end.trials if one.batch_size == 32]
    assert all(one.recipe.accumulation == 2 and not one.changes_batch for one in small)


def test_with_the_batch_kept_no_trial_changes_it() -> None:
    end = last(request(trials=8, keep_batch=True, named={**SMALL, "batch_size": (32, 64)}))
    assert all(not one.changes_batch for one in end.trials)
    assert end.proof
    assert end.proof.agreement


def test_where_the_fastest_learns_something_else_the_next_one_is_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def losses(asked: TrainRequest, **_ways: object) -> SimpleNamespace:
        assert asked.recipe
        made = [1.0, 0.9 if asked.recipe.steps_per_execution > 1 else 0.5]
        return SimpleNamespace(outcome=SimpleNamespace(history={"loss": made}, stopped=""))

    monkeypatch.setattr("tfdyno.jobs.diagnose.same_losses.train", losses)
    law(xla=0.5)  # and eight steps in one are faster still
    end = last(request(trials=4, named={**SMALL, "batch_size": (64,)}))
    assert end.trial(end.best or 0).changes == {"execution": "xla"}
    assert end.proof
    assert end.proof.kept
    assert end.recipe == from_settings({"execution": "xla"})
    assert any("not the answer. It is faster, but the losses do not agree." in one
               for one in end.notes)  # fmt: skip


def test_where_nothing_is_faster_the_start_stays() -> None:
    law(fixed_s=0.0)
    end = last(request(trials=3, named={**SMALL, "steps_per_execution": (1,)}))
    assert end.recipe == Recipe()
    assert end.proof is None or not end.proof.kept


def test_a_start_that_does_not_fit_is_answered_by_a_part_of_its_batch() -> None:
    law(most=100)
    end = last(request(recipe=from_settings({"batch_size": "256"}), named={}, trials=6))
    best = end.trial(end.best or 0)
    assert best.batch_size * best.recipe.accumulation == 256
    assert end.recipe == best.recipe
    assert end.trials[0].status == "not_fit"


def test_equal_seeds_try_the_same_recipes_in_the_same_order() -> None:
    one = last(request(trials=5, folder=Path("one")))
    other = last(request(trials=5, folder=Path("other")))
    assert [trial.recipe for trial in one.trials] == [trial.recipe for trial in other.trials]


def test_a_second_tuning_of_a_folder_is_refused_while_the_first_runs() -> None:
    Path("out").mkdir()
    held = lock_folder(Path("out"), LOCK_FILE)
    with pytest.raises(UsageError, match="in use by another run"):
        last()
    held.close()


def test_another_study_in_the_folder_is_not_touched() -> None:
    last(request(trials=2))
    with pytest.raises(UsageError, match="holds a study already"):
        last(request(trials=2))
    with pytest.raises(UsageError, match="holds another study"):
        last(request(trials=2, runs=2, resume=True))
    with pytest.raises(UsageError, match="nothing to resume"):
        last(request(folder=Path("nowhere"), resume=True))


def test_more_trials_of_a_study_go_on_where_it_ended() -> None:
    first = last(request(trials=3))
    count = len(ran())
    more = last(request(trials=5, resume=True))
    assert more.trials[: len(first.trials)] != ()
    assert [one.recipe for one in more.trials[: len(first.trials)]] == [
        one.recipe for one in first.trials
    ]
    assert len(ran()) > count


@pytest.mark.parametrize("kill_at", [1, 4, 8])
def test_a_killed_study_loses_no_trial_but_the_one_that_ran(kill_at: int) -> None:
    spaces = [f"{name}={','.join(str(v).lower() for v in values)}"
              for name, values in SMALL.items() if name != "precision"]  # fmt: skip
    words = ["tune", "train.py", "--output", "out", "--trials", "4", "-q", "--json",
             *(word for one in spaces for word in ("--space", one))]  # fmt: skip
    law(kill_at=kill_at)
    command = [sys.executable, "-c", IN_A_CHILD, *words]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert killed.returncode == -9
    law()
    before = len(ran())
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert sum(one["ran"] for one in told["trials"]) == 4
    judged = [one for one in told["trials"] if one["status"] == "measured"]
    assert judged
    assert all(len(one["rates_per_s"]) == 3 for one in judged)
    # of the runs before the kill only the one that was running is made again
    kept = sum(len(one["rates_per_s"]) for one in told["trials"])
    proof = 2 * told["proof"]["runs"] if told["proof"] else 0
    assert len(ran()) == kept + proof + 1
    assert before == kill_at + 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_kills_at_any_moment_cost_one_run_each_at_most(seed: int) -> None:
    draw, kills = random.Random(seed), 0
    command = [sys.executable, "-c", IN_A_CHILD, "tune", "train.py", "--output", "out", "-q",
               "--json", "--trials", "6", "--runs", "2"]  # fmt: skip
    while True:
        more = ["--resume"] if Path("out/study.sqlite").exists() else []
        running = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, text=True)
        try:
            answer, _ = running.communicate(timeout=draw.uniform(0.3, 1.6) if kills < 10 else None)
        except subprocess.TimeoutExpired:
            running.kill()
            running.communicate()
            kills += 1
            continue
        assert running.returncode == 0
        break
    told = json.loads(answer)
    assert sum(one["ran"] for one in told["trials"]) == 6
    measured = [json.dumps(one["changes"], sort_keys=True) for one in told["trials"]
                if one["status"] == "measured"]  # fmt: skip
    assert len(set(measured)) == len(measured)
    kept = sum(len(one["rates_per_s"]) for one in told["trials"])
    proof = 2 * told["proof"]["runs"] if told["proof"] else 0
    assert len(ran()) <= kept + proof + kills


def test_ctrl_c_prints_the_best_so_far_and_resume_goes_on() -> None:
    law(stop_at=7)
    words = ["tune", "train.py", "--output", "out", "--trials", "4", "-q", "--json"]
    command = [sys.executable, "-c", IN_A_CHILD, *words]
    stopped = subprocess.run(command, capture_output=True, text=True, check=False)
    assert stopped.returncode == 130
    assert "--resume goes on" in stopped.stderr
    told = json.loads(stopped.stdout)
    assert (told["ended"], told["best"]["status"]) == ("stopped", "measured")
    assert json.loads(Path("out/tuning.json").read_text())["ended"] == "stopped"
    assert not Path("out/recipe.toml").exists()
    law()
    done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert Path("out/recipe.toml").exists()
