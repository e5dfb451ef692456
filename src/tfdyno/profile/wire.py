"""Read protobuf's wire format many messages at a time, without the classes of a schema.

A profile of some 100 MB holds millions of small messages. Read one by one in Python each takes
microseconds; here the fields of all messages of a line are read together by numpy. What nobody asks
for, such as the compiled programs that a profile carries, is passed over without being copied.

Source:
    https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Bytes = NDArray[np.uint8]

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
_MOST_VARINT_BYTES = 10


class WireError(ValueError):
    """The bytes are no message, or end inside of one."""


class CutOffError(WireError):
    """A field is longer than what holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """One field of each of many messages, of those that still have one."""

    message: Integers
    """Which message, by its place."""
    number: Integers
    wire: Integers
    value: Integers
    """The number; for ``LENGTH`` where its bytes begin, for ``FIXED64`` its bits."""
    end: Integers
    """Where the bytes of a ``LENGTH`` end."""


def varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return one number and where the next field begins; raises ``WireError``."""
    result = shift = 0
    try:
        while True:
            byte = data[at]
            at += 1
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result, at
            shift += 7
            if shift >= 7 * _MOST_VARINT_BYTES:
                raise WireError("a number is longer than ten bytes")
    except IndexError:
        raise CutOffError("the bytes end inside of a number") from None


def text(data: memoryview, begin: int, end: int) -> str:
    """Return what bytes say; those that are no text are replaced."""
    return bytes(data[begin:end]).decode("utf-8", "replace")


def parts(data: memoryview, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Walk one message's fields: number, wire type, value (or where it begins), where it ends.

    Raises:
        WireError: The message is none, or longer than its place.
    """
    at = begin
    while at < end:
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == VARINT:
            value, at = varint(data, at)
            last = at
        elif wire == LENGTH:
            size, value = varint(data, at)
            at = last = value + size
        elif wire in (FIXED64, FIXED32):
            value, at = at, at + (8 if wire == FIXED64 else 4)
            last = at
        else:
            raise WireError(f"there is no kind of field {wire}")
        if number == 0:
            raise WireError("there is no field 0")
        if at > end:
            raise CutOffError("a field is longer than its message")
        yield number, wire, value, last


def repeated(data: memoryview, begin: int, end: int, number: int) -> tuple[Integers, Integers]:
    """Return where one repeated field's messages begin and end; other fields are passed over."""
    tag, short = number << 3 | LENGTH, 0x80
    begins: list[int] = []
    ends: list[int] = []
    at = begin
    while at < end:
        # Nearly all entries are short: their tag and their size take one byte each.
        if data[at] == tag and at + 1 < end and data[at + 1] < short:
            first = at + 2
            at = first + data[at + 1]
            if at > end:
                raise CutOffError("a field is longer than its message")
            begins.append(first)
            ends.append(at)
            continue
        field, wire, value, last = next(parts(data, at, end))
        at = last
        if field == number and wire == LENGTH:
            begins.append(value)
            ends.append(last)
    return np.array(begins, np.int64), np.array(ends, np.int64)


def rounds(data: Bytes, begins: Integers, ends: Integers) -> Iterator[Fields]:
    """Give the first field of every message, then the second of those that have one, and so on.

    Args:
        data: All bytes.
        begins: Where each message begins.
        ends: Where it ends.

    Raises:
        WireError: A message is none.
    """
    at = begins.copy()
    message = np.flatnonzero(at < ends)
    while message.size:
        tag, here = _varints(data, at[message])
        number, wire = tag >> 3, tag & 7
        value = np.zeros_like(here)
        after = here.copy()
        for kind in np.unique(wire):
            chosen = wire == kind
            if kind == VARINT:
                value[chosen], after[chosen] = _varints(data, here[chosen])
            elif kind == LENGTH:
                size, value[chosen] = _varints(data, here[chosen])
                after[chosen] = value[chosen] + size
            elif kind == FIXED64:
                value[chosen], after[chosen] = _fixed64(data, here[chosen]), here[chosen] + 8
            elif kind == FIXED32:
                after[chosen] = here[chosen] + 4
            else:
                raise WireError(f"there is no kind of field {kind}")
        if (after > ends[message]).any() or (after <= here - 1).any():
            raise CutOffError("a field is longer than its message")
        yield Fields(message=message, number=number, wire=wire, value=value, end=after)
        at[message] = after
        message = message[after < ends[message]]


def _varints(data: Bytes, at: Integers) -> tuple[Integers, Integers]:
    """Return many numbers at once; those beyond 63 bits wrap, as signed ones do."""
    at = at.copy()
    result = np.zeros(at.size, np.uint64)
    more = np.arange(at.size)
    for byte_index in range(_MOST_VARINT_BYTES):
        place = at[more]
        if place.size and place.max() >= data.size:
            raise CutOffError("the bytes end inside of a number")
        byte = data[place]
        result[more] |= (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * byte_index)
        at[more] += 1
        more = more[byte >= 0x80]
        if not more.size:
            return result.view(np.int64), at
    raise WireError("a number is longer than ten bytes")


def _fixed64(data: Bytes, at: Integers) -> Integers:
    if at.size and at.max() + 8 > data.size:
        raise CutOffError("the bytes end inside of a number")
    return data[at[:, None] + np.arange(8)].view("<i8").reshape(-1).astype(np.int64)
