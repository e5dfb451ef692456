"""A log is read in blocks from any source; what is no log, or never ends, is refused in time."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.probe.files.log_file import BLOCK_BYTES, read_log

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

posix = pytest.mark.skipif(os.name != "posix", reason="named pipes are files on POSIX only")


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@contextlib.contextmanager
def written(path: Path, *parts: bytes, pause_s: float = 0.05, close: bool = True) -> Iterator[None]:
    """Somebody writes these parts into the pipe, and then ends or stays silent."""
    over = threading.Event()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), path.open("wb", buffering=0) as file:
            for part in parts:
                file.write(part)
                time.sleep(pause_s)
            if not close:
                over.wait(60)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)


def test_a_file_comes_in_blocks_and_progress_counts_bytes(tmp_path: Path) -> None:
    content = b"a line of a log\n" * 100_000
    (tmp_path / "a.log").write_bytes(content)
    counts: list[int] = []
    blocks = list(read_log(tmp_path / "a.log", progress=counts.append))
    assert b"".join(blocks) == content
    assert max(map(len, blocks)) == BLOCK_BYTES
    assert counts == [BLOCK_BYTES, len(content)]


@posix
def test_a_pipe_is_read_to_its_end(pipe: Path) -> None:
    with written(pipe, b"one\n", b"two\n"):
        assert b"".join(read_log(pipe)) == b"one\ntwo\n"


@posix
def test_a_pipe_that_nobody_writes_to_is_left_after_a_while(pipe: Path) -> None:
    with pytest.raises(UsageError, match="gave nothing for 0 s and does not end; write the log"):
        list(read_log(pipe, silence_s=0.3))


@posix
def test_a_pipe_that_falls_silent_gets_the_longer_limit(pipe: Path) -> None:
    began_s = time.monotonic()
    with (
        written(pipe, b"one\n", close=False),
        pytest.raises(UsageError, match="gave nothing for 1 s and does not end"),
    ):
        list(read_log(pipe, silence_s=5, pause_s=0.6))
    assert time.monotonic() - began_s >= 0.6


@posix
def test_a_pipe_that_goes_on_for_ever_is_left_too(pipe: Path) -> None:
    with (
        written(pipe, *[b"again\n"] * 200, pause_s=0.02),
        pytest.raises(UsageError, match="pipe does not end: it was read for 0 s"),
    ):
        list(read_log(pipe, limit_s=0.3))


@pytest.mark.parametrize(
    ("content", "is_text"),
    [
        (b"\x7fELF\x02\0\0\0" * 100, False),
        (bytes(range(256)) * 10, False),
        ("a log of Windows\r\n".encode("utf-16"), True),
        (("a log of PowerShell\r\n" * 9).encode("utf-16-le"), True),
        ("größer\n".encode("latin-1"), True),
        (b"a line and\n" * 900 + b"\0 one odd byte\n", True),
    ],
)
def test_text_is_told_from_a_binary_file(tmp_path: Path, content: bytes, is_text: bool) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(content)
    expected = contextlib.nullcontext() if is_text else pytest.raises(UsageError, match="binary")
    with expected:
        assert b"".join(read_log(path)) == content


@pytest.mark.parametrize("content", [b"", b"\n\n", b" \r\n\t", "\ufeff\n".encode("utf-16")])
def test_a_log_without_a_word_is_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.log").write_bytes(content)
    with pytest.raises(UsageError, match="is empty; give a log with at least one line"):
        list(read_log(tmp_path / "a.log"))


def test_a_long_log_is_not_kept_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    with path.open("wb") as file:
        file.truncate(1)
        for _ in range(40):
            file.write(b"x" * BLOCK_BYTES)
    blocks = read_log(path)
    assert sum(map(len, blocks)) == 40 * BLOCK_BYTES
