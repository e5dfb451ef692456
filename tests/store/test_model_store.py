"""store/model_store: versions stay whole whatever ends a writer, and the one in use is clear."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.deploy.model_version import Lineage
from tfdyno.store.model_files import ARTEFACTS, OBJECTS, TEMPORARY
from tfdyno.store.model_rows import FILE
from tfdyno.store.model_store import ModelStore
from tfdyno.store.sqlite_file import SqliteFile

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from tfdyno.core.deploy.model_version import ModelVersion

ROOT = Path(__file__).parents[2]
AT = "2026-11-23T12:00:00+00:00"
MOMENTS = {
    "open", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree",
    "sqlite3.connect", "sqlite3.connect/handle", "tempfile.mkdtemp",
}  # fmt: skip
"""What Python tells an audit hook of: each is a moment at which a process is killed."""
STEPS = pytest.mark.parametrize(
    "step", [4, pytest.param(1, marks=pytest.mark.slow)], ids=["sample", "all"]
)
"""Every fourth moment, or each."""
WRITER = """
import random, sys
from pathlib import Path
from tests.store.test_model_store import add
from tfdyno.store.model_store import ModelStore

folder, name, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
store, chance = ModelStore(folder / "store"), random.Random(seed)
for number in range(100_000):
    shared, own = bytes([number % 5]) * 200_000, chance.randbytes(chance.randrange(400_000))
    print("added", add(store, folder / name / str(number), name, shared, own).version, flush=True)
    if number % 7 == 6:
        store.collect(keep=3)
        print("collected", flush=True)
