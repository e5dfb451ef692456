"""Every GPU of the catalogue as a noun; MIG slices of them too."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import cast, get_args

from tfdyno.catalog import names
from tfdyno.catalog.tables import DATA, Row, read_table
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import GIB, MIB
from tfdyno.core.choose.hardware import Gpu, Market, SmRates

_RATES = (
    "fp32_per_clock",
    "fp16_vector_per_clock",
    "tf32_tensor_per_clock",
    "fp16_tensor_per_clock",
    "bf16_tensor_per_clock",
    "fp8_tensor_per_clock",
    "int8_tensor_per_clock",
    "fp64_per_clock",
)
_RATE_COLUMNS = (
    *["compute_capability", "variant", "architecture", "example_gpus"],
    *_RATES,
    *[
        "fp16_tensor_fp16_accumulate_per_clock",
        "int8_dp4a_per_clock",
        "fp64_tensor_per_clock",
        "cuda_cores",
        "tensor_cores",
        "max_threads",
        "max_blocks",
        "shared_memory_kib",
        "shared_memory_per_block_kib",
        "l1_shared_kib",
        "registers",
        "l2_mb_range",
        "min_cuda_toolkit",
        "last_cuda_toolkit",
        "mixed_precision_advice",
        "cross_check",
        "source",
    ],
)
_GPU_COLUMNS = [
    "slug",
    "name",
    "vendor",
    "market",
    "architecture",
    "compute_capability",
    "rate_variant",
    "sm_count",
    "boost_mhz",
    "tensor_clock_mhz",
    "memory_gb",
    "memory_type",
    "memory_bandwidth_gbs",
    "l2_mb",
    "ecc",
    "tdp_w",
    "pcie_gen",
    "nvlink_gbs_total_bidir",
    "mig_max_instances",
    "first_cuda",
    "release_year",
    "launch_price_usd",
    "launch_price_source",
    "cuda_total_mem_mib",
    "nvidia_smi_mem_mib",
    "fp32_vendor",
    "fp16_dense_vendor",
    "vendor_source",
    "form_factor",
    "cooling",
    "power_connector",
    "recommended_power_supply_w",
    "continuous_duty",
    "build_source",
    "notes",
    "source",
]
_MIG_COLUMNS = [
    "gpu_slug",
    "profile",
    "compute_slices",
    "memory_slices",
    "memory_slices_of_card",
    "sm_count",
    "max_instances",
    "usable_mem_mib",
    "source",
]


@functools.lru_cache(maxsize=1)
def all_gpus() -> tuple[Gpu, ...]:
    """Return all whole GPUs, sorted by slug.

    Raises:
        ToolError: A shipped table is corrupt; names the file and the line.
    """
    rates = _all_rates()
    return tuple(_gpu(row, rates) for row in gpu_rows())


@functools.lru_cache(maxsize=1)
def gpu_rows() -> tuple[Row, ...]:
    """Return the rows of ``gpus.csv`` with columns that a ``Gpu`` does not carry (vendor's)."""
    return read_table(DATA / "gpus.csv", _GPU_COLUMNS, key=("slug",))


def find(name: str) -> Gpu:
    """Return the GPU that a person, a cloud or the driver calls ``name``.

    Takes slugs (``a100-sxm4-80gb``), marketing names (``RTX 4090``), the names that NVML reports
    (``NVIDIA A100-SXM4-80GB``) and MIG slices of any of them (``a100-sxm4-80gb:3g.40gb``).

    Raises:
        UsageError: Nobody is called so (with the nearest names), or several are (with all).
    """
    card, _, profile = name.strip().partition(":")
    if not profile and " MIG " in card:
        card, _, profile = card.partition(" MIG ")
    gpu = _by_slug()[names.resolve(card, _known_names())]
    return _slice(gpu, profile.strip().lower()) if profile else gpu


def parse_list(text: str) -> tuple[Gpu, ...]:
    """Return the GPUs in ``a,b,all``, in that order, each once; ``all`` adds the whole catalogue.

    Raises:
        UsageError: The list is empty or a name in it is not one GPU.
    """
    found: dict[str, Gpu] = {}
    for name in filter(None, (part.strip() for part in text.split(","))):
        for gpu in all_gpus() if name.lower() == "all" else (find(name),):
            found.setdefault(gpu.slug, gpu)
    if not found:
        raise UsageError(
            "no GPU was named", remedy="give slugs as 'tfdyno gpus' prints them, or all"
        )
    return tuple(found.values())


@functools.lru_cache(maxsize=1)
def all_slices() -> tuple[Gpu, ...]:
    """Return every MIG slice of every GPU that can be partitioned."""
    return tuple(_slice_from(_by_slug()[row.text("gpu_slug")], row) for row in _mig_rows())


def slices_of(gpu: Gpu) -> tuple[Gpu, ...]:
    """Return the MIG slices of one GPU; empty when it cannot be partitioned."""
    return tuple(part for part in all_slices() if part.slug.startswith(f"{gpu.slug}:"))


@functools.lru_cache(maxsize=1)
def _by_slug() -> dict[str, Gpu]:
    return {gpu.slug: gpu for gpu in all_gpus()}


@functools.lru_cache(maxsize=1)
def _known_names() -> names.Names:
    return names.read({gpu.slug: gpu.name for gpu in all_gpus()})


@functools.lru_cache(maxsize=1)
def _mig_rows() -> tuple[Row, ...]:
    rows = read_table(DATA / "mig.csv", _MIG_COLUMNS, key=("gpu_slug", "profile"))
    for row in rows:
        if row.text("gpu_slug") not in _by_slug():
            raise row.fault(f"there is no GPU '{row.text('gpu_slug')}'")
    return rows


def _slice(gpu: Gpu, profile: str) -> Gpu:
    profiles = {row.text("profile"): row for row in _mig_rows() if row.text("gpu_slug") == gpu.slug}
    if not profiles:
        raise UsageError(f"{gpu.name} cannot be partitioned into MIG slices")
    if profile not in profiles:
        choices = ", ".join(profiles)
        raise UsageError(f"{gpu.name} has no MIG slice '{profile}'", remedy=f"it has {choices}")
    return _slice_from(gpu, profiles[profile])


def _slice_from(gpu: Gpu, row: Row) -> Gpu:
    share = row.number("memory_slices") / row.number("memory_slices_of_card")
    reported = row.whole("usable_mem_mib", default=0)
    rule = "rule: 96 % of the slice's share of what the whole card reports (mig.csv)"
    return replace(
        gpu,
        slug=f"{gpu.slug}:{row.text('profile')}",
        name=f"{gpu.name} MIG {row.text('profile')}",
        sm_count=row.whole("sm_count"),
        memory_bytes=int(gpu.memory_bytes * share),
        usable_memory_bytes=reported * MIB or int(gpu.usable_memory_bytes * share * 0.96),
        usable_memory_source=row.text("source") if reported else rule,
        memory_bytes_per_s=gpu.memory_bytes_per_s * share,
        l2_bytes=gpu.l2_bytes * share,
        tdp_w=gpu.tdp_w * row.number("sm_count") / gpu.sm_count,
        nvlink_bytes_per_s=0.0,
        mig_max_instances=row.whole("max_instances"),
        launch_price_usd=0.0,
        source=row.text("source"),
        notes="MIG slice: no NVLink and no peer-to-peer; power is its share of the card's by SMs.",
    )


def _all_rates() -> dict[tuple[str, str], SmRates]:
    rows = read_table(DATA / "sm_rates.csv", _RATE_COLUMNS, key=("compute_capability", "variant"),
                      ordered=False)  # fmt: skip
    return {(row.text("compute_capability"), row.text("variant")): _rates(row) for row in rows}


def _rates(row: Row) -> SmRates:
    return SmRates(
        compute_capability=row.text("compute_capability"),
        variant=row.text("variant"),
        cuda_cores=row.whole("cuda_cores"),
        tensor_cores=row.whole("tensor_cores"),
        max_threads=row.whole("max_threads"),
        max_blocks=row.whole("max_blocks"),
        shared_memory_bytes=row.whole("shared_memory_kib") * 1024,
        shared_memory_per_block_bytes=row.whole("shared_memory_per_block_kib") * 1024,
        registers=row.whole("registers"),
        source=row.text("source"),
        **{name: row.number(name, default=0.0) for name in _RATES},
    )


def _gpu(row: Row, rates: dict[tuple[str, str], SmRates]) -> Gpu:
    kind = (row.text("compute_capability"), row.text("rate_variant"))
    if kind not in rates:
        raise row.fault(f"sm_rates.csv has no rates for compute capability {kind[0]}, {kind[1]}")
    boost_hz = row.number("boost_mhz") * 1e6
    usable_memory_bytes, usable_memory_source = _usable_memory(row)
    return Gpu(
        slug=row.text("slug"),
        name=row.text("name"),
        vendor=row.text("vendor"),
        market=_market(row),
        architecture=row.text("architecture"),
        compute_capability=kind[0],
        rates=rates[kind],
        sm_count=row.whole("sm_count"),
        boost_hz=boost_hz,
        tensor_clock_hz=row.number("tensor_clock_mhz", default=boost_hz / 1e6) * 1e6,
        memory_bytes=row.whole("memory_gb") * GIB,
        usable_memory_bytes=usable_memory_bytes,
        usable_memory_source=usable_memory_source,
        memory_type=row.text("memory_type"),
        memory_bytes_per_s=row.number("memory_bandwidth_gbs") * 1e9,
        l2_bytes=row.number("l2_mb") * MIB,
        ecc=row.yes("ecc"),
        tdp_w=row.number("tdp_w"),
        pcie_generation=row.text("pcie_gen"),
        nvlink_bytes_per_s=row.number("nvlink_gbs_total_bidir") * 1e9,
        mig_max_instances=row.whole("mig_max_instances"),
        first_cuda=row.text("first_cuda"),
        release_year=row.whole("release_year"),
        launch_price_usd=row.number("launch_price_usd", default=0.0),
        form_factor=row.text("form_factor"),
        cooling=row.text("cooling"),
        power_connector=row.text("power_connector"),
        recommended_power_supply_w=row.number("recommended_power_supply_w", default=0.0),
        continuous_duty=row.text("continuous_duty"),
        source=row.text("source"),
        notes=row.text("notes"),
    )


def _market(row: Row) -> Market:
    text = row.text("market")
    if text not in get_args(Market):
        raise row.fault(f"market is '{text}', not one of {', '.join(get_args(Market))}")
    return cast("Market", text)


def _usable_memory(row: Row) -> tuple[int, str]:
    """Return total memory as the CUDA driver reports it: measured, else 94 or 98 % of the label.

    Source: device properties of 18 GPUs; T4 92 %, A10G 92 %, L40S 93 % with ECC on in GDDR6, and
    K80 93 %, P40 93 % in GDDR5, as nvidia-smi says; H100 99 %, V100 99 %, RTX 3090 99 %.
    """
    measured = row.whole("cuda_total_mem_mib", default=0)
    if measured:
        return measured * MIB, "total memory that CUDA reports on this card"
    memory_type = row.text("memory_type")
    inline_ecc = row.yes("ecc") and memory_type.startswith(("GDDR5", "GDDR6"))  # GDDR7 has its own
    percent = 94 if inline_ecc else 98
    kind = f"{memory_type} with ECC" if inline_ecc else memory_type
    label_bytes = row.whole("memory_gb") * GIB
    return label_bytes * percent // 100, f"rule: {percent} % of the label ({kind})"
