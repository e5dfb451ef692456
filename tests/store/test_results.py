"""store/results: what was committed stays, whatever happens to the writers and the disk."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.measurements import measurement, run

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.store.results import FILE, SCHEMA_VERSION, Results

ROOT = Path(__file__).parents[2]
LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
"""
WRITER = """
import sys
from pathlib import Path
from tests.measurements import measurement, run
from tfdyno.store.results import Results

folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
results = Results(folder=folder)
results.start(measurement([[0.5]], id=name), key=name)
print("committed 0", flush=True)
for order in range(1, count):
    results.add_run(name, run([0.1 * order] * 200, order=order))
    print("committed", order, flush=True)
"""


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(folder=tmp_path / "results")


def writer(folder: Path, name: str, count: int, *, limited: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            (LIMITED if limited else "") + WRITER,
            str(folder),
            name,
            str(count),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def sound(folder: Path) -> bool:
    with sqlite3.connect(folder / FILE) as database:
        return bool(database.execute("PRAGMA integrity_check").fetchone() == ("ok",))


def test_a_measurement_comes_back_as_it_was_with_the_runs_added_later(results: Results) -> None:
    whole = measurement([[0.1, 0.2], [0.3]], label="mine", session="s")
    results.start(replace(whole, runs=whole.runs[:1]), key="k")
    results.add_run(whole.id, whole.runs[1])
    assert results.measurement() == results.measurement("0123") == whole
    assert results.measurements() == (whole,)


def test_the_newest_comes_first_and_a_beginning_of_an_id_finds_one(results: Results) -> None:
    for name in ("aa11", "aa22", "bb33"):
        results.start(measurement([[0.1]], id=name), key="k")
    assert [one.id for one in results.measurements()] == ["bb33", "aa22", "aa11"]
    assert results.measurement("aa2").id == "aa22"
    with pytest.raises(UsageError, match="aa is the beginning of several: aa22, aa11; give more"):
        results.measurement("aa")
    with pytest.raises(UsageError, match="holds no measurement %"):
        results.measurement("%")


def test_only_the_newest_session_without_an_end_goes_on(results: Results) -> None:
    for name, session in (("aa", "1"), ("bb", "2"), ("cc", "2")):
        results.start(measurement([[0.1]], id=name, session=session), key="k")
    results.start(measurement([[0.1]], id="dd", session="3"), key="another")
    assert [one.id for one in results.unfinished("k")] == ["bb", "cc"]
    results.finish("bb", "cc")
    assert [one.id for one in results.unfinished("k")] == ["aa"]
    assert results.holds_unfinished()
    results.finish("aa", "dd")
    assert not results.holds_unfinished()
    assert results.unfinished("never asked") == ()


def test_the_newest_session_that_came_to_its_end_is_found_by_its_key(results: Results) -> None:
    assert results.finished("k") == ()
    for name in ("old", "new", "open"):
        for side in "ab":
            results.start(measurement([[0.1]], id=name + side, session=name), key="k")
    results.finish("olda", "oldb")
    results.finish("newa", "newb")
    assert [one.id for one in results.finished("k")] == ["newa", "newb"]
    assert [one.id for one in results.unfinished("k")] == ["opena", "openb"]
    assert results.finished("other") == ()


def test_a_folder_without_results_is_told(tmp_path: Path) -> None:
    results = Results(folder=tmp_path)
    assert (results.measurements(), results.unfinished("k")) == ((), ())
    with pytest.raises(UsageError, match="holds no results; tfdyno bench makes them"):
        results.measurement()


def test_two_writers_at_once_lose_nothing(results: Results) -> None:
    both = [writer(results.folder, name, 40) for name in ("aa", "bb")]
    seen = 0
    while any(one.poll() is None for one in both):
        seen = max(seen, len(results.measurements()))  # a reader meets no half of a run
        time.sleep(0.05)
    assert [one.communicate()[1] for one in both] == ["", ""]
    assert seen
    for name in ("aa", "bb"):
        orders = [one.order for one in results.measurement(name).runs]
        assert orders == list(range(40))
    assert sound(results.folder)


def test_a_writer_that_is_killed_keeps_what_it_committed(results: Results) -> None:
    for number in range(6):
        name = f"aa{number}"
        killed = writer(results.folder, name, 100_000)
        assert killed.stdout
        for _ in range(2 + 3 * number):
            line = killed.stdout.readline()
        time.sleep(0.002 * number)  # at another moment of the transaction each time
        killed.send_signal(signal.SIGKILL)
        rest = killed.stdout.read()  # with what readline has taken from the pipe already
        killed.communicate()
        told = int((rest.split("\n")[-2] if "\n" in rest else line).split()[1])
        found = [one.order for one in results.measurement(name).runs]
        assert found == list(range(len(found)))
        assert len(found) - 1 in {told, told + 1}  # committed, and perhaps not yet told
    assert sound(results.folder)
    results.start(measurement([[0.1]], id="after"), key="k")
    assert len(results.measurements()) == 7


def test_a_full_disk_is_one_sentence_and_keeps_what_was_there(results: Results) -> None:
    full = writer(results.folder, "aa", 100_000, limited=True)
    out, err = full.communicate(timeout=60)
    assert full.returncode == 1
    last = err.strip().splitlines()[-1]
    assert "ToolError: results cannot be written to" in last
    assert "full" in last
    told = int(out.splitlines()[-1].split()[1])
    assert [one.order for one in results.measurement("aa").runs] == list(range(told + 1))
    assert sound(results.folder)


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_folder_that_is_a_file_is_refused(tmp_path: Path, below: str) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(UsageError, match="there is a file of that name; name another folder"):
        Results(folder=tmp_path / "notes" / below).prepare()
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_folder_that_takes_no_files_is_refused() -> None:
    with pytest.raises(UsageError, match="results cannot be kept in"):
        Results(folder=Path("/proc/self")).prepare()  # also to root


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 99, b"SQLite format 3\0" + b"x" * 5000]
)
def test_a_file_of_another_kind_is_refused_and_left(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    results = Results(folder=tmp_path)
    for call in (results.prepare, results.measurement):
        with pytest.raises(
            TfdynoError, match=r"results\.sqlite is not a file of results of tfdyno"
        ):
            call()
    assert (tmp_path / FILE).read_bytes() == content


def test_another_programs_database_and_a_newer_schema_are_refused(tmp_path: Path) -> None:
    results = Results(folder=tmp_path)
    with sqlite3.connect(results.path) as database:
        database.execute("CREATE TABLE cookies (name)")
    with pytest.raises(UsageError, match="is not a file of results of tfdyno"):
        results.prepare()
    with sqlite3.connect(results.path) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    for call in (results.prepare, results.measurements):
        with pytest.raises(UsageError, match="was written by a newer tfdyno; update tfdyno"):
            call()


def test_a_writer_that_waits_too_long_is_told(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    results.prepare()
    monkeypatch.setattr("tfdyno.store.sqlite_file.PATIENCE_S", 0.1)
    with sqlite3.connect(results.path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ToolError, match="another process has held it"):
            results.prepare()


def test_results_are_read_from_a_file_that_may_not_be_written(results: Results) -> None:
    results.start(measurement([[0.1]]), key="k")
    beside = [path.name for path in results.folder.iterdir()]
    assert beside == [FILE]  # nothing is left beside the file that a copy would miss
    copy = Results(folder=results.folder.parent / "copy")
    copy.folder.mkdir()
    copy.path.write_bytes(results.path.read_bytes())
    copy.path.chmod(0o444)
    copy.folder.chmod(0o555)
    assert copy.measurement() == results.measurement()


def test_a_value_that_was_tampered_with_is_told(results: Results) -> None:
    results.start(measurement([[0.1]]), key="k")
    with sqlite3.connect(results.path) as database:
        (text,) = database.execute("SELECT noun FROM run").fetchone()
        noun = {**json.loads(text), "steady_from": "soon"}
        database.execute("UPDATE run SET noun = ?", (json.dumps(noun),))
    with pytest.raises(UsageError, match=r"results\.sqlite has a wrong value"):
        results.measurement()


def test_what_runs_is_told_with_the_runs_that_it_has(results: Results) -> None:
    assert results.running() == ()
    results.start(measurement([], id="one"), key="a")
    results.start(measurement([[0.5]], id="two"), key="b")
    results.finish("one")
    results.add_run("two", run([0.1] * 5, order=1))
    (found,) = results.running()
    assert (found.id, len(found.runs)) == ("two", 2)
