from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from tests import past_runs
from tests.past_runs import DOCUMENTS
from tests.ui.running import Running, running
from tests.ui.what_ifs import MODEL, of_command

from tfdyno.core.choose.workload import Workload
from tfdyno.store.run_events import RunEvents
from tfdyno.store.run_folder import RunFolder, RunRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASKED = {"workload": MODEL, "gpu": "l4", "batch_size": "8"}


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


def test_each_panel_has_its_command_and_its_document(server: Running) -> None:
    keys = {"step": "estimates", "run": "picks", "ranking": "picks"}
    for path, key in keys.items():
        status, found = server.json(f"/api/{path}?{urlencode(ASKED)}")
        assert status == 200
        assert found["command"].startswith("tfdyno ")
        assert key in found["document"]


def test_each_browser_is_answered_in_its_language(server: Running) -> None:
    """The sentences are those of the command with ``--lang``; two readers at once keep theirs."""
    paths = [f"/api/{panel}?{urlencode(ASKED)}" for panel in ("step", "ranking")]
    for path in paths:
        server.json(path)  # traced
    languages = ("en", "zh") * 8
    with ThreadPoolExecutor(len(languages)) as readers:
        for path in paths:
            ask = partial(server.json, path)
            found = list(readers.map(lambda one, ask=ask: ask(accept_language=one), languages))
            for language, (status, answer) in zip(languages, found, strict=True):
                assert status == 200
                printed = json.loads(of_command(answer["command"], "--lang", language))
                assert answer["document"] == printed
        headlines = [answer["document"]["headline"] for _, answer in found[:2]]
        assert [one.isascii() for one in headlines] == [True, False]


def test_your_own_price_is_what_the_run_costs(server: Running) -> None:
    asked = {**ASKED, "count": "2", "usd_per_h": "3", "samples": "1000000", "epochs": "7"}
    _, found = server.json(f"/api/run?{urlencode(asked)}")
    (row,) = found["document"]["ranking"]
    assert (row["provider"], row["count"], row["usd_per_h"]) == ("own-price", 2, 3.0)
    assert row["cost_usd"] == pytest.approx(3.0 * row["hours"])
    assert found["document"]["run"]["samples"] == 7_000_000


def test_only_a_run_that_nothing_is_offered_for_has_a_code_of_its_own(server: Running) -> None:
    """The page asks for a price then; whatever else is wrong it tells."""
    status, found = server.json(f"/api/run?{urlencode({**ASKED, 'count': '3'})}")
    assert (status, found["code"]) == (400, "no_offer")
    status, found = server.json(f"/api/run?{urlencode({**ASKED, 'samples': '-3'})}")
    assert (status, set(found)) == (400, {"error"})


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"gpu": "t44"}, "there is no GPU 't44'"),
        ({"batch_size": "1e99"}, "batch size 1e99 is not possible"),
        ({"batch_size": "-0"}, "batch size -0 is not possible"),
        ({"workload": "os:system"}, "the page does not run os:system"),
        ({"workload": "<script>"}, "the page does not run <script>"),
        ({"wrong": "1"}, "setting 'wrong' is not one of"),
        ({"gpu": "ä" * 300}, "there is no GPU"),
    ],
)
def test_a_wrong_setting_is_one_sentence(
    server: Running, more: dict[str, str], sentence: str
) -> None:
    for path in ("step", "run", "ranking"):
        status, found = server.json(f"/api/{path}?{urlencode({**ASKED, **more})}")
        assert status == 400
        assert found["error"].startswith(sentence)
        assert set(found) == {"error"}


def test_what_is_not_there_is_told_as_json(server: Running) -> None:
    for path in ("/nothing", "/api/", "/api/step/more", "/../etc/passwd", "/%00", "//"):
        status, _, body = server.get(path)
        assert (status, json.loads(body)) == (404, {"error": "there is no such page; ask for /."})


