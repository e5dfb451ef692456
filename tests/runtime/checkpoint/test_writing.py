"""What is on the disk is whole at every moment: kills, full disks, old ones removed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests.runtime.checkpoint.test_files import content, written

from tfdyno.runtime.checkpoint.files import latest, list_checkpoints, read_arrays, read_marker
from tfdyno.runtime.checkpoint.writing import (
    pin,
    refusal,
    remove_leftovers,
    remove_old,
    write_checkpoint,
)

WRITER = """
import sys
from pathlib import Path
import numpy as np
from tfdyno.runtime.checkpoint.files import latest
from tfdyno.runtime.checkpoint.writing import *
from tests.runtime.checkpoint.test_files import content

folder = Path(sys.argv[1])
remove_leftovers(folder)
last = latest(folder)
step = last.step if last else 0
print("ready", flush=True)
while True:
    step += 1
    for more in range(2):  # the second takes the place of the first: an epoch's end
        values = {f"v{i}": np.full(2000 * (i + 1) + more, step, "int64") for i in range(8)}
        write_checkpoint(folder, content(step), values, {})
    print(step, flush=True)
    remove_old(folder, 2)
"""
FULL = """
import resource, sys
from pathlib import Path
import numpy as np
from tfdyno.runtime.checkpoint.writing import refusal, write_checkpoint
from tests.runtime.checkpoint.test_files import content

folder, values = Path(sys.argv[1]), {"w": np.zeros(1 << 20, "uint8")}
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    write_checkpoint(folder, content(9), values, {})
except OSError as error:
    print(refusal(folder, 9, error, 1 << 20))
