"""jobs/data_convert: what was stopped goes on to the same bytes; what does not fit is refused."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import psutil
import pytest
from tests.jobs.disks import mounted
from tests.runtime.forks import NO_GPU
from tests.runtime.pictures import content, make_pictures, records

from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.deploy.dataset import JOURNAL, MANIFEST, READER, Converted
from tfdyno.jobs.data.convert import ConvertRequest, convert

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.tf
COUNT, SHARDS = 1500, 30
PATIENCE_S = 120.0
SEED = 20261122
"""Of the moments of the kills."""


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pictures(tmp_path_factory.mktemp("source") / "pictures", COUNT, 24)


@pytest.fixture(scope="module")
def whole(pictures: Path) -> Converted:
    """A conversion that nothing disturbed."""
    return convert(asked(pictures, pictures.parent / "whole"))


def asked(source: Path, destination: Path) -> ConvertRequest:
    return ConvertRequest(source=source, destination=destination, shards=SHARDS, measure=False)


class Command:
    """One ``tfdyno data convert`` as a user starts it."""

    def __init__(self, source: Path, destination: Path, *options: str) -> None:
        self.folder = destination
        words = ["data", "convert", str(source), str(destination), "--shards", str(SHARDS)]
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "tfdyno", *words, "--no-measure", *options],
            env={**os.environ, **NO_GPU}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.seen: set[int] = set()

    def wait_for(self, shards: int, *, part: bool = False) -> None:
        """Return when so many shards are finished, and, if asked, another one is being written."""
        until_s = time.monotonic() + PATIENCE_S
        while self.finished() < shards or (part and not list(self.folder.glob("*.part"))):
            assert self.popen.poll() is None, self.popen.communicate()
            assert time.monotonic() < until_s
            time.sleep(0.0005)

    def finished(self) -> int:
        with contextlib.suppress(OSError):
            return (self.folder / JOURNAL).read_bytes().count(b"\n") - 1
        return -1

    def tree(self) -> list[psutil.Process]:
        command = psutil.Process(self.popen.pid)
        found = [*command.children(recursive=True), command]
        self.seen |= {one.pid for one in found}
        return found

    def kill(self, only: str = "") -> None:
        """SIGKILL to all, or to the process with this word on its command line."""
        for one in self.tree():
            with contextlib.suppress(psutil.Error):
                if only in " ".join(one.cmdline()):
                    one.kill()

    def ended(self) -> tuple[int, str, str]:
        out, err = self.popen.communicate(timeout=PATIENCE_S)
        until_s = time.monotonic() + 60
        while any(map(psutil.pid_exists, self.seen)) and time.monotonic() < until_s:
            time.sleep(0.05)
        assert not any(map(psutil.pid_exists, self.seen))
        return self.popen.returncode, out, err


def shards_of(folder: Path) -> dict[str, float]:
    """When each finished shard was written."""
    return {path.name: path.stat().st_mtime for path in folder.glob("*.tfrecord")}


def test_all_images_are_in_the_shards_with_class_and_path(pictures: Path, whole: Converted) -> None:
    files = {str(path.relative_to(pictures)): path for path in pictures.rglob("*.*")}
    found = records(whole.folder)
    assert len(found) == COUNT == len(files) == whole.dataset.records
    assert {bytes.fromhex(one["path"]).decode() for one in found} == set(files)
    for one in found:
        path = bytes.fromhex(one["path"]).decode()
        assert bytes.fromhex(one["image"]) == files[path].read_bytes()
        assert whole.dataset.classes[one["label"]] == path.partition("/")[0]
    labels = [one["label"] for one in found]
    first = labels[: whole.dataset.shards[0].records]
    assert set(first) == {0, 1, 2}  # shuffled: no shard has one class alone
    assert {path.name for path in whole.folder.iterdir()} == {
        *(one.file for one in whole.dataset.shards), MANIFEST, READER,
    }  # fmt: skip


def test_kills_at_any_moment_change_nothing(
    pictures: Path, whole: Converted, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    folder = tmp_path / "killed"
    done = 0
    for part in (False, True, True):
        done = chance.randrange(done, min(done + 12, SHARDS - 4))
        command = Command(pictures, folder)
        command.wait_for(done, part=part)
        command.kill()
        command.ended()
        done = command.finished()
        assert not (folder / MANIFEST).exists()
    before = shards_of(folder)
    found = convert(asked(pictures, folder))
    assert content(folder) == content(whole.folder)
    assert done <= found.kept_shards < SHARDS
    after = shards_of(folder)
    again = {name for name in before if before[name] != after[name]}
    assert len(again) <= 1  # renamed, and killed before its line was in the journal


def test_the_command_alone_killed_leaves_no_child(
    pictures: Path, whole: Converted, tmp_path: Path
) -> None:
    command = Command(pictures, tmp_path / "out")
    command.wait_for(3)
    command.tree()
    command.popen.kill()
    command.ended()
    convert(asked(pictures, tmp_path / "out"))
    assert content(tmp_path / "out") == content(whole.folder)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(8))
def test_more_kills_change_nothing(
    number: int, pictures: Path, whole: Converted, tmp_path: Path
) -> None:
    chance = random.Random(SEED + number)
    command = Command(pictures, tmp_path / "out")
    command.wait_for(chance.randrange(-1, SHARDS - 2), part=chance.random() < 0.5)
    time.sleep(chance.uniform(0, 0.02))
    command.kill()
    command.ended()
    convert(asked(pictures, tmp_path / "out"))
    assert content(tmp_path / "out") == content(whole.folder)


def test_ctrl_c_says_what_is_kept_and_goes_on(
    pictures: Path, whole: Converted, tmp_path: Path
) -> None:
    command = Command(pictures, tmp_path / "out")
    command.wait_for(2, part=True)
    command.tree()
    command.popen.send_signal(signal.SIGINT)
    code, out, err = command.ended()
    assert (code, out) == (130, "")
    said = err.splitlines()[-1]
    assert said.startswith("tfdyno: stopped by Ctrl-C; ")
    kept = command.finished()
    assert f"{kept} of 30 shards are finished in {tmp_path / 'out'}; the same command goes" in said
    assert not list((tmp_path / "out").glob("*.part"))
    assert convert(asked(pictures, tmp_path / "out")).kept_shards == kept
    assert content(tmp_path / "out") == content(whole.folder)


def test_a_killed_child_is_told(pictures: Path, tmp_path: Path) -> None:
    command = Command(pictures, tmp_path / "out")
    command.wait_for(1)
    command.kill(only="tfdyno.runtime.data.convert.child")
    code, _, err = command.ended()
    assert code == 3
    said = err.splitlines()[-1]
    assert f"converting {pictures} failed: it was killed" in said
    assert "shards are finished" in said


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for some shards."""
    with mounted(tmp_path / "disk", "400k") as folder:
        yield folder


