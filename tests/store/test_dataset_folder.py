"""store/dataset_folder: what is finished is known after any end, and nothing foreign is touched."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.codec import to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.dataset import (
    JOURNAL,
    MANIFEST,
    READER,
    Begun,
    ConvertSettings,
    Dataset,
    Shard,
    Skipped,
    Source,
    Written,
)
from tfdyno.store.dataset_folder import DatasetFolder, fault

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = ConvertSettings(kind="images", shards=2, shuffle_seed=0)
BEGUN = Begun(source_sha256="f00", settings=SETTINGS)
HOLDER = """
import sys
from pathlib import Path
from tfdyno.store.dataset_folder import DatasetFolder
with DatasetFolder(Path(sys.argv[1])).held():
    print("held", flush=True)
    sys.stdin.read()
"""


def shard(folder: Path, name: str, content: bytes = b"records") -> Shard:
    """A file of a folder, and how it is noted."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    return Shard(file=name, records=3, size_bytes=len(content), sha256=digest)


def dataset(*shards: Shard, skipped: tuple[Skipped, ...] = ()) -> Dataset:
    return Dataset(
        tfdyno="0.1.0",
        records=6,
        features=(),
        shards=shards,
        source=Source(path="pics", sha256="f00", files=6, size_bytes=100),
        settings=SETTINGS,
        skipped=skipped,
    )


@pytest.fixture
def folder(tmp_path: Path) -> DatasetFolder:
    (tmp_path / "data").mkdir()
    return DatasetFolder(tmp_path / "data")


def test_a_journal_tells_what_is_finished(folder: DatasetFolder) -> None:
    assert folder.begun() is None
    first = Written(
        shard=shard(folder.path, "b"), skipped=(Skipped(where="x", why="no image", shard="b"),)
    )
    second = Written(shard=shard(folder.path, "a"))
    folder.start(BEGUN, [first, second])
    assert folder.begun() == (BEGUN, (first, second))
    assert folder.finished() == (second, first)  # by name


def test_a_line_that_a_kill_cut_off_does_not_count(folder: DatasetFolder) -> None:
    first, second = (Written(shard=shard(folder.path, name)) for name in "ab")
    whole = folder.start(BEGUN, [first, second]).read_bytes()
    last = whole.splitlines()[-1]
    for length in range(len(last)):
        (folder.path / JOURNAL).write_bytes(whole[: len(whole) - 1 - len(last) + length])
        assert folder.begun() == (BEGUN, (first,))


def test_the_manifest_takes_the_place_of_the_journal(folder: DatasetFolder) -> None:
    bad = Skipped(where="x", why="no image", shard="b")
    written = (
        Written(shard=shard(folder.path, "a")),
        Written(shard=shard(folder.path, "b"), skipped=(bad,)),
    )
    folder.start(BEGUN, written)
    made = dataset(*(one.shard for one in written), skipped=(bad,))
    folder.finish(made, "import tensorflow\n")
    assert sorted(path.name for path in folder.path.iterdir()) == ["a", "b", MANIFEST, READER]
    assert folder.read() == made
    assert folder.begun() == (BEGUN, written)


def test_the_manifest_is_on_the_disk_before_the_journal_goes(
    folder: DatasetFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, bool]] = []
    sync = os.fsync

    def noted(handle: int) -> None:
        name = os.path.basename(os.readlink(f"/proc/self/fd/{handle}"))  # noqa: PTH115, PTH119
        synced.append((name, (folder.path / JOURNAL).exists()))
        sync(handle)

    folder.start(BEGUN, [])
    monkeypatch.setattr(os, "fsync", noted)
    folder.finish(dataset(), "import tensorflow\n")
    assert synced == [(name, True) for name in (READER, "data", MANIFEST, "data")]
    assert not (folder.path / JOURNAL).exists()


def test_what_a_kill_left_is_removed_and_nothing_else(folder: DatasetFolder) -> None:
    for name in ("data-1.tfrecord.part", f".{MANIFEST}.k2x", f".{JOURNAL}.q7", "a", ".mine"):
        (folder.path / name).touch()
    folder.start(BEGUN, [])
    assert sorted(path.name for path in folder.path.iterdir()) == [JOURNAL, ".mine", "a"]


