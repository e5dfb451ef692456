"""Protobuf's wire format: what is written comes back, what is damaged is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.profile import wire


def number(value: int) -> bytes:
    taken = []
    while value > 0x7F:
        taken.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*taken, value])


@given(st.integers(0, 2**63 - 1))
def test_a_number_comes_back(value: int) -> None:
    assert wire.varint(number(value), 0) == (value, len(number(value)))


def test_a_negative_number_takes_ten_bytes() -> None:
    data = np.frombuffer(b"\x08" + number(2**64 - 5), np.uint8)
    (fields,) = wire.rounds(data, np.array([0]), np.array([data.size]))
    assert fields.value.tolist() == [-5]


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.binary(max_size=200)), max_size=9))
def test_many_messages_are_read_at_once(messages: list[tuple[int, bytes]]) -> None:
    bodies = [b"\x08" + number(n) + b"\x12" + number(len(t)) + t for n, t in messages]
    data = b"".join(b"\x22" + number(len(body)) + body for body in bodies)
    begins, ends = wire.repeated(memoryview(data), 0, len(data), 4)
    assert [data[b:e] for b, e in zip(begins, ends, strict=True)] == bodies
    found = list(wire.rounds(np.frombuffer(data, np.uint8), begins, ends))
    if messages:
        numbers, texts = found
        assert numbers.value.tolist() == [n for n, _ in messages]
        spans = zip(texts.value, texts.end, strict=True)
        assert [data[b:e] for b, e in spans] == [t for _, t in messages]


def test_other_fields_between_are_passed_over() -> None:
    data = b"\x22\x01a" + b"\x18\x05" + b"\x22\x02bc" + b"\x5a\x01x"
    begins, ends = wire.repeated(memoryview(data), 0, len(data), 4)
    assert [data[b:e] for b, e in zip(begins, ends, strict=True)] == [b"a", b"bc"]


def test_fixed_fields_are_read() -> None:
    data = np.frombuffer(b"\x11" + (7).to_bytes(8, "little") + b"\x1d\x00\x00\x00\x00", np.uint8)
    first, second = wire.rounds(data, np.array([0]), np.array([data.size]))
    assert (first.value.tolist(), first.wire.tolist()) == ([7], [wire.FIXED64])
    assert second.number.tolist() == [3]
    assert [n for n, *_ in wire.parts(memoryview(data.tobytes()), 0, data.size)] == [2, 3]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x0a\x7f", "longer than its message"),
        (b"\x08" + b"\xff" * 11, "longer than ten bytes"),
        (b"\x08\xff", "end inside of a number"),
        (b"\x00\x00", "no field 0"),
        (b"\x0b", "no kind of field 3"),
    ],
)
def test_damaged_bytes_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(wire.WireError, match=why):
        list(wire.parts(memoryview(data), 0, len(data)))


@pytest.mark.parametrize("data", [b"\x0a\x7f", b"\x08" + b"\xff" * 11, b"\x08\xff", b"\x0b\x00"])
def test_damaged_messages_are_refused_when_read_at_once(data: bytes) -> None:
    with pytest.raises(wire.WireError):
        list(wire.rounds(np.frombuffer(data, np.uint8), np.array([0]), np.array([len(data)])))