def test_a_full_disk_keeps_what_is_finished_and_room_is_enough_to_go_on(
    small_disk: Path, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    lines = "".join(f"{number},{'text ' * 10}{number}\n" for number in range(12_000))
    table.write_text(f"id,text\n{lines}")
    question = replace(asked(table, small_disk / "out"), shards=12)
    with pytest.raises(ToolError) as caught:
        convert(question)
    assert "No space left on device; free some space, then give the same" in str(caught.value)
    kept = shards_of(question.destination)
    assert 0 < len(kept) < 12
    assert caught.value.__notes__ == [
        f"{len(kept)} of 12 shards are finished in {question.destination}; the same command goes "
        "on."
    ]
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    assert convert(question).kept_shards == len(kept)
    assert shards_of(question.destination).items() > kept.items()
    convert(replace(question, destination=tmp_path / "whole"))
    assert content(question.destination) == content(tmp_path / "whole")


def test_what_surely_does_not_fit_is_refused_before_any_work(
    small_disk: Path, pictures: Path
) -> None:
    with pytest.raises(ToolError, match=r"out needs .* of room: its disk has .* free; free some"):
        convert(asked(pictures, small_disk / "out"))
    assert list(small_disk.iterdir()) == []


def test_a_damaged_or_missing_shard_is_written_again_and_no_other(
    pictures: Path, whole: Converted, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    shutil.copytree(whole.folder, folder)
    names = sorted(shards_of(folder))
    (folder / names[3]).unlink()
    data = bytearray((folder / names[7]).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / names[7]).write_bytes(data)
    before = shards_of(folder)
    found = convert(asked(pictures, folder))
    assert found.kept_shards == SHARDS - 2
    assert content(folder) == content(whole.folder)
    after = shards_of(folder)
    assert {name for name in before if before[name] != after[name]} == {names[7]}


def test_nothing_is_done_twice(pictures: Path, whole: Converted) -> None:
    before = shards_of(whole.folder)
    found = convert(asked(pictures, whole.folder))
    assert found.kept_shards == SHARDS
    assert found.seconds_s == 0
    assert found.dataset == whole.dataset
    assert shards_of(whole.folder) == before


def test_another_source_or_other_settings_are_refused(
    pictures: Path, whole: Converted, tmp_path: Path
) -> None:
    question = asked(pictures, whole.folder)
    with pytest.raises(UsageError, match="begun with --compression none, now it is gzip"):
        convert(replace(question, compression="gzip"))
    with pytest.raises(UsageError, match="with --shuffle-seed 0, now it is none"):
        convert(replace(question, keep_order=True))
    shutil.copytree(pictures, tmp_path / "pictures")
    moved = replace(question, source=tmp_path / "pictures")
    assert convert(moved).kept_shards == SHARDS  # the same images at another place
    next((tmp_path / "pictures").rglob("*.png")).touch()
    with pytest.raises(UsageError, match=r"pictures has changed since .*/whole was begun; name"):
        convert(moved)


def test_damaged_images_are_named_or_left_out_and_listed(tmp_path: Path) -> None:
    source = make_pictures(tmp_path / "pictures", 12, 8)
    bad = sorted(source.rglob("*.png"))[2]
    bad.write_bytes(bad.read_bytes()[:50])
    question = replace(asked(source, tmp_path / "out"), shards=4, measure=True)
    with pytest.raises(UsageError, match=f"{bad} cannot be read: .*--skip-bad") as caught:
        convert(question)
    assert "shards are finished" in caught.value.__notes__[0]
    found = convert(replace(question, skip_bad=True))
    assert found.dataset.records == 11
    assert [one.where for one in found.dataset.skipped] == [str(bad.relative_to(source))]
    assert found.not_measured == "the original cannot be read as it is: parts of it are damaged"
    with pytest.raises(UsageError, match="was begun with --skip-bad; add it again"):
        convert(question)
    assert convert(replace(question, skip_bad=True)).kept_shards == 4


def test_a_source_of_damaged_images_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pictures/a").mkdir(parents=True)
    (tmp_path / "pictures/a/1.png").write_bytes(b"")
    question = replace(asked(tmp_path / "pictures", tmp_path / "out"), shards=1, skip_bad=True)
    with pytest.raises(UsageError, match="could be read: the first fault: Input is empty"):
        convert(question)


def test_the_order_of_a_table_is_kept_unless_a_seed_is_given(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("x,kind\n" + "".join(f"{number},{number % 3}\n" for number in range(50)))
    question = replace(asked(table, tmp_path / "kept"), shards=3, label="kind")
    convert(question)
    assert [one["x"] for one in records(tmp_path / "kept")] == list(range(50))
    convert(replace(question, destination=tmp_path / "mixed", shuffle_seed=5))
    mixed = [one["x"] for one in records(tmp_path / "mixed")]
    assert sorted(mixed) == list(range(50)) != mixed
    settings = json.loads((tmp_path / "mixed" / MANIFEST).read_text())["settings"]
    assert settings["shuffle_seed"] == 5


@pytest.mark.slow
def test_both_are_measured_and_the_reader_stands_beside(tmp_path: Path) -> None:
    source = make_pictures(tmp_path / "pictures", 60, 32)
    said: list[str] = []
    found = convert(
        replace(asked(source, tmp_path / "out"), shards=2, measure=True), progress=said.append
    )
    speed = found.speed
    assert speed is not None, found.not_measured
    assert 8 <= len(speed.before_per_s) == len(speed.after_per_s) <= 16
    low, high = speed.comparison.interval
    assert low <= speed.comparison.ratio <= high
    assert speed.before_pipeline == "keras.utils.image_dataset_from_directory"
    assert speed.image_size == (256, 256)
    compile((tmp_path / "out" / READER).read_text(), READER, "exec")
    told = [json.loads(line) for line in said if line.startswith("{")]
    assert told[-1] == {
        "event": "convert", "shard": 2, "records": 60, "bytes": told[-1]["bytes"],
        "of_records": 60, "of_shards": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shards": 2, "shard_bytes": 100}, "--shards and --shard-bytes do not go together"),
        ({"shuffle_seed": 1, "keep_order": True}, "a seed shuffles"),
        ({"label": "x"}, "--label is for a CSV file"),
        ({"shards": 7}, "7 shards are not possible: there are 2 records"),
        ({"python": "no-such-python"}, "--python no-such-python cannot be run"),
    ],
)
def test_impossible_options_are_refused_before_anything_is_written(
    change: dict[str, object], said: str, tmp_path: Path
) -> None:
    for name in "ab":
        (tmp_path / "pictures" / name).mkdir(parents=True)
        (tmp_path / "pictures" / name / "1.png").touch()
    question = ConvertRequest(source=tmp_path / "pictures", destination=tmp_path / "out")
    with pytest.raises(UsageError, match=said):
        convert(replace(question, **change))  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "there is no file or folder"),
        (lambda path: path.with_name("sourse").touch(), r"did you mean .*sourse\?"),
        (lambda path: path.touch(), "neither a folder of images nor a CSV file"),
        (lambda path: path.mkdir(), "it has no folders"),
    ],
)
def test_what_is_no_source_is_refused(
    make: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    make(tmp_path / "source")
    with pytest.raises(UsageError, match=said):
        convert(ConvertRequest(source=tmp_path / "source", destination=tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_images_are_no_size_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    question = ConvertRequest(source=tmp_path / "t.csv", destination=tmp_path / "out")
    with pytest.raises(UsageError, match="--image-size is for images"):
        convert(replace(question, image_size=(3, 3)))


def test_more_files_than_their_names_keep_in_order_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("x\n" + "1\n" * 100_000)
    question = ConvertRequest(source=table, destination=tmp_path / "out", shard_bytes=1)
    with pytest.raises(UsageError, match=r"100,000 shards are too many; give a larger"):
        convert(question)
    assert not (tmp_path / "out").exists()