def test_only_sound_shards_are_kept(folder: DatasetFolder) -> None:
    good, cut, changed, gone = (Written(shard=shard(folder.path, name)) for name in "abcd")
    (folder.path / "b").write_bytes(b"rec")
    (folder.path / "c").write_bytes(b"Records")
    (folder.path / "d").unlink()
    heard: list[int] = []
    assert folder.sound([good, cut, changed, gone], heard.append) == (good,)
    assert heard == [1, 2, 3, 4]
    told = [fault(folder.path, one.shard) for one in (good, cut, changed, gone)]
    assert told == [
        "", "has 3 bytes instead of 7", "has other bytes than were written (sha256)", "is missing",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"compression": "gzip"}, "begun with --compression none, now it is gzip"),
        ({"shards": 3}, "with --shards or --shard-bytes 2, now it is 3"),
        ({"shuffle_seed": None}, "with --shuffle-seed 0, now it is none"),
        ({"image_size": (2, 4)}, "with --image-size none, now it is 2x4"),
        ({"kind": "csv"}, "with SOURCE images, now it is csv"),
        ({"label": "y"}, "with --label none, now it is y; name a new folder"),
    ],
)
def test_other_settings_are_refused(
    folder: DatasetFolder, change: dict[str, object], said: str
) -> None:
    wanted = replace(BEGUN, settings=replace(SETTINGS, **change))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=said):
        folder.check_same(BEGUN, wanted, folder.path)
    folder.check_same(BEGUN, BEGUN, folder.path)


def test_another_source_is_refused(folder: DatasetFolder, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"pics has changed since .*/data was begun; name a new"):
        folder.check_same(BEGUN, replace(BEGUN, source_sha256="bad"), tmp_path / "pics")


def test_a_folder_of_other_things_is_refused(folder: DatasetFolder, tmp_path: Path) -> None:
    source = tmp_path / "pics"
    folder.check(source)
    (folder.path / f".{JOURNAL}.k2x").touch()  # killed before the first line
    folder.check(source)
    (folder.path / "thesis.txt").touch()
    with pytest.raises(UsageError, match=r"not empty .* there is thesis\.txt in it"):
        folder.check(source)
    folder.start(BEGUN, [])
    folder.check(source)  # ours by now
    with pytest.raises(UsageError, match="it is a file"):
        DatasetFolder(folder.path / "thesis.txt").check(source)
    DatasetFolder(tmp_path / "new").check(source)


def test_a_name_that_tensorflow_cannot_open_is_refused(tmp_path: Path) -> None:
    odd = DatasetFolder(tmp_path / os.fsdecode(b"r\xe9cords"))
    with pytest.raises(UsageError, match=r"r\\xe9cords is no UTF-8 text: .*name another folder"):
        odd.check(tmp_path / "pics")


def test_a_folder_inside_the_source_is_refused(tmp_path: Path) -> None:
    for inside in (tmp_path / "pics" / "out", tmp_path / "pics"):
        with pytest.raises(UsageError, match=r"inside .*would become a part of the source"):
            DatasetFolder(inside).check(tmp_path / "pics")


def test_what_is_no_data_set_is_told(folder: DatasetFolder) -> None:
    with pytest.raises(UsageError, match=r"no converted data set: there is no dataset\.json"):
        folder.read()
    folder.start(BEGUN, [])
    with pytest.raises(UsageError, match="it is not finished; give the command that began it"):
        folder.read()
    (folder.path / MANIFEST).write_text("{}")
    with pytest.raises(UsageError, match=r"dataset\.json has a wrong value"):
        folder.read()
    other = replace(dataset(), format_version=9)
    (folder.path / MANIFEST).write_bytes(to_json(other))
    with pytest.raises(UsageError, match="of format 9: this tfdyno knows format 1"):
        folder.read()


def test_two_commands_do_not_write_into_one_folder(folder: DatasetFolder) -> None:
    command = [sys.executable, "-c", HOLDER, str(folder.path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        with pytest.raises(UsageError, match="in use by another run"), folder.held():
            pass
        other.communicate("")
    (folder.path / "a").touch()
    with folder.held():
        assert folder.path.is_dir()
    assert [path.name for path in folder.path.iterdir()] == ["a"]


def test_a_folder_that_stays_empty_is_gone(tmp_path: Path) -> None:
    made = DatasetFolder(tmp_path / "deep" / "data")
    with made.held():
        assert made.path.is_dir()
    assert not made.path.exists()


def test_no_room_is_a_sentence(folder: DatasetFolder) -> None:
    limit = "import resource, signal; resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))"
    code = (
        f"{limit}\nfrom pathlib import Path\nfrom tests.store.test_dataset_folder import BEGUN\n"
        "from tfdyno.store.dataset_folder import DatasetFolder\n"
        f"DatasetFolder(Path({str(folder.path)!r})).start(BEGUN, [])"
    )
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert "ToolError: cannot write" in done.stderr
    assert "File too large; free some space, then give the same command again." in done.stderr
    assert list(folder.path.iterdir()) == []