def test_a_workload_that_fails_is_told_and_asked_for_again(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise ValueError('the data are not there')")
    with running(str(script)) as found:
        query = urlencode({"workload": str(script), "gpu": "l4"})
        for _ in range(2):
            status, told = found.json(f"/api/step?{query}")
            assert status == 400
            assert "the data are not there" in told["error"]


def test_the_state_lists_what_the_controls_offer(server: Running) -> None:
    _, found = server.json("/api/state")
    assert found["workload"] == found["workloads"][0] == MODEL
    assert {"slug": "l4", "name": "L4", "group": "Ada Lovelace"} in found["gpus"]
    assert {one["slug"] for one in found["gpus"]} >= {"a100-sxm4-80gb", "rtx-4090"}


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Running]:
    shutil.copytree(DOCUMENTS, tmp_path / "answers")
    past_runs.two_runs(tmp_path)
    with running(MODEL, "--folder", str(tmp_path)) as found:
        yield replace(found, folder=tmp_path)


def test_the_results_of_the_folder_are_listed_and_compared(shelf: Running) -> None:
    status, found = shelf.json("/api/results")
    assert (status, found["notes"]) == (200, [])
    rows = {row["place"]: row for row in found["rows"]}
    bench = rows["answers/bench.json"]
    assert (bench["kind"], bench["kind_words"]) == ("bench", "Speed")
    assert bench["figures"][0].startswith("throughput: 167 samples/s")
    query = urlencode({"before": bench["id"], "after": rows["answers/bench-fast.json"]["id"]})
    status, found = shelf.json(f"/api/difference?{query}")
    assert status == 200
    (speed,) = [row for row in found["rows"] if row["figure"] == "Throughput"]
    assert speed["verdict"] == "no_difference"
    assert speed["words"] == "No difference, 1.083x (0.83–1.41, 99 %)"


def test_what_runs_below_the_folder_is_listed_and_its_events_follow(shelf: Running) -> None:
    run = RunFolder(shelf.folder / "runs" / "first")
    run.prepare()
    run.write(RunRecord(workload=Workload(reference="train.py", kind="script")))
    with run.held(), RunEvents(run.path, dict) as events:
        status, found = shelf.json("/api/live")
        (row,) = found["rows"]
        assert (status, row["kind"], row["state"]) == (200, "train", "running")
        assert (row["title"], row["place"]) == ("train.py", "runs/first")
        query = f"/api/events?id={row['id']}&from="
        assert shelf.json(query + "0") == (200, {"events": [], "next": 0})
        events.take('{"event": "steps", "epoch": 1, "step": 3, "loss": 0.5}')
        status, told = shelf.json(query + "0")
        assert [one["loss"] for one in told["events"]] == [0.5]
        assert shelf.json(f"{query}{told['next']}")[1]["events"] == []
    shutil.rmtree(run.path)


@pytest.mark.parametrize("query", ["", "id=a", "id=a&from=0", "id=a&from=-1", "id=a&from=x"])
def test_events_of_what_is_not_there_are_refused(shelf: Running, query: str) -> None:
    status, found = shelf.json(f"/api/events?{query}")
    assert (status, set(found)) == (400, {"error"})


@pytest.mark.parametrize(
    "query", ["", "before=a", "before=a&after=b", "before=../../etc&after=passwd", "x=1"]
)
def test_a_difference_of_what_is_not_there_is_refused(shelf: Running, query: str) -> None:
    status, found = shelf.json(f"/api/difference?{query}")
    assert (status, set(found)) == (400, {"error"})


def test_results_are_for_who_has_the_token(shelf: Running) -> None:
    for path in ("/api/results", "/api/difference?before=a&after=b", "/api/live",
                 "/api/events?id=a&from=0", "/api/recipe", "/api/project"):  # fmt: skip
        assert shelf.get(path, authorization="")[0] == 401


def test_results_are_english_for_every_reader(shelf: Running) -> None:
    """They are kept as they are told first."""
    for path in ("/api/results", "/api/live"):
        chinese, english = (shelf.get(path, accept_language=one)[2] for one in ("zh", "en"))
        assert chinese == english
        assert chinese.isascii() or b"\xe8" not in chinese


@pytest.mark.parametrize(
    ("path", "header", "language"),
    [
        ("/", "", "en"), ("/", "zh-CN,zh;q=0.9", "zh"), ("/", "fr-FR", "en"),
        ("/?lang=zh", "en-US", "zh"), ("/?lang=xx", "zh", "zh"), ("/results?lang=en", "zh", "en"),
    ],
)  # fmt: skip
def test_the_page_speaks_the_language_that_was_asked_for(
    server: Running, path: str, header: str, language: str
) -> None:
    status, _, body = server.get(path, accept_language=header)
    assert status == 200
    assert f'<html lang="{language}">'.encode() in body
