"""view.project_page: one file, everything in it, and each kind of step optional."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from tests import past_runs
from tests.past_runs import (
    FIRST,
    SECOND,
    THIRD,
    failed_run,
    forget,
    project_run,
    put,
    step_run,
    two_runs,
)

from tfdyno.core.base.lock import lock_folder
from tfdyno.core.project.project import DOCUMENT, FOLDER, LOCK
from tfdyno.jobs.project.report import benches, report
from tfdyno.store.project_history import ProjectHistory
from tfdyno.view.project.page import project_page

if TYPE_CHECKING:
    from pathlib import Path


def page(history: ProjectHistory, run: str = "") -> str:
    found = report(history, run=run)
    return project_page(found, benches(found.told))


def words(html: str) -> str:
    """What a reader sees, in one line."""
    body = re.sub(r"(?s)<(script|style|svg).*?</\1>", "", html)
    return " ".join(re.sub(r"<[^>]+>", " ", body).replace("\u00a0", " ").split())


def test_the_page_loads_nothing_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    html = page(two_runs(tmp_path))
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', html)
    targets = set(re.findall(r'href="#([^"]+)"', html))
    assert targets <= set(re.findall(r' id="([^"]+)"', html))
    assert {f"step-{name}" for name in past_runs.STEPS} <= targets


def test_the_answer_of_every_step_stands_in_the_head(tmp_path: Path) -> None:
    found = words(page(two_runs(tmp_path)))
    head, _, rest = found.partition("Numbers behind this figure")
    for text in ("Tesla T4 for under $0.01", "10 of them reused", "It trains", "is not kept",
                 "passed their gates", "Kept as shapes:1", "fits on 7 of 7",
                 "925 requests/s"):  # fmt: skip
        assert text in head
    assert "What changed speed : option arguments is new (--fast)" in rest
    assert "What it gained speed : Throughput:" in rest


def test_the_figures_of_the_steps_own_pages_are_there(tmp_path: Path) -> None:
    html = page(two_runs(tmp_path))
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", html)
    for part in ("Cost of the whole training on", "Cost of a month on", "Time of a step",
                 "One step, by what",
                 "Time of a batch by stage", "largest difference of an output", "LiteRT on",
                 "Latency of accepted requests", "How long requests took",
                 "Throughput of speed, each time", "Speed of the trials"):  # fmt: skip
        assert any(part in one for one in captions), part
    assert "left out:" not in words(html)


def test_the_joined_document_is_in_the_page(tmp_path: Path) -> None:
    html = page(two_runs(tmp_path))
    raw = re.search(r'(?s)<script type="application/json" id="result">(.*?)</script>', html)
    assert raw is not None
    assert json.loads(raw[1])["id"] == SECOND


def test_a_failed_run_shows_what_failed_and_what_was_not_reached(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed_run(history)
    found = words(page(history))
    assert "shapes: train failed" in found
    assert "train failed Exit code 3: out of memory." in found
    assert "Not reached The run ended before these steps speed, export History" in found


@pytest.mark.parametrize("name", [*past_runs.STEPS, "doctor"])
def test_a_project_may_have_one_step_alone_of_any_command(tmp_path: Path, name: str) -> None:
    history = ProjectHistory(folder=tmp_path / FOLDER)
    document = past_runs.document(past_runs.STEPS[name][1]) if name in past_runs.STEPS else {"a": 1}
    put(history, step_run(name), document)
    history.write(project_run(FIRST, step_run(name)))
    found = words(page(history))
    assert "The one step is done." in found
    assert "The first run There is nothing to compare with yet." in found
    assert "left out:" not in found


def test_a_tuning_is_shown_by_its_trials(tmp_path: Path) -> None:
    history = ProjectHistory(folder=tmp_path / FOLDER)
    trials = [{"changes": {"batch_size": size}, "status": "measured", "samples_per_s": size * 3.0,
               "ran": True, "reason": ""} for size in (32, 64)] + [
        {"changes": {"batch_size": 4096}, "status": "failed", "ran": True,
         "reason": "out of memory"}
    ]  # fmt: skip
    document = {"trials": trials, "best": {"changes": {"batch_size": 64}, "samples_per_s": 192.0},
                "proof": {"ratio": 1.9, "interval": [1.7, 2.1], "kept": True}}  # fmt: skip
    step = step_run("tune")
    put(history, step, document)
    history.write(project_run(FIRST, step))
    found = words(page(history))
    assert (
        "Tuning gained 1.90x (1.70–2.10) with batch_size=64 out of 3 trials, 1 of which failed"
        in found
    )
    assert "batch_size=4096 failed – out of memory" in found


def test_what_cannot_be_read_is_said_and_the_rest_is_shown(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    past_runs.remove(history, "phones")
    for name in ("phones", "train"):
        forget(history, step_run(name))
    (history.output(step_run("train")) / DOCUMENT).write_text("{")
    raw = past_runs.document("diagnose")
    put(history, step_run("look"), {k: v for k, v in raw.items() if k != "facts"})
    put(history, step_run("load"), past_runs.document("load") | {"stages": [1]})
    found = words(page(history))
    assert "phones has no result to show Its output was deleted." in found
    assert "train has no result to show Document.json is not valid JSON" in found
    assert found.count("Its figures are left out:") == 2
    assert "passed their gates" in found


def test_text_of_a_document_cannot_become_markup(tmp_path: Path) -> None:
    history = ProjectHistory(folder=tmp_path / FOLDER)
    evil = "<script>alert(1)</script>"
    raw = past_runs.document("diagnose")
    raw["primary"]["summary"] = evil
    put(history, step_run("look"), raw)
    history.write(project_run(FIRST, step_run("look")))
    assert evil not in page(history)


def test_more_runs_than_columns_are_counted(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    for number in range(9):
        name = f"20261124-07000{number}-eeee"
        history.write(project_run(name, step_run("speed", status="reused")))
    failed_run(history)
    found = words(page(history))
    assert "6 of 12 runs side by side" in found
    assert THIRD in found


def test_the_newest_run_is_the_first_column(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    failed_run(history)
    html = page(history)
    columns = re.findall(r'<th scope="col"[^>]*>(2026[^<]*)<small>', html)
    assert columns == [THIRD, SECOND, FIRST]


def test_a_run_that_goes_on_says_what_is_to_come(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    steps = (step_run("choose", status="reused"), step_run("train", status="running"))
    history.write(project_run(THIRD, *steps, status="running", asked=("speed", "export")))
    lock = lock_folder(history.folder, LOCK)
    try:
        found = words(page(history))
    finally:
        lock.close()
    assert "The run is going on: 1 of 4 steps is done so far." in found
    assert "To come The run has not come to these steps yet speed, export" in found


def test_only_what_samples_show_stands_in_the_head(tmp_path: Path) -> None:
    history = two_runs(tmp_path)
    raw = past_runs.document("export")
    for one in raw["formats"]:  # ten times as fast, by intervals that hold nothing of the machine
        for call in one["latency"]:
            call["exported_s"] = {name: s / 10 for name, s in call["exported_s"].items()}
    export, fast = step_run("export", version=6), step_run("speed", version=6)
    put(history, export, raw)
    bench = past_runs.document("bench")
    for run in bench["runs"]:
        run["samples_s"] = [s / 10 for s in run["samples_s"]]
    put(history, fast, bench)
    history.write(project_run(THIRD, export, fast))
    found = report(history)
    better = {(one.step, one.way) for one in found.compared[0].gained if one.verdict == "better"}
    assert better == {("export", "intervals"), ("speed", "samples")}
    head = words(project_page(found, benches(found.told))).partition("History Next")[0]
    assert f"Since {SECOND}, speed: Throughput:" in head
    assert f"Since {SECOND}, export" not in head
