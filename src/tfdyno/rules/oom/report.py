"""Read what TensorFlow and XLA print when memory runs out, in memory that does not grow.

What their lines look like is in ``lines``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from tfdyno.core.doctor.oom import LiveBuffer, OomReport
from tfdyno.rules.log.text import lines_with, readable
from tfdyno.rules.oom import lines as printed
from tfdyno.rules.oom.draft import Draft, count, printed_bytes, whole


class OomReader:
    """Takes the lines of a log in order; keeps the first report that shows what held the memory."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._draft: Draft | None = None
        self._kept: OomReport | None = None
        self._last: OomReport | None = None
        self._count = 0

    def feed_block(self, block: bytes) -> None:
        """Read a block of whole lines; one without a word of memory costs next to nothing."""
        if self._draft is None and not any(marker in block for marker in printed.MARKERS):
            return
        words = _WORDS
        if (self._draft is None or not self._draft.opened) and not any(
            w in block for w in _BUFFERS
        ):
            words = _WORDS - {_RULER}  # progress bars hold it too
        for line in lines_with(block, words):
            for text in readable(line):
                self.feed(text)

    def feed(self, line: str) -> None:
        """Read one line."""
        for needle, pattern, handle in _HANDLERS:
            if needle in line and (found := pattern.search(line)):
                handle(self, found)

    def report(self) -> OomReport | None:
        """Return the report, or None where memory never ran out."""
        self._finish()
        if self._kept is None:
            return None
        return replace(self._kept, count=self._count)

    def _open(self) -> Draft:
        if self._draft is None:
            self._draft = Draft()
        return self._draft

    def _begin(self) -> Draft:
        if self._draft is not None and (self._draft.is_complete or self._draft.buffers):
            self._finish()
        return self._open()

    def _finish(self) -> None:
        if self._draft is None:
            return
        report, self._draft = self._draft.report(), None
        if report != self._last:
            self._count += 1
            self._last = report
        if self._kept is None or (not _is_told(self._kept) and _is_told(report)):
            self._kept = report

    def _asked(self, found: re.Match[str]) -> None:
        line = found.string
        if "not a failure" in line or "with freed_by_count" in line:
            return
        # TensorFlow 0.x printed this line after the dump, later ones before it.
        draft = self._open() if "See logs" in line else self._begin()
        draft.tell("requested_bytes", found["exact"] or found["amount"])
        if found["allocator"]:
            draft.texts.setdefault("allocator", found["allocator"])
        if found["op"]:
            draft.texts.setdefault("operation", found["op"])

    def _tensor(self, found: re.Match[str]) -> None:
        draft = self._open()
        if not draft.shape:
            draft.tensor(found["shape"], found["dtype"] or "")
        for name in ("allocator", "device"):
            if found[name]:
                draft.texts.setdefault(name, found[name])
        if operation := printed.OPERATION.search(found.string):
            self._operation(operation)

    def _operation(self, found: re.Match[str]) -> None:
        if self._draft is not None and self._draft.shape:
            name = next(one for one in found.groups() if one)
            self._draft.texts.setdefault("operation", name)

    def _dump(self, found: re.Match[str]) -> None:
        draft = self._begin()
        if found[1]:
            draft.texts.setdefault("allocator", found[1].strip())

    def _chunk(self, found: re.Match[str]) -> None:
        if self._draft is None:
            return
        size = whole(found["size"])
        self._draft.chunk(size, in_use=found["state"] != "Free")
        if found["op"] and found["state"] != "Free":
            step = whole(found["step"])
            self._draft.buffer(LiveBuffer(size_bytes=size, name=found["op"], step=step))

    def _summary(self, found: re.Match[str]) -> None:
        count(self._open().told_chunks, whole(found[2]), whole(found[1]))

    def _region(self, found: re.Match[str]) -> None:
        numbers = self._open().numbers
        numbers["pool_bytes"] = numbers.get("pool_bytes", 0) + whole(found[1])

    def _pool(self, found: re.Match[str]) -> None:
        self._open().tell("pool_bytes", found[1])

    def _stat(self, found: re.Match[str]) -> None:
        if found[1] == "Limit":
            self._begin()
        draft = self._open()
        draft.tell(printed.STATS[found[1]], found[2])
        draft.is_complete = draft.is_complete or found[1] == "MaxAllocSize"

    def _usage(self, found: re.Match[str]) -> None:
        if self._draft is not None:
            size, _ = printed_bytes(found[1])
            self._draft.buffer(LiveBuffer(size_bytes=size, name=found[2].strip()))

    def _xla_asked(self, found: re.Match[str]) -> None:
        draft = self._begin()
        draft.tell("requested_bytes", found[1] + ("" if found[2] == "bytes" else found[2]))
        draft.texts.setdefault("device", "gpu:")

    def _hbm(self, found: re.Match[str]) -> None:
        draft = self._begin()
        draft.texts.setdefault("allocator", "hbm")
        draft.tell("program_bytes", found[1])
        draft.tell("limit_bytes", found[2])

    def _xla_part(self, found: re.Match[str]) -> None:
        if self._draft is not None:
            self._draft.tell(printed.XLA_PARTS[found[1]], found[2])

    def _buffer_line(self, found: re.Match[str]) -> None:
        if self._draft is None:
            return
        name = printed.BUFFER_LINES[found[1].lower()]
        if name == "size" or self._draft.opened is None:
            self._draft.close_buffer()
            self._draft.opened = {}
        self._draft.opened.setdefault(name, found[2].strip())

    def _buffer_end(self, _found: re.Match[str]) -> None:
        if self._draft is not None:
            self._draft.close_buffer()


