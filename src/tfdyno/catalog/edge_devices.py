"""Small devices as nouns: boards, phone classes, microcontrollers, and what runs a model there."""

from __future__ import annotations

import difflib
import functools
import re
from typing import TYPE_CHECKING, cast, get_args

from tfdyno.catalog import gpus
from tfdyno.catalog.tables import DATA, Row, read_table
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.edge import EdgeDevice, EdgeRuntime, Runtime

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tfdyno.core.choose.hardware import Gpu

KIB = 1024
KINDS = ("jetson", "board", "accelerator", "phone", "microcontroller")
_DEVICE_COLUMNS = (
    "slug", "name", "kind", "runtime", "gpu_slug", "cores", "clock_mhz", "float_per_clock",
    "half_per_clock", "integer_per_clock", "integer_gops_vendor", "ram_kib", "ram_taken_kib",
    "flash_kib", "memory_bandwidth_gbs", "rule", "seen", "source",
)  # fmt: skip
_RUNTIME_COLUMNS = (
    "slug", "name", "code_kib", "memory_kib", "tensor_bytes", "operator_bytes", "on_chip_kib",
    "fastest_percent", "slowest_percent", "dispatch_us", "slow_dispatch_us", "source",
)  # fmt: skip
_ALSO = {"mcu": "microcontroller", "mcus": "microcontroller", "coral": "accelerator"}
_UNVERIFIED = re.compile(r"(^|; )((?P<what>[^;]+): )?unverified \(memory\)")
_LISTED = "'tfdyno edge --list' names all"


@functools.lru_cache(maxsize=1)
def all_devices() -> tuple[EdgeDevice, ...]:
    """Return all of them, sorted by slug.

    Raises:
        ToolError: A shipped table is corrupt; names the file and the line.
    """
    rows = read_table(DATA / "edge_devices.csv", _DEVICE_COLUMNS, key=("slug",))
    return tuple(_device(row) for row in rows)


def parse_list(text: str) -> tuple[EdgeDevice, ...]:
    """Read ``a,b,all``: devices in that order, each once; a kind stands for all of its own.

    Raises:
        UsageError: The list is empty, or a name in it is no device; with the nearest names.
    """
    found: dict[str, EdgeDevice] = {}
    for name in filter(None, (part.strip().lower() for part in text.split(","))):
        for device in _named(name):
            found.setdefault(device.slug, device)
    if not found:
        raise UsageError("no device was named", remedy=_LISTED)
    return tuple(found.values())


@functools.lru_cache(maxsize=4)
def operations(runtime: str) -> frozenset[str]:
    """Return the operators that ``litert-micro``, ``edgetpu`` or ``gpu-delegate`` has."""
    rows = read_table(
        DATA / "edge_operations.csv",
        ("runtime", "operation", "source"),
        key=("runtime", "operation"),
    )
    return frozenset(row.text("operation") for row in rows if row.text("runtime") == runtime)


def _named(name: str) -> tuple[EdgeDevice, ...]:
    devices = {device.slug: device for device in all_devices()}
    if name == "all":
        return tuple(devices.values())
    kind = _ALSO.get(name, name.removesuffix("s"))
    if kind in KINDS:
        return tuple(d for d in devices.values() if d.kind == kind)
    plain = _plain(name)
    exact = [d for d in devices.values() if plain in (_plain(d.slug), _plain(d.name))]
    if exact:
        return tuple(exact[:1])
    within = [d for d in devices.values() if plain and plain in _plain(d.slug)]
    if len(within) == 1:
        return tuple(within)
    raise UsageError(f"there is no device '{name}'", remedy=_nearest(name, devices, within))


def _nearest(name: str, slugs: Iterable[str], within: list[EdgeDevice]) -> str:
    near = [device.slug for device in within] or difflib.get_close_matches(
        name, [*slugs, *KINDS], n=3, cutoff=0.5
    )
    return f"did you mean {' or '.join(near[:3])}?" if near else _LISTED


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@functools.lru_cache(maxsize=1)
def _runtimes() -> dict[str, EdgeRuntime]:
    rows = read_table(DATA / "edge_runtimes.csv", _RUNTIME_COLUMNS, key=("slug",))
    return {row.text("slug"): _runtime(row) for row in rows}


def _runtime(row: Row) -> EdgeRuntime:
    if row.text("slug") not in get_args(Runtime):
        raise row.fault(f"there is no runtime '{row.text('slug')}'")
    return EdgeRuntime(
        slug=cast("Runtime", row.text("slug")),
        name=row.text("name"),
        code_bytes=row.whole("code_kib") * KIB,
        memory_bytes=row.whole("memory_kib") * KIB,
        tensor_bytes=row.whole("tensor_bytes"),
        operator_bytes=row.whole("operator_bytes"),
        on_chip_bytes=row.whole("on_chip_kib") * KIB,
        fastest_ratio=row.number("fastest_percent") / 100,
        slowest_ratio=row.number("slowest_percent") / 100,
        dispatch_s=row.number("dispatch_us") / 1e6,
        slow_dispatch_s=row.number("slow_dispatch_us") / 1e6,
        source=row.text("source"),
    )


def _device(row: Row) -> EdgeDevice:
    if row.text("kind") not in KINDS:
        raise row.fault(f"kind is '{row.text('kind')}', not one of {', '.join(KINDS)}")
    if row.text("runtime") not in _runtimes():
        raise row.fault(f"edge_runtimes.csv has no runtime '{row.text('runtime')}'")
    floats, halves, integers, bandwidth = _rates(row)
    return EdgeDevice(
        slug=row.text("slug"),
        name=row.text("name"),
        kind=row.text("kind"),
        runtime=_runtimes()[row.text("runtime")],
        memory_bytes=(row.whole("ram_kib") - row.whole("ram_taken_kib")) * KIB,
        storage_bytes=row.whole("flash_kib") * KIB,
        float_ops_per_s=floats,
        half_ops_per_s=halves,
        integer_ops_per_s=integers,
        memory_bytes_per_s=bandwidth,
        rule=row.text("rule"),
        seen=row.text("seen"),
        source=row.text("source"),
        unverified=unverified(row.text("source")),
    )


def unverified(source: str) -> str:
    """Name the figures that a source calls unverified: ``memory that the system keeps``."""
    found = _UNVERIFIED.search(source)
    return found["what"] or "all figures" if found else ""


def _rates(row: Row) -> tuple[float, float, float, float]:
    """Return operations per second of floats, half floats and 8 bits, and bytes per second."""
    if row.text("gpu_slug"):
        return _gpu_rates(gpus.find(row.text("gpu_slug")))
    clocks = row.whole("cores") * row.number("clock_mhz") * 1e6
    integers = row.number("integer_gops_vendor", default=0.0) * 1e9
    return (
        clocks * row.number("float_per_clock"),
        clocks * row.number("half_per_clock"),
        integers or clocks * row.number("integer_per_clock"),
        row.number("memory_bandwidth_gbs") * 1e9,
    )


def _gpu_rates(gpu: Gpu) -> tuple[float, float, float, float]:
    vector, tensor = gpu.sm_count * gpu.boost_hz, gpu.sm_count * gpu.tensor_clock_hz
    floats = vector * gpu.rates.fp32_per_clock
    halves = max(vector * gpu.rates.fp16_vector_per_clock, tensor * gpu.rates.fp16_tensor_per_clock)
    # Cards before Volta's tensor cores run 8 bits no faster than half floats.
    integers = max(tensor * gpu.rates.int8_tensor_per_clock, halves)
    return floats, halves, integers, gpu.memory_bytes_per_s
