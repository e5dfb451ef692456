import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tfdyno.store.cache import Cache

SRC = Path(__file__).parents[2] / "src"


def write(text: str, calls: list[str] | None = None) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "value").write_text(text)
        if calls is not None:
            calls.append(text)

    return make


def leftovers(root: Path) -> list[Path]:
    return list(root.glob("*/.part-*"))


def test_an_entry_is_made_once(tmp_path: Path) -> None:
    cache, calls = Cache(root=tmp_path), list[str]()
    for _ in range(3):
        folder = cache.entry("trace", "ab", write("x", calls))
    assert (folder / "value").read_text() == "x"
    assert calls == ["x"]


def test_what_is_kept_is_found_without_being_made(tmp_path: Path) -> None:
    cache = Cache(root=tmp_path)
    assert cache.kept("trace", "ab") is None
    folder = cache.entry("trace", "ab", write("x"))
    assert cache.kept("trace", "ab") == folder
    assert cache.kept("trace", "ab", current=lambda _folder: False) is None
    (folder / "value").write_text("damaged")
    assert cache.kept("trace", "ab") is None


def test_fresh_makes_it_again(tmp_path: Path) -> None:
    cache = Cache(root=tmp_path)
    cache.entry("trace", "ab", write("old"))
    assert (cache.entry("trace", "ab", write("new"), fresh=True) / "value").read_text() == "new"
    assert not leftovers(tmp_path)


def test_an_outdated_entry_is_made_again(tmp_path: Path) -> None:
    cache = Cache(root=tmp_path)
    cache.entry("trace", "ab", write("old"))
    folder = cache.entry("trace", "ab", write("new"), current=lambda folder: False)
    assert (folder / "value").read_text() == "new"


@pytest.mark.parametrize("name", ["value", "manifest.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\x00 garbage"])
def test_a_damaged_entry_is_dropped_with_a_warning_and_made_again(
    tmp_path: Path, name: str, content: bytes
) -> None:
    cache = Cache(root=tmp_path)
    (cache.entry("trace", "ab", write("x")) / name).write_bytes(content)
    with pytest.warns(UserWarning, match="damaged cache entry"):
        folder = cache.entry("trace", "ab", write("x"))
    assert (folder / "value").read_text() == "x"


def test_a_missing_file_counts_as_damage(tmp_path: Path) -> None:
    cache = Cache(root=tmp_path)
    (cache.entry("trace", "ab", write("x")) / "value").unlink()
    with pytest.warns(UserWarning, match="damaged"):
        assert (cache.entry("trace", "ab", write("y")) / "value").read_text() == "y"


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "value").write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Cache(root=tmp_path).entry("trace", "ab", fail)
    assert not (tmp_path / "trace" / "ab").exists()
    assert not leftovers(tmp_path)


def test_entries_used_longest_ago_go_first(tmp_path: Path) -> None:
    cache = Cache(root=tmp_path, limit_bytes=2500)
    for age, key in ((3, "a"), (2, "b")):
        folder = cache.entry("trace", key, write("x" * 1000))
        os.utime(folder, times=(time.time() - age * 60, time.time() - age * 60))
    cache.entry("trace", "a", write("unused"))  # a use makes it young again
    cache.entry("trace", "c", write("x" * 1000))
    assert sorted(path.name for path in (tmp_path / "trace").iterdir()) == ["a", "c"]


def test_an_entry_larger_than_the_limit_is_still_usable(tmp_path: Path) -> None:
    folder = Cache(root=tmp_path, limit_bytes=10).entry("trace", "a", write("x" * 1000))
    assert (folder / "value").stat().st_size == 1000


def test_an_abandoned_part_is_swept(tmp_path: Path) -> None:
    part = tmp_path / "trace" / ".part-dead"
    part.mkdir(parents=True)
    os.utime(part, times=(0, 0))
    Cache(root=tmp_path).entry("trace", "a", write("x"))
    assert not part.exists()


CONTENDER = """
import sys, time
from pathlib import Path
from tfdyno.store.cache import Cache
root, log = map(Path, sys.argv[1:])
def make(folder):
    with log.open("a") as file:
        file.write("made ")
    time.sleep(0.5)
    (folder / "value").write_text("x")
print(Cache(root=root).entry("trace", "a", make).joinpath("value").read_text())
"""


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )


def test_processes_at_once_make_it_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    children = [python(CONTENDER, str(tmp_path / "cache"), str(log)) for _ in range(3)]
    assert [child.communicate(timeout=30)[0] for child in children] == ["x\n"] * 3
    assert log.read_text() == "made "


INTERRUPTED = """
import sys, time
from pathlib import Path
from tfdyno.store.cache import Cache
def make(folder):
    (folder / "half").write_text("x")
    print("started", flush=True)
    time.sleep(30)
Cache(root=Path(sys.argv[1])).entry("trace", "a", make)
"""


def test_interrupt_in_another_process_leaves_no_temporary_files(tmp_path: Path) -> None:
    with python(INTERRUPTED, str(tmp_path)) as child:
        assert child.stdout
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        child.wait(timeout=60)
    assert not leftovers(tmp_path)
    assert (Cache(root=tmp_path).entry("trace", "a", write("x")) / "value").read_text() == "x"
