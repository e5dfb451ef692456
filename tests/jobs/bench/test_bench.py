"""jobs/bench: fresh processes in turn, every run kept, and what stops it leaves no process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.jobs import bench_child

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.measure.measurement import Protocol
from tfdyno.core.recipe.recipe import InputOptions, Recipe
from tfdyno.jobs.bench.bench import BenchRequest, bench, kept_answer, unfinished_answer
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.store.results import Results

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[3]
PARENT = """
import sys
from tests.jobs import bench_child
import tfdyno.jobs.bench.run as run
from tfdyno.cli.main import main
run.RUN = bench_child.MADE_UP
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a script, whose runs the stand-in child makes up."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "src"))))
    monkeypatch.setattr("tfdyno.jobs.bench.run.RUN", bench_child.MADE_UP)
    (tmp_path / "train.py").write_text("model.fit(x)\n")
    planned(tmp_path)
    return tmp_path


def planned(folder: Path, **plan: object) -> None:
    """What the stand-in does; a number names the run, over all, that it is about."""
    (folder / "plan.json").write_text(json.dumps(plan))


def request(**fields: object) -> BenchRequest:
    base = BenchRequest(
        workload=parse_reference("train.py"),
        protocol=Protocol(least_runs=3, most_runs=6),
        folder=Path("results"),
    )
    return replace(base, **fields)  # type: ignore[arg-type]


def ran(folder: Path) -> list[dict[str, object]]:
    """What every child saw, in order."""
    log = folder / "runs.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def alive(pid: object) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(str(pid)), 0)
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    return False


def until(true: Callable[[], bool], limit_s: float = 20.0) -> None:
    deadline_s = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def kept() -> Results:
    return Results(folder=Path("results"))


def test_every_run_is_a_fresh_process_and_a_quiet_bench_takes_the_least(folder: Path) -> None:
    (one,) = bench(request(label="mine"))
    assert len({each["pid"] for each in ran(folder)}) == len(one.runs) == 3
    assert [run.order for run in one.runs] == [0, 1, 2]
    assert (one.label, one.task.title, one.environment.device) == ("mine", "convnet", "cpu")
    assert kept().measurement() == one


def test_a_wide_interval_asks_for_more_runs_up_to_the_most(folder: Path) -> None:
    planned(folder, **{str(number): {"step_s": 0.1 + 0.05 * (number % 2)} for number in range(9)})
    (one,) = bench(request())
    assert len(one.runs) == 6


def test_two_recipes_take_turns_that_begin_with_another_each_time(folder: Path) -> None:
    recipes = {"recipe": Recipe(batch_size=8), "against": Recipe(batch_size=9, threads_intra=2)}
    a, b = bench(request(**recipes, protocol=Protocol(least_runs=3, most_runs=3)))
    assert [each["batch_size"] for each in ran(folder)] == [8, 9, 9, 8, 8, 9]
    assert [each["threads"] for each in ran(folder)][:2] == [None, "2"]
    assert [run.order for run in a.runs] == [0, 3, 4]
    assert [run.order for run in b.runs] == [1, 2, 5]
    assert a.session == b.session != ""
    assert a.id != b.id


def test_a_workload_that_fails_is_run_once_and_leaves_nothing(folder: Path) -> None:
    planned(folder, **{"0": {"fail": "ValueError: no"}})
    with pytest.raises(UsageError, match=r"train\.py failed at step 3: ValueError: no\.") as told:
        bench(request())
    assert len(ran(folder)) == 1
    assert not getattr(told.value, "__notes__", [])
    assert kept().measurements() == ()


def test_runs_beyond_the_least_are_kept_runs_and_no_share_of_it(folder: Path) -> None:
    slower = {str(number): {"step_s": 0.1 + 0.05 * number} for number in range(3)}
    planned(folder, **slower, **{"3": {"fail": "the disk was pulled"}})
    with pytest.raises(UsageError) as told:
        bench(request(recipe=Recipe(seed=1)))
    assert told.value.__notes__ == [
        "3 runs are kept in results; the same command with --resume goes on."
    ]


def test_what_stops_it_midway_says_what_is_kept_and_resume_goes_on(folder: Path) -> None:
    planned(folder, **{"2": {"fail": "the disk was pulled"}})
    with pytest.raises(UsageError) as told:
        bench(request(recipe=Recipe(seed=1)))
    assert told.value.__notes__ == [
        "2 of 3 runs are kept in results; the same command with --resume goes on."
    ]
    planned(folder)
    (one,) = bench(request(recipe=Recipe(seed=1), resume=True))
    assert len(ran(folder)) == 4  # two, the one that failed, and one more
    assert [run.order for run in one.runs] == [0, 1, 2]
    assert kept().measurements() == (one,)


def test_a_pair_goes_on_in_its_turns(folder: Path) -> None:
    planned(folder, **{"3": {"fail": "no"}})
    asked = request(recipe=Recipe(batch_size=8), against=Recipe(batch_size=9),
                     protocol=Protocol(least_runs=2, most_runs=2))  # fmt: skip
    with pytest.raises(UsageError):
        bench(asked)
    a, b = bench(replace(asked, resume=True))
    assert [each["batch_size"] for each in ran(folder)] == [8, 9, 9, 8, 8]
    assert (len(a.runs), len(b.runs), a.session == b.session) == (2, 2, True)