"""


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "store")


def saved_model(folder: Path, *contents: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for place, content in enumerate(contents):
        (folder / f"part-{place}").write_bytes(content)
    return folder


def add(
    store: ModelStore, folder: Path, name: str, *contents: bytes, label: str = ""
) -> ModelVersion:
    source = saved_model(folder, *contents)
    lineage = Lineage(metrics={"accuracy": 0.5}, data="data.csv")
    return store.add(
        name, source, kind="savedmodel", lineage=lineage, added_at=AT, label=label
    )[0]  # fmt: skip


def several(store: ModelStore, tmp_path: Path, count: int, name: str = "cnn") -> None:
    for number in range(count):
        add(store, tmp_path / "source", name, b"%d" % number * 100)


def assert_whole(store: ModelStore) -> None:
    """Every row has its files, and after a collection nothing lies there that no row names."""
    versions = store.versions()
    assert [one.id for one in versions if store.faults(one)] == []
    store.collect(keep=10**9)
    assert store.versions() == versions
    digests = {one.artefact.digest for one in versions}
    assert {one.name for one in (store.folder / ARTEFACTS).iterdir()} == digests
    named = {file.sha256 for one in versions for file in one.artefact.files}
    assert {f.name for f in (store.folder / OBJECTS).rglob("*") if f.is_file()} == named
    assert list((store.folder / TEMPORARY).iterdir()) == []


def test_a_version_comes_back_with_its_files_and_lineage(store: ModelStore, tmp_path: Path) -> None:
    kept = add(store, tmp_path / "a", "cnn", b"graph", b"weights", label="first")
    assert store.find("cnn", 1) == store.find("cnn") == kept
    assert (kept.path / "part-1").read_bytes() == b"weights"
    assert kept.lineage == Lineage(metrics={"accuracy": 0.5}, data="data.csv")
    assert (kept.id, kept.label, kept.added_at, kept.promoted) == ("cnn:1", "first", AT, False)


def test_versions_count_up_and_the_same_files_make_no_new_one(
    store: ModelStore, tmp_path: Path
) -> None:
    several(store, tmp_path, 3)
    again = add(store, tmp_path / "source", "cnn", b"1" * 100)
    assert again.version == 2
    assert [one.version for one in store.versions("cnn")] == [1, 2, 3]
    other = add(store, tmp_path / "source", "other", b"1" * 100)
    assert (other.version, other.path) == (1, again.path)  # stored once
    assert store.names() == ("cnn", "other")


def test_writers_of_one_model_at_once_get_a_number_each(store: ModelStore, tmp_path: Path) -> None:
    def some(writer: int) -> list[int]:
        contents = [b"%d-%d" % (writer, number) for number in range(6)]
        return [add(store, tmp_path / str(writer), "cnn", one).version for one in contents]

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        numbers = [number for found in pool.map(some, range(3)) for number in found]
    assert sorted(numbers) == list(range(1, 19))
    assert_whole(store)


def test_a_removed_number_does_not_come_again(store: ModelStore, tmp_path: Path) -> None:
    several(store, tmp_path, 2)
    store.remove("cnn", 2)
    assert add(store, tmp_path / "source", "cnn", b"new").version == 3
    store.remove("cnn")
    assert store.names() == ()
    assert add(store, tmp_path / "source", "cnn", b"new").version == 4
    assert store.promoted("cnn") is None


def test_the_promoted_version_is_found_and_a_roll_back_goes_to_the_one_before(
    store: ModelStore, tmp_path: Path
) -> None:
    several(store, tmp_path, 4)
    assert (store.promoted("cnn"), store.find("cnn").version) == (None, 4)  # the newest
    assert store.promote("cnn", 1, at="a")
    assert not store.promote("cnn", 1, at="b")  # it is already
    assert store.promote("cnn", 2, at="c")
    assert store.promote("cnn", 3, at="d")
    assert (store.promoted("cnn"), store.find("cnn").version) == (3, 3)
    assert store.before("cnn") == 2
    assert store.roll_back("cnn", at="e") == (2, 3)
    assert store.roll_back("cnn", at="f") == (1, 2)
    with pytest.raises(UsageError, match="no version to go back to: cnn:1 is the first"):
        store.roll_back("cnn", at="g")
    actions = [(one.action, one.version, one.at) for one in store.history("cnn")]
    assert actions == [
        ("promote", 1, "a"), ("promote", 2, "c"), ("promote", 3, "d"), ("rollback", 2, "e"),
        ("rollback", 1, "f"),
    ]  # fmt: skip


def test_a_roll_back_passes_by_what_was_removed(store: ModelStore, tmp_path: Path) -> None:
    several(store, tmp_path, 3)
    for number in (1, 2, 3):
        store.promote("cnn", number, at="")
    store.remove("cnn", 2)
    assert store.roll_back("cnn", at="") == (1, 3)
    assert store.promoted("cnn") == 1


def test_the_promoted_version_cannot_be_removed_alone(store: ModelStore, tmp_path: Path) -> None:
    several(store, tmp_path, 2)
    store.promote("cnn", 1, at="")
    with pytest.raises(UsageError, match="cnn:1 is the promoted version; promote another first"):
        store.remove("cnn", 1)
    assert len(store.remove("cnn").versions) == 2


def test_a_collection_says_what_goes_before_it_goes(store: ModelStore, tmp_path: Path) -> None:
    several(store, tmp_path, 6)
    store.set_label("cnn", 1, "gold")
    store.promote("cnn", 2, at="")
    planned = store.collect(keep=2, dry=True)
    assert [one.version for one in planned.versions] == [3, 4]
    assert planned.freed_bytes == 200
    assert len(store.versions("cnn")) == 6
    assert store.collect(keep=2) == planned
    assert [one.version for one in store.versions("cnn")] == [1, 2, 5, 6]
    assert_whole(store)


@pytest.mark.parametrize(
    ("meanwhile", "work", "left"),
    [
        (lambda store: store.promote("cnn", 1, at=""), lambda store: store.collect(keep=1), [1, 3]),
        (lambda store: store.set_label("cnn", 2, "gold"), lambda store: store.collect(keep=1),
         [2, 3]),
        (lambda store: store.promote("cnn", 1, at=""), lambda store: store.remove("cnn", 1),
         [1, 2, 3]),
    ],
)  # fmt: skip
def test_what_is_promoted_or_labelled_up_to_the_moment_of_a_removal_stays(
    store: ModelStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[ModelStore], object],
    work: Callable[[ModelStore], object],
    left: list[int],
) -> None:
    """Another process does so just before the transaction that removes."""
    several(store, tmp_path, 3)
    writing = SqliteFile.writing

    def late(file: SqliteFile) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        monkeypatch.setattr(SqliteFile, "writing", writing)
        meanwhile(ModelStore(store.folder))
        return writing(file)

    monkeypatch.setattr(SqliteFile, "writing", late)
    with contextlib.suppress(UsageError):  # of the promoted version
        work(store)
    assert [one.version for one in store.versions("cnn")] == left
    assert_whole(store)


def test_damage_is_told_with_the_file_and_the_same_files_heal_it(
    store: ModelStore, tmp_path: Path
) -> None:
    kept = add(store, tmp_path / "a", "cnn", b"graph", b"weights")
    bad = kept.path / "part-1"
    bad.chmod(0o644)
    bad.write_bytes(b"WEIGHTS")
    with pytest.raises(ToolError, match=r"cnn:1 is damaged: .*part-1 has other bytes"):
        store.find("cnn")
    assert add(store, tmp_path / "a", "cnn", b"graph", b"weights") == store.find("cnn")


def test_what_is_not_there_is_told_with_what_is(store: ModelStore, tmp_path: Path) -> None:
    for ask in (store.find, store.remove, store.promoted):
        with pytest.raises(UsageError, match="has no model 'cnn'; tfdyno models add PATH keeps"):
            ask("cnn")
    assert (store.versions(), store.names(), store.disk_bytes()) == ((), (), 0)
    assert not store.folder.exists()  # asking makes nothing
    several(store, tmp_path, 2, "fashion")
    with pytest.raises(UsageError, match=r"did you mean fashion\?"):
        store.find("fashin")
    with pytest.raises(UsageError, match="has no model 'zzz'; there are fashion"):
        store.promoted("zzz")
    with pytest.raises(UsageError, match="fashion has no version 7: it has 1, 2"):
        store.find("fashion", 7)
    with pytest.raises(UsageError, match="fashion has no version to go back to: none was ever"):
        store.roll_back("fashion", at="")


def test_a_store_that_cannot_be_written_is_told_before_anything_is_copied(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(UsageError, match=r"models cannot be kept in .*: there is a file of that"):
        add(ModelStore(tmp_path / "notes"), tmp_path / "a", "cnn", b"x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / FILE).write_bytes(b"not a database" * 100)
    with pytest.raises(UsageError, match="is not a file of models of tfdyno"):
        add(ModelStore(tmp_path / "other"), tmp_path / "a", "cnn", b"x")
    assert [one.name for one in (tmp_path / "other").iterdir()] == [FILE]


def killed_at(moment: int, work: Callable[[], object]) -> bool:
    """Do the work in a forked process that kills itself at a moment; whether it came so far."""
    child = os.fork()
    if not child:
        left = moment

        def hook(event: str, _arguments: object) -> None:
            nonlocal left
            if event in MOMENTS:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@STEPS
def test_a_kill_at_any_moment_of_an_add_leaves_the_version_whole_or_none(
    store: ModelStore, tmp_path: Path, step: int
) -> None:
    several(store, tmp_path, 2)
    source = saved_model(tmp_path / "killed", b"0" * 100, b"own")  # one part is there already
    moment = 0
    while killed_at(moment, lambda: add(store, source, "cnn", b"0" * 100, b"own")):
        assert [one.version for one in store.versions("cnn")][:2] == [1, 2]
        assert len(store.versions("cnn")) in {2, 3}
        assert_whole(store)
        if len(store.versions("cnn")) == 3:
            store.remove("cnn", store.versions("cnn")[-1].version)
        moment += step
    assert moment > 25  # so many moments were tried
    assert len(store.versions("cnn")) == 3
    assert_whole(store)


@STEPS
def test_a_kill_at_any_moment_of_a_collection_leaves_what_was_to_stay(
    store: ModelStore, tmp_path: Path, step: int
) -> None:
    moment = 0
    while True:
        several(store, tmp_path, 4)
        newest = {one.version for one in store.versions("cnn")[-2:]}
        was_killed = killed_at(moment, lambda: store.collect(keep=2))
        assert newest <= {one.version for one in store.versions("cnn")}
        assert_whole(store)
        if not was_killed:
            break
        store.remove("cnn")
        moment += step
    assert moment > 15


@pytest.mark.parametrize(
    "rounds", [2, pytest.param(30, marks=pytest.mark.slow)], ids=["sample", "all"]
)
def test_two_writers_that_are_killed_at_random_leave_whole_versions(
    tmp_path: Path, rounds: int
) -> None:
    chance = random.Random(7)
    store = ModelStore(tmp_path / "store")
    for number in range(rounds):
        both = {name: writer(tmp_path, name, number) for name in ("aa", "bb")}
        first = {name: line_of(one) for name, one in both.items()}
        time.sleep(chance.uniform(0.0, 0.25))
        told = {name: told_until_killed(first[name], one) for name, one in both.items()}
        for name, newest in told.items():
            kept = [one.version for one in store.versions(name)]
            assert newest in kept  # what was told is kept: it was the newest
            assert max(kept) <= newest + 1
        assert_whole(store)


def writer(folder: Path, name: str, seed: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), name, str(seed)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT)))},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline()


def told_until_killed(first: str, process: subprocess.Popen[str]) -> int:
    """The newest version that a writer said to have added."""
    process.send_signal(signal.SIGKILL)
    assert process.stdout
    assert process.stderr
    # Not by communicate: it would lose what readline has taken from the pipe beyond its line.
    with process, process.stdout as out, process.stderr as errors:
        lines = [first, *out.read().split("\n")[:-1]]
        assert errors.read() == ""
    return max(int(line.split()[1]) for line in lines if line.startswith("added"))
