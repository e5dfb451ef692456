"""Bytes of a log as blocks of whole lines, and one line of it as a person would read it."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BLOCK_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 16
"""A longer line is cut; the parts count as one line."""
SAME_LINE = b"\r"
"""Starts a part that belongs to the line before: an overwritten progress bar, a cut long line."""

_COLOUR = re.compile(
    rb"(?:\x1b|\\u001[bB]|\\x1[bB]|\\033)(?:\[[0-9;?]*[A-Za-z]|\][^\x07\n]*\x07|\([A-B0])"
)
_ESCAPE_STARTS = (b"\x1b", b"u001b[", b"u001B[", b"x1b[", b"x1B[", b"033[")
_LOOKS_ENCODED = re.compile(r'^(?:\S+ ){0,4}\s*[\[{"\']')
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|[nrt\"'\\/])")
_PLAIN = {"n": "\n", "r": "\n", "t": " "}
_QUOTING = re.compile(r"^(?:[>#]\s?)+(?=\S)")
_FRESH_LINE = re.compile(
    r"\s*(?:\d{4}-\d\d-\d\d|\[?\d\d:\d\d:\d\d|[IWEF]\d{4} |[IWEF] \S+\.(?:cc|cpp|h):\d|Traceback "
    r'|File "|\{"|\w+(?:Error|Exception|Warning)\b|ERROR|WARNING|INFO)'
)
_SAME_START = 12
"""Neighbours that begin with the same characters are two lines of one kind."""
_WRAP_CHARACTERS = 50
"""A shorter line was not wrapped by a terminal."""
REACH_LINES = 3
"""A paragraph of what a terminal parted goes so many lines back and forth from a line."""
_PARAGRAPH_LINES = 64
"""So far back from the end of a block an end of what a terminal wrapped is looked for."""


def blocks(chunks: Iterable[bytes | str]) -> Iterator[bytes]:
    r"""Give blocks of about a mebibyte of UTF-8 that end at a line's end.

    Lines are parted by ``\n`` alone; what a carriage return parted, and the parts of an over-long
    line, begin with ``SAME_LINE``. Colour codes are gone.

    Args:
        chunks: Text, or bytes in UTF-8 or UTF-16, cut anywhere.
    """
    pending: list[bytes] = []
    held_bytes = 0
    for chunk in _utf8(chunks):
        pending.append(chunk)
        held_bytes += len(chunk)
        if held_bytes < BLOCK_BYTES:
            continue
        data = b"".join(pending)
        end = _end_of_lines(data)
        yield _tidy(data[:end])
        pending, held_bytes = [data[end:]], len(data) - end
    rest = b"".join(pending)
    if rest:
        yield _tidy(rest)


def readable(line: bytes) -> tuple[str, ...]:
    """Return one line as a person would read it; a line of JSON may hold several."""
    text = line.lstrip(SAME_LINE).decode("utf-8", "replace").replace("\x00", "").rstrip()
    if "\\" in text and _LOOKS_ENCODED.match(text):
        text = _ESCAPED.sub(_unescape, text)
    return tuple(_QUOTING.sub("", part) for part in text.split("\n") if part.strip()) or ("",)


def lines_with(block: bytes, words: Iterable[bytes]) -> Iterator[bytes]:
    """Return the lines of a block, in order, that hold one of the words."""
    ends: dict[int, int] = {}
    for word in words:
        at = block.find(word)
        while at >= 0:
            end = block.find(b"\n", at)
            end = len(block) if end < 0 else end
            ends[block.rfind(b"\n", 0, at) + 1] = end
            at = block.find(word, end)
    return (block[start : ends[start]] for start in sorted(ends))


def paragraph(lines: list[bytes], index: int) -> tuple[str, ...]:
    """Return the line with those that a terminal parted from it, glued without and with a space.

    Empty where the line looks whole.
    """
    first = index
    while first > max(0, index - REACH_LINES) and _was_wrapped(lines[first - 1], lines[first]):
        first -= 1
    last = index
    while last < min(len(lines) - 1, index + REACH_LINES) and _was_wrapped(
        lines[last], lines[last + 1]
    ):
        last += 1
    if first == last:
        return ()
    parts = [readable(line)[0] for line in lines[first : last + 1]]
    return "".join(parts), " ".join(part.strip() for part in parts)


def _was_wrapped(line: bytes, following: bytes) -> bool:
    if len(line) < _WRAP_CHARACTERS or len(line) > LONGEST_LINE_BYTES + 4 or not following:
        return False
    if following.startswith(SAME_LINE):
        return len(line) >= LONGEST_LINE_BYTES
    if line[:_SAME_START] == following[:_SAME_START]:
        return False
    return not _FRESH_LINE.match(following[:80].decode("utf-8", "replace"))


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] == "u" and len(code) == 5:
        return chr(int(code[1:], 16))
    return _PLAIN.get(code, code)


def _utf8(chunks: Iterable[bytes | str]) -> Iterator[bytes]:
    decoder: codecs.IncrementalDecoder | None = None
    started = False
    for chunk in chunks:
        if not chunk:
            continue
        data = chunk.encode("utf-8", "replace") if isinstance(chunk, str) else chunk
        if not started:
            started = True
            encoding = _encoding(data) if isinstance(chunk, bytes) else ""
            decoder = codecs.getincrementaldecoder(encoding)("replace") if encoding else None
            data = data.removeprefix(codecs.BOM_UTF8)
        yield decoder.decode(data).encode("utf-8", "replace") if decoder else data


def _encoding(start: bytes) -> str:
    """Return ``utf-16`` and its kin, or nothing for UTF-8 and all else that holds ASCII."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = start[:4096]
    if len(sample) >= 8:
        if sample[1::2].count(0) > len(sample) * 0.4 and sample[::2].count(0) == 0:
            return "utf-16-le"
        if sample[::2].count(0) > len(sample) * 0.4 and sample[1::2].count(0) == 0:
            return "utf-16-be"
    return ""


def _end_of_lines(data: bytes) -> int:
    """Find where the last whole line ends, or better one that no terminal parted from the next."""
    following = len(data)
    end = last = data.rfind(b"\n") + 1
    for _ in range(_PARAGRAPH_LINES):
        if not end:
            break
        start = data.rfind(b"\n", 0, end - 1) + 1
        if end < following and not _was_wrapped(data[start : end - 1], data[end:following]):
            return end
        end, following = start, end
    return max(last, data.rfind(b"\r", 0, len(data) - 1) + 1) or len(data)


def _tidy(data: bytes) -> bytes:
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n" + SAME_LINE)
    if any(start in data for start in _ESCAPE_STARTS):
        data = _COLOUR.sub(b"", data)
    if len(data) > LONGEST_LINE_BYTES:
        data = _cut_long_lines(data)
    return data


def _cut_long_lines(data: bytes) -> bytes:
    start, pieces = 0, []
    while start < len(data):
        limit = start + LONGEST_LINE_BYTES
        end = data.rfind(b"\n", start, limit) + 1
        if end or limit >= len(data):
            end = end or len(data)
            pieces.append(data[start:end])
        else:
            end = limit
            following = data.find(b"\n", end)
            is_cut = following != end
            pieces.append(data[start:end] + (b"\n" + SAME_LINE if is_cut else b""))
        start = end
    return b"".join(pieces)