def test_only_the_same_question_is_resumed(folder: Path) -> None:
    planned(folder, **{"1": {"fail": "no"}, "2": {"fail": "no"}})
    with pytest.raises(UsageError):
        bench(request())
    changed = [
        request(recipe=Recipe(batch_size=8)), request(protocol=Protocol(least_runs=4)),
        request(protocol=Protocol(data="synthetic")), request(folder=Path("elsewhere")),
    ]  # fmt: skip
    for other in changed:
        with pytest.raises(UsageError, match="there is nothing to resume in"):
            bench(replace(other, resume=True))
    (folder / "train.py").write_text("model.fit(other)\n")
    with pytest.raises(UsageError, match="there is nothing to resume in results"):
        bench(request(resume=True))
    assert len(ran(folder)) == 2


def test_a_finished_bench_is_found_by_the_same_question_alone(folder: Path) -> None:
    asked = request(against=Recipe(input=InputOptions(prefetch=-1)))
    assert kept_answer(asked) == ()
    assert unfinished_answer(asked) == ()
    sides = bench(asked)
    assert kept_answer(asked) == sides
    assert kept_answer(replace(asked, recipe=Recipe(batch_size=9))) == ()
    (folder / "train.py").write_text("model.fit(other)\n")
    assert kept_answer(asked) == ()


def test_a_finished_bench_is_not_resumed(folder: Path) -> None:
    bench(request())
    with pytest.raises(UsageError, match="there is nothing to resume in results"):
        bench(request(resume=True))


def test_a_run_of_another_model_does_not_join(folder: Path) -> None:
    planned(folder, **{"1": {"task": {"parameter_count": 2000}}})
    with pytest.raises(ToolError, match="parameter_count was 1000 and is 2000"):
        bench(request())
    assert len(kept().measurement().runs) == 1


def test_a_run_without_steps_is_refused(folder: Path) -> None:
    planned(folder, **{"0": {"samples": 0}})
    with pytest.raises(ToolError, match=r"run 1 of train\.py measured no step"):
        bench(request())


def test_made_up_data_keeps_no_accuracy_and_a_loss_of_nan_no_file_breaks(folder: Path) -> None:
    (real,) = bench(request())
    (made_up,) = bench(request(protocol=Protocol(data="synthetic", least_runs=1, most_runs=1)))
    assert real.runs[0].metrics == {"accuracy": 0.9}
    assert made_up.runs[0].metrics == {}
    assert kept().measurement() == made_up


def test_progress_says_which_run_it_is(folder: Path) -> None:
    said: list[str] = []
    bench(request(protocol=Protocol(least_runs=1, most_runs=1)), progress=said.append)
    assert said == ["run 1 of 1: starting", "run 1 of 1: 40 steps, median 52.1 ms"]
    two = Protocol(least_runs=2, most_runs=2)
    bench(request(against=Recipe(), protocol=two), progress=said.append)
    assert said[2:6:2] == ["A, run 1 of 2: starting", "B, run 1 of 2: starting"]
    assert said[6:10:2] == ["B, run 2 of 2 (100 ms so far): starting",
                            "A, run 2 of 2 (100 ms so far): starting"]  # fmt: skip


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        (Protocol(least_runs=5, most_runs=3), "5 to 3 runs are not possible"),
        (Protocol(least_runs=0), "0 to 20 runs are not possible"),
        (Protocol(target_metric="loss", epochs=2, data="synthetic"), "--target needs real data"),
        (Protocol(data="real"), "--data real goes with a standard task"),
    ],
)
def test_a_question_without_an_answer_starts_nothing(
    folder: Path, protocol: Protocol, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        bench(request(protocol=protocol))
    assert {path.name for path in folder.iterdir()} == {"train.py", "plan.json"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_ends_the_child_and_says_how_to_go_on(
    folder: Path, number: signal.Signals, code: int
) -> None:
    planned(folder, **{"1": {"sleep_s": 60}})
    words = ["bench", "train.py", "--runs", "2", "--output", "results", "-q"]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *words], stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,  # noqa: PLW1509
    )  # fmt: skip
    until(lambda: len(ran(folder)) == 2)
    parent.send_signal(number)
    _, err = parent.communicate(timeout=60)
    assert parent.returncode == code
    assert err.endswith("1 of 2 runs is kept in results; the same command with --resume goes on.\n")
    assert not alive(ran(folder)[1]["pid"])
    planned(folder)
    done = subprocess.run([sys.executable, "-c", PARENT, *words, "--resume"], check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert (done.returncode, len(kept().measurement().runs)) == (0, 2), done.stderr


def test_a_bench_that_is_killed_leaves_no_process_and_keeps_its_runs(folder: Path) -> None:
    planned(folder, **{"1": {"sleep_s": 60}})
    words = ["bench", "train.py", "--runs", "2", "--output", "results", "-q"]
    parent = subprocess.Popen([sys.executable, "-c", PARENT, *words], stderr=subprocess.PIPE)
    until(lambda: len(ran(folder)) == 2)
    parent.kill()
    parent.communicate()
    until(lambda: not alive(ran(folder)[1]["pid"]))
    planned(folder)
    protocol = Protocol(least_runs=2, most_runs=2)
    (one,) = bench(request(protocol=protocol, resume=True))
    assert len(one.runs) == 2


def test_a_folder_that_is_a_file_is_refused_before_the_first_run(folder: Path) -> None:
    (folder / "results").write_text("mine")
    with pytest.raises(TfdynoError, match="results cannot be kept in results: there is a file"):
        bench(request())
    assert ran(folder) == []
