"""A report of exhausted memory while its lines come in."""

from __future__ import annotations

import heapq
import math
import re
from collections import Counter
from dataclasses import dataclass, field

from tfdyno.core.doctor.oom import ChunkSize, LiveBuffer, MemoryKind, OomReport

MOST_SIZES = 4096
"""Distinct chunk sizes that are counted; a report has a few hundred."""
MOST_BUFFERS = 20
MOST_AMOUNT = 1e18
"""No memory holds an exabyte: a larger number is a damaged line."""
_ITEM_BITS = {
    **dict.fromkeys(("bool", "pred", "int8", "uint8", "s8", "u8", "qint8", "quint8"), 8),
    **dict.fromkeys(("half", "float16", "bfloat16", "int16", "uint16", "f16", "bf16", "s16"), 16),
    **dict.fromkeys(("float", "float32", "int32", "uint32", "f32", "s32", "u32", "int"), 32),
    **dict.fromkeys(("double", "float64", "int64", "uint64", "f64", "s64", "u64", "c64"), 64),
    **dict.fromkeys(("complex64",), 64),
    **dict.fromkeys(("complex128", "c128"), 128),
}
"""Width of an element by the names that TensorFlow (DataTypeString) and XLA print."""
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_AMOUNT = re.compile(r"([\d.,]+)\s*([KMGTP]?)(i?B|bytes|)", re.IGNORECASE)
_XLA_NAME = re.compile(r'op_name="([^"]+)"')
_XLA_SHAPE = re.compile(r"\b([a-z]+\d*)\[([\d,]*)\]")


def printed_bytes(text: str) -> tuple[int, bool]:
    """Read a print such as ``2.17GiB``, ``512.00M`` or ``1843986432``, and whether it is exact.

    Both TensorFlow and XLA print binary units.
    """
    found = _AMOUNT.match(text.strip())
    if found is None:
        return 0, False
    try:
        number = float(found[1].replace(",", ""))
    except ValueError:
        return 0, False
    power = _POWERS[found[2].upper()]
    if number > MOST_AMOUNT:
        return 0, False
    return round(number * 1024**power), power == 0


def whole(text: str) -> int:
    """Return the number of some digits; 0 where nothing in a machine is so large."""
    return int(text) if len(text) <= len(str(int(MOST_AMOUNT))) else 0


def tensor_bytes(shape: tuple[int, ...], dtype: str) -> int:
    """Return bytes of a tensor; 0 where the type is not known, or where no memory is so large."""
    bits = _ITEM_BITS.get(dtype.lower().removeprefix("dt_"), 0)
    amount = math.prod(shape) * bits // 8
    return amount if amount <= MOST_AMOUNT else 0


def kind_of(allocator: str, device: str = "") -> MemoryKind:
    """Tell whose memory an allocator gives, by its name."""
    name = allocator.lower()
    if re.search(r"host|cpu", name):
        return "host"
    if re.search(r"gpu|cuda|hbm", name) or "gpu:" in device.lower():
        return "gpu"
    return "host" if "cpu:" in device.lower() else ""


@dataclass(slots=True)
class Draft:
    """What was read of one report so far."""

    texts: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    approximate: set[str] = field(default_factory=set)
    shape: tuple[int, ...] = ()
    told_chunks: Counter[int] = field(default_factory=Counter)
    seen_chunks: Counter[int] = field(default_factory=Counter)
    buffers: list[tuple[int, int, LiveBuffer]] = field(default_factory=list)
    opened: dict[str, str] | None = None
    """The buffer whose lines are coming in."""
    is_complete: bool = False
    """Whether its statistics were read, so that another dump starts another report."""

    def tell(self, name: str, text: str) -> None:
        """Keep an amount: the first that was told, but an exact one for a rounded one."""
        amount, exact = printed_bytes(text)
        if name in self.numbers and not (exact and name in self.approximate):
            return
        self.numbers[name] = amount
        self.approximate.discard(name)
        if not exact:
            self.approximate.add(name)

    def tensor(self, shape: str, dtype: str) -> None:
        """Keep the tensor that found no room."""
        if self.shape or not re.fullmatch(r"[\d,\s]+", shape):
            return
        self.shape = tuple(whole(one) for one in re.findall(r"\d+", shape))
        self.texts.setdefault("dtype", dtype)
        exact = tensor_bytes(self.shape, dtype)
        if exact and ("requested_bytes" not in self.numbers):
            self.numbers["requested_bytes"] = exact

    def chunk(self, size_bytes: int, *, in_use: bool) -> None:
        """Count one line of the map of the memory."""
        if in_use:
            count(self.seen_chunks, size_bytes, 1)
            return
        self.numbers["free_bytes"] = self.numbers.get("free_bytes", 0) + size_bytes
        largest = max(self.numbers.get("largest_free_bytes", 0), size_bytes)
        self.numbers["largest_free_bytes"] = largest

    def buffer(self, one: LiveBuffer) -> None:
        """Keep it if it is among the largest."""
        entry = (one.size_bytes, -len(self.buffers), one)
        if len(self.buffers) < MOST_BUFFERS:
            heapq.heappush(self.buffers, entry)
        else:
            heapq.heappushpop(self.buffers, entry)

    def close_buffer(self) -> None:
        """End the buffer whose lines came in; its exact size comes from its shape."""
        lines, self.opened = self.opened, None
        if not lines or "size" not in lines:
            return
        size_bytes, _ = printed_bytes(lines["size"])
        shape = _XLA_SHAPE.search(lines.get("shape", ""))
        if shape:
            sizes = tuple(whole(one) for one in re.findall(r"\d+", shape[2]))
            exact = tensor_bytes(sizes, shape[1])
            if abs(exact - size_bytes) <= 0.01 * size_bytes:
                size_bytes = exact
        told = _XLA_NAME.search(lines.get("operator", ""))
        name = told[1] if told else lines.get("operator") or lines.get("label", "")
        self.buffer(LiveBuffer(size_bytes=size_bytes, name=name, shape=shape[0] if shape else ""))

    def report(self) -> OomReport:
        """Return the report as far as it was read; sums of exact lines replace rounded totals."""
        self.close_buffer()
        numbers = dict(self.numbers)
        chunks = self.told_chunks or self.seen_chunks
        told = sum(size * times for size, times in chunks.items())
        rounded = set(self.approximate)
        if told and (self.told_chunks or "in_use_bytes" not in numbers):
            numbers["in_use_bytes"] = told
            rounded.discard("in_use_bytes")
        allocator = self.texts.get("allocator", "")
        return OomReport(
            kind=kind_of(allocator, self.texts.get("device", "")),
            allocator=allocator,
            operation=self.texts.get("operation", ""),
            shape=self.shape,
            dtype=self.texts.get("dtype", ""),
            chunks=_by_total(chunks),
            buffers=tuple(one for *_, one in sorted(self.buffers, key=lambda b: (-b[0], -b[1]))),
            approximate=frozenset(rounded),
            **numbers,
        )


def count(counter: Counter[int], size_bytes: int, times: int) -> None:
    """Count a size unless there are too many already."""
    if size_bytes in counter or len(counter) < MOST_SIZES:
        counter[size_bytes] += times


def _by_total(chunks: Counter[int]) -> tuple[ChunkSize, ...]:
    found = [ChunkSize(size_bytes=size, count=times) for size, times in chunks.items()]
    return tuple(sorted(found, key=lambda one: (-one.total_bytes, -one.size_bytes)))