"""
ROOT = Path(__file__).parents[3]


def python(code: str, *words: str) -> list[str]:
    return [sys.executable, "-c", code, *words]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}


def killed_at_a_random_moment(folder: Path, draw: random.Random) -> None:
    """Start a process that writes checkpoints without pause, kill it, look at what is left."""
    with subprocess.Popen(
        python(WRITER, str(folder)), stdout=subprocess.PIPE, text=True, env=environment()
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(draw.uniform(0.0, 0.4))
        child.send_signal(signal.SIGKILL)
        told = [int(line) for line in child.stdout.read().splitlines(keepends=True) if "\n" in line]
    notes: list[str] = []
    found = latest(folder, notes)
    assert notes == []
    if found is None:
        assert told == []
        return
    assert found.step >= max(told, default=0)  # what was said to be written is there
    assert all((array == found.step).all() for _, array in read_arrays(found))
    remove_leftovers(folder)
    again = latest(folder, notes)
    assert again == found
    kept = [name for c in list_checkpoints(folder)[0] for name in (c.marker.name, c.data_name)]
    assert names(folder) == sorted(kept)


def test_a_kill_at_any_moment_leaves_the_last_checkpoint_whole(tmp_path: Path) -> None:
    draw = random.Random(1)
    for _ in range(3):
        killed_at_a_random_moment(tmp_path, draw)
    assert latest(tmp_path) is not None


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path) -> None:
    draw = random.Random(2)
    for _ in range(20):
        killed_at_a_random_moment(tmp_path, draw)
    assert latest(tmp_path) is not None


def test_a_stop_at_every_step_of_writing_leaves_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Kills between any two calls of the system, one after the other, without chance.
    class Killed(BaseException):
        pass

    def stopping(call: object, count: list[int]) -> object:
        def counted(*words: object, **more: object) -> object:
            count[0] -= 1
            if count[0] < 0:
                raise Killed
            return call(*words, **more)  # type: ignore[operator]

        return counted

    for step in (1, 2):
        written(tmp_path, step)
    limit = 0
    for limit in range(100):
        count = [limit]
        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", stopping(Path.replace, count))
            patch.setattr(Path, "unlink", stopping(Path.unlink, count))
            patch.setattr(os, "fsync", stopping(os.fsync, count))
            try:
                written(tmp_path, 2, serial=2 + limit, w=np.full(99, limit))
                remove_old(tmp_path, 1)
            except Killed:
                ended = False
            else:
                ended = True
        notes: list[str] = []
        found = latest(tmp_path, notes)
        assert found is not None
        assert (notes, found.step in (1, 2)) == ([], True)
        if ended:
            remove_leftovers(tmp_path)
            assert names(tmp_path) == sorted([found.data_name, "step-000000002.json"])
            break
    assert 5 < limit < 99


@pytest.mark.parametrize("how", ["limit", "tmpfs"])
def test_a_full_disk_is_a_sentence_and_leaves_the_earlier_ones(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if how == "tmpfs" and subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting needs root")
    try:
        written(folder, 8)
        words = [str(folder), "500000"] if how == "limit" else [str(folder)]
        done = subprocess.run(
            python(FULL, *words), capture_output=True, text=True, env=environment()
        )
        said = done.stdout
        assert f"cannot write the checkpoint of step 9 to {folder}: " in said, done.stderr
        assert ("File too large" if how == "limit" else "No space left on device") in said
        assert "1,048,576 bytes needed" in said
        assert said.endswith("then continue with --resume.\n")
        assert names(folder) == ["step-000000008.json", "step-000000008.npz"]
        found = latest(folder)
        assert found is not None
        assert found.step == 8
    finally:
        if how == "tmpfs":
            subprocess.run(["umount", str(folder)], check=True)


def test_other_refusals_have_a_remedy_too(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_checkpoint(tmp_path / "gone", content(1), {"w": np.zeros(3)}, {})
    said = str(refusal(tmp_path / "gone", 1, caught.value, 24))
    assert said.endswith("No such file or directory; make the folder writable again, then continue with --resume.")  # fmt: skip  # noqa: E501


def test_the_last_k_and_the_pinned_stay(tmp_path: Path) -> None:
    for step in range(1, 8):
        marker = written(tmp_path, step)
        if step == 2:
            pin(read_marker(marker))
        remove_old(tmp_path, 3)
    assert [c.step for c in list_checkpoints(tmp_path)[0]] == [7, 6, 5, 2]
    assert len(list(tmp_path.iterdir())) == 8


def test_damaged_ones_do_not_push_good_ones_out(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        written(tmp_path, step)
    damaged = {"step-000000002.json", "step-000000003.json"}
    written(tmp_path, 4)
    remove_old(tmp_path, 2, damaged)
    assert [c.step for c in list_checkpoints(tmp_path)[0]] == [4, 3, 2, 1]
    written(tmp_path, 5)
    remove_old(tmp_path, 2, damaged)
    assert [c.step for c in list_checkpoints(tmp_path)[0]] == [5, 4]


def test_after_going_back_the_new_one_stays(tmp_path: Path) -> None:
    written(tmp_path, 300, serial=1)
    written(tmp_path, 150, serial=2)
    remove_old(tmp_path, 1)
    assert [c.step for c in list_checkpoints(tmp_path)[0]] == [150]


def test_the_same_step_again_takes_the_place_of_the_first(tmp_path: Path) -> None:
    for value in (1.0, 2.0, 3.0):
        marker = written(tmp_path, 5, w=np.full(3, value))
        assert names(tmp_path) == sorted([marker.name, read_marker(marker).data_name])
        ((_, array),) = read_arrays(read_marker(marker))
        assert (array == value).all()


def test_leftovers_of_a_kill_go_and_nothing_else(tmp_path: Path) -> None:
    written(tmp_path, 1)
    written(tmp_path, 2)
    (tmp_path / "step-000000002.json").write_text("{")  # damaged: its data may still be wanted
    left = ["step-000000003.npz", "step-000000004.npz.part", "step-000000004.json.part"]
    others = ["model.keras", "step-3.npz", "notes.part", ".lock"]
    for name in left + others:
        (tmp_path / name).write_text("")
    assert sorted(remove_leftovers(tmp_path)) == sorted(left)
    stay = [f"step-00000000{n}.{end}" for n in (1, 2) for end in ("json", "npz")]
    assert names(tmp_path) == sorted(others + stay)
