"""GPUs as terminal text: the list, the comparison and one card in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tfdyno.core.base.units import GIB, format_bytes, format_si, significant
from tfdyno.view.base.text import WIDTH, paint, pairs, shorten, shown_width, table, wrapped
from tfdyno.words.base.language import say, say_later
from tfdyno.words.base.names import named

if TYPE_CHECKING:
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.software import WheelSupport

_SPARE = (2, 5, 7, 4, 8, 6, 1)
"""Columns of the list that a narrow screen lacks: SMs, FP32, W, GB/s, ..."""
_LIST_HEADERS = ("GPU", "cc", "SM", "GB", "GB/s", "FP32", "FP16", "W", say_later("kind"))
_KINDS = {"datacenter": say_later("server"), "workstation": say_later("pro")}
Peaks = Mapping[str, float]


def gpu_list(
    gpus: Sequence[Gpu], peaks: Sequence[Peaks], *, width: int = WIDTH, colour: bool = False
) -> str:
    """Return one line per GPU; rates are dense peaks in TFLOP/s, tensor cores for FP16."""
    rows = [
        (
            gpu.slug,
            gpu.compute_capability,
            str(gpu.sm_count),
            significant(gpu.memory_bytes / GIB),
            f"{gpu.memory_bytes_per_s / 1e9:,.0f}",
            _tera(peak["fp32"]),
            _tera(peak["fp16_tensor"]),
            f"{gpu.tdp_w:.0f}",
            say(_KINDS[gpu.market]) if gpu.market in _KINDS else named(gpu.market),
        )
        for gpu, peak in zip(gpus, peaks, strict=True)
    ]
    lines = table(tuple(map(say, _LIST_HEADERS)), rows, align="<>>>>>>><", width=width, elastic=0,
                  spare=_SPARE, colour=colour)  # fmt: skip
    note = say(
        "{count} GPUs. FP32, FP16 (tensor cores that sum in float32): dense peak in "
        "TFLOP/s; – where there is no such unit. 'tfdyno gpus NAME' shows one in "
        "full.",
        count=len(gpus),
    )
    return f"{lines}\n\n{wrapped(note, width=width)}"


def comparison(
    gpus: Sequence[Gpu],
    peaks: Sequence[Peaks],
    support: Sequence[WheelSupport],
    *,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return GPUs side by side, one property per line."""
    names = [*(name for name, _ in _facts(gpus[0], peaks[0])), say("TensorFlow wheel")]
    least = max(14, *(len(gpu.slug) for gpu in gpus)) + 2
    beside = max(1, (width - max(map(shown_width, names))) // least)
    if len(gpus) > beside:
        parts = [slice(i, i + beside) for i in range(0, len(gpus), beside)]
        return "\n\n".join(
            comparison(gpus[p], peaks[p], support[p], width=width, colour=colour) for p in parts
        )
    columns = [
        [value for _, value in [*_facts(gpu, peak), (say("TensorFlow wheel"), wheel.outcome)]]
        for gpu, peak, wheel in zip(gpus, peaks, support, strict=True)
    ]
    room = max(14, (width - max(map(shown_width, names))) // len(gpus) - 2)
    rows = [
        (name, *(shorten(column[index] or "–", room) for column in columns))
        for index, name in enumerate(names)
    ]
    headers = ("", *(gpu.slug for gpu in gpus))
    return table(headers, rows, align="<" + ">" * len(gpus), width=width, colour=colour)


def gpu_detail(
    gpu: Gpu,
    peak: Peaks,
    warnings: Mapping[str, str],
    support: WheelSupport,
    slices: Sequence[str],
    *,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Write everything the catalogue knows about one GPU, with sources."""
    known = list(dict.fromkeys(filter(None, warnings.values())))
    profiles = ", ".join(slug.partition(":")[2] for slug in slices)
    driver = (
        say("; driver {version} or later", version=support.driver_linux)
        if support.driver_linux
        else ""
    )
    entries = [
        *_facts(gpu, peak),
        (
            say("usable memory"),
            f"{format_bytes(gpu.usable_memory_bytes)} ({gpu.usable_memory_source})",
        ),
        ("TensorFlow", f"{support.outcome}: {support.detail}{driver}"),
        ("XLA", " ".join(support.known_faults) if support.xla_fails else ""),
        (say("MIG slices"), profiles),
        *((say("note") if index == 0 else "", text) for index, text in enumerate(known)),
        (say("remarks"), gpu.notes),
        (say("sources"), gpu.source),
    ]
    title = paint(gpu.name, "bold", colour=colour)
    body = pairs([(name or "·", value) for name, value in entries], width=width)
    return f"{title}  {gpu.slug}\n{body}"


def _facts(gpu: Gpu, peak: Peaks) -> list[tuple[str, str]]:
    return [
        (say("architecture"), f"{gpu.architecture}, {gpu.compute_capability}"),
        (say("market"), named(gpu.market)),
        (say("SMs"), str(gpu.sm_count)),
        (say("clock"), _clock(gpu)),
        (say("memory"), f"{significant(gpu.memory_bytes / GIB)} GB {gpu.memory_type}"),
        (say("bandwidth"), format_si(gpu.memory_bytes_per_s, "B/s")),
        (say("L2 cache"), format_bytes(gpu.l2_bytes)),
        ("FP32", _rate(peak["fp32"])),
        (say("TF32 tensor"), _rate(peak["tf32_tensor"])),
        (say("FP16 tensor"), _rate(peak["fp16_tensor"])),
        (say("BF16 tensor"), _rate(peak["bf16_tensor"])),
        (say("FP8 tensor"), _rate(peak["fp8_tensor"])),
        ("FP64", _rate(peak["fp64"])),
        (
            "NVLink",
            format_si(gpu.nvlink_bytes_per_s, "B/s") if gpu.nvlink_bytes_per_s else say("none"),
        ),
        (say("power"), f"{significant(gpu.tdp_w)} W"),
        ("ECC", named("yes" if gpu.ecc else "no")),
        (say("form"), gpu.form_factor),
        (say("cooling"), gpu.cooling),
        (say("connector"), gpu.power_connector),
        (say("power supply"), _supply(gpu)),
        (say("24/7 duty"), named(gpu.continuous_duty)),
        (say("launched"), _launched(gpu)),
    ]


def _clock(gpu: Gpu) -> str:
    boost = f"{gpu.boost_hz / 1e6:,.0f} MHz"
    if gpu.tensor_clock_hz == gpu.boost_hz:
        return boost
    return say(
        "{boost}, tensor {tensor:,.0f}",
        boost=boost,
        tensor=gpu.tensor_clock_hz / 1e6,
    )


def _launched(gpu: Gpu) -> str:
    price = f", ${gpu.launch_price_usd:,.0f}" if gpu.launch_price_usd else ""
    return f"{gpu.release_year}{price}"


def _supply(gpu: Gpu) -> str:
    watts = gpu.recommended_power_supply_w
    return f"{watts:,.0f} W" if watts else ""


def _tera(value: float) -> str:
    if not value:
        return "–"
    tera = value / 1e12
    return f"{tera:.0f}" if tera >= 100 else significant(tera, 3 if tera >= 1 else 2)


def _rate(value: float) -> str:
    return format_si(value, "FLOP/s") if value else say("none")
