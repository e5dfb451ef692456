"""Pick GPUs of the catalogue by what a user asks, with everything derived that a view needs."""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING

from tfdyno.catalog import gpus as catalog
from tfdyno.catalog import software
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import parse_bytes
from tfdyno.core.choose.hardware import Gpu
from tfdyno.core.choose.software import WheelSupport
from tfdyno.model.time import peaks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PRECISIONS = ("float32", "tf32", "mixed_float16", "mixed_bfloat16", "float64")
_EXPRESSION = re.compile(r"\s*([a-z0-9_]+)\s*(>=|<=|!=|==|=|>|<)\s*(.+?)\s*")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
_NUMBERS: dict[str, Callable[[Gpu], float]] = {
    "memory": lambda gpu: gpu.memory_bytes,
    "bandwidth": lambda gpu: gpu.memory_bytes_per_s / 1e9,
    "cc": lambda gpu: float(gpu.compute_capability),
    "sm": lambda gpu: gpu.sm_count,
    "tdp": lambda gpu: gpu.tdp_w,
    "year": lambda gpu: gpu.release_year,
    "price": lambda gpu: gpu.launch_price_usd,
    "l2": lambda gpu: gpu.l2_bytes,
    "nvlink": lambda gpu: gpu.nvlink_bytes_per_s / 1e9,
    "mig": lambda gpu: gpu.mig_max_instances,
    "fp32": lambda gpu: peaks.peak_flops_per_s(gpu, "fp32") / 1e12,
    "tf32": lambda gpu: peaks.peak_flops_per_s(gpu, "tf32_tensor") / 1e12,
    "fp16": lambda gpu: peaks.peak_flops_per_s(gpu, "fp16_tensor") / 1e12,
    "bf16": lambda gpu: peaks.peak_flops_per_s(gpu, "bf16_tensor") / 1e12,
    "fp8": lambda gpu: peaks.peak_flops_per_s(gpu, "fp8_tensor") / 1e12,
    "int8": lambda gpu: peaks.peak_flops_per_s(gpu, "int8_tensor") / 1e12,
    "fp64": lambda gpu: peaks.peak_flops_per_s(gpu, "fp64") / 1e12,
}
_TEXTS: dict[str, Callable[[Gpu], str]] = {
    "market": lambda gpu: gpu.market,
    "architecture": lambda gpu: gpu.architecture,
    "memory_type": lambda gpu: gpu.memory_type,
    "ecc": lambda gpu: "yes" if gpu.ecc else "no",
    "duty": lambda gpu: gpu.continuous_duty,
    "form": lambda gpu: gpu.form_factor,
}
SORT_KEYS = ("name", *_NUMBERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuCard:
    """A GPU with the figures that follow from its row."""

    gpu: Gpu
    peak_flops_per_s: dict[str, float]
    """Dense peak by unit; 0 where the unit is absent."""
    warnings: dict[str, str]
    """What to know per precision; empty text where nothing has to be said."""
    tensorflow: WheelSupport
    slices: tuple[str, ...]
    """Slugs of its MIG slices."""


def card(gpu: Gpu, tensorflow: str = software.NEWEST) -> GpuCard:
    """Return everything known about one GPU, computed from its row."""
    from tfdyno.jobs.machine.wheels import supported  # only here: the list shows no wheel

    return GpuCard(
        gpu=gpu,
        peak_flops_per_s=peaks_of(gpu),
        warnings={name: peaks.supports(gpu, name)[1] for name in PRECISIONS},
        tensorflow=supported(gpu, tensorflow),
        slices=tuple(part.slug for part in catalog.slices_of(gpu)),
    )


def peaks_of(gpu: Gpu) -> dict[str, float]:
    """Return the dense peak by unit; 0 where the unit is absent."""
    return {unit: peaks.peak_flops_per_s(gpu, unit) for unit in peaks.UNITS}


def choose(
    filters: Iterable[str] = (), sort: str = "name", *, slices: bool = False
) -> tuple[Gpu, ...]:
    """Return the GPUs that pass every filter, in order.

    Args:
        filters: ``memory>=24GB``, ``cc>=8.0``, ``market=datacenter``, ``tensor``, ``ecc=yes`` or
            words that must occur in the name or slug.
        sort: ``name``, or a number to sort by, largest first.
        slices: Whether to list MIG slices too.

    Raises:
        UsageError: A filter or the sort key is not known.
    """
    tests = [_test(text) for text in filters]
    found = [*catalog.all_gpus(), *(catalog.all_slices() if slices else ())]
    found = [gpu for gpu in found if all(test(gpu) for test in tests)]
    if sort == "name":
        return tuple(sorted(found, key=lambda gpu: _natural(gpu.slug)))
    if sort not in _NUMBERS:
        raise UsageError(f"cannot sort by '{sort}'", remedy=f"sort by {', '.join(SORT_KEYS)}")
    value = _NUMBERS[sort]
    return tuple(sorted(found, key=lambda gpu: (-value(gpu), _natural(gpu.slug))))


def _natural(slug: str) -> list[tuple[int, str]]:
    parts = re.split(r"([0-9]+)", slug)
    return [(int(part), "") if part.isdigit() else (-1, part) for part in parts]


def _test(text: str) -> Callable[[Gpu], bool]:
    match = _EXPRESSION.fullmatch(text.lower())
    if match is None:
        return _word_test(text)
    name, sign, wanted = match.groups()
    if name in _NUMBERS:
        number = _memory(wanted) if name in {"memory", "l2"} else _number(text, wanted)
        value, compare = _NUMBERS[name], _OPERATORS[sign]
        return lambda gpu: compare(value(gpu), number)
    if name in _TEXTS and sign in {"=", "==", "!="}:
        read, same = _TEXTS[name], sign != "!="
        return lambda gpu: (wanted in read(gpu).lower()) == same
    known = ", ".join((*_NUMBERS, *_TEXTS))
    raise UsageError(f"cannot filter by '{text}'", remedy=f"compare one of {known}, or give a word")


def _word_test(text: str) -> Callable[[Gpu], bool]:
    if any(sign in text for sign in "<>="):
        raise UsageError(
            f"'{text}' is not a filter", remedy="write it like memory>=24GB or market=datacenter"
        )
    words = text.lower().replace("-", " ").split()
    if words == ["tensor"]:
        return lambda gpu: gpu.rates.tensor_cores > 0
    return lambda gpu: all(
        word in f"{gpu.slug} {gpu.name} {gpu.architecture}".lower() for word in words
    )


def _memory(text: str) -> float:
    """Read a card's label, which counts 1024: ``24GB``, ``24GiB`` and ``24`` mean the same."""
    bare = text.replace(".", "", 1).isdigit()
    plain = text.replace("gib", "gb").replace("mib", "mb")
    return parse_bytes(f"{plain}gib" if bare else plain.replace("gb", "gib").replace("mb", "mib"))


def _number(text: str, wanted: str) -> float:
    try:
        return float(wanted)
    except ValueError:
        raise UsageError(f"'{text}' does not compare with a number") from None