def _is_told(report: OomReport) -> bool:
    return bool(report.chunks or report.buffers)


_Handler = Callable[[OomReader, re.Match[str]], None]
_HANDLERS: tuple[tuple[str, re.Pattern[str], _Handler], ...] = (
    ("an out of memory trying", printed.ASKED, OomReader._asked),
    ("OOM when allocating", printed.TENSOR, OomReader._tensor),
    ("[[", printed.OPERATION, OomReader._operation),
    ("BFCAllocator dump for", printed.DUMP, OomReader._dump),
    ("Bin (256):", printed.DUMP, OomReader._dump),
    (" of size ", printed.CHUNK, OomReader._chunk),
    ("Chunks of size", printed.SUMMARY, OomReader._summary),
    ("Next region of size", printed.REGION, OomReader._region),
    ("memory_limit_:", printed.POOL, OomReader._pool),
    ("Limit:", printed.STAT, OomReader._stat),
    ("InUse:", printed.STAT, OomReader._stat),
    ("NumAllocs:", printed.STAT, OomReader._stat),
    ("MaxAllocSize:", printed.STAT, OomReader._stat),
    ("B from ", printed.USAGE, OomReader._usage),
    ("ut of memory while trying", printed.XLA_ASKED, OomReader._xla_asked),
    (" hbm", printed.HBM, OomReader._hbm),
    (" allocation:", printed.XLA_PART, OomReader._xla_part),
    ("Size: ", printed.BUFFER, OomReader._buffer_line),
    ("Operator: ", printed.BUFFER, OomReader._buffer_line),
    ("XLA Label: ", printed.BUFFER, OomReader._buffer_line),
    ("XLA label: ", printed.BUFFER, OomReader._buffer_line),
    ("hape: ", printed.BUFFER, OomReader._buffer_line),
    ("==========", printed.RULER, OomReader._buffer_end),
)
_RULER = b"=========="
_BUFFERS = frozenset(needle.strip().encode() for needle, _, handle in _HANDLERS
                     if handle is OomReader._buffer_line)  # fmt: skip
_WORDS = frozenset(needle.strip().encode() for needle, _, _ in _HANDLERS)
