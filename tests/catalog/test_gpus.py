from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tfdyno.catalog import gpus, names, tables
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.model.time.peaks import peak_flops_per_s

XLA = Path(__file__).parents[1] / "data" / "xla_targets.csv"
OVER_3_PERCENT = {
    ("rtx-2080", "fp32"),  # vendor prints the Founders Edition clock
    ("rtx-2080-ti", "fp32"),
    ("rtx-pro-5000-blackwell", "fp32"),  # two sources of the boost clock
    ("rtx-pro-5000-72gb-blackwell", "fp32"),
    ("rtx-pro-6000-blackwell-server", "fp32"),  # lower server clock
    ("b200-sxm-180gb", "fp32"),
    ("b300-sxm-270gb", "fp32"),
    ("gb10", "fp32"),
}


def _xla_rows() -> list[dict[str, str]]:
    with XLA.open() as file:
        return list(csv.DictReader(file))


def test_the_catalogue_has_every_gpu_once_in_order() -> None:
    slugs = [gpu.slug for gpu in gpus.all_gpus()]
    assert len(slugs) >= 247  # a card is never dropped
    assert slugs == sorted(set(slugs))


@pytest.mark.parametrize("row", gpus.gpu_rows(), ids=lambda row: row.text("slug"))
def test_derived_peaks_agree_with_the_vendor_within_3_percent(row: tables.Row) -> None:
    gpu = gpus.find(row.text("slug"))
    for column, unit in (("fp32_vendor", "fp32"), ("fp16_dense_vendor", "fp16_tensor")):
        vendor = row.number(column, default=0.0) * 1e12
        if vendor and (gpu.slug, unit) not in OVER_3_PERCENT:
            derived = peak_flops_per_s(gpu, unit)  # type: ignore[arg-type]
            assert derived == pytest.approx(vendor, rel=0.03)


def test_enough_rows_have_a_vendor_figure_to_check_against() -> None:
    checked = [r for r in gpus.gpu_rows() if r.text("fp32_vendor") or r.text("fp16_dense_vendor")]
    assert len(checked) >= 60


@pytest.mark.parametrize("row", _xla_rows(), ids=lambda row: row["gpu_slug"])
def test_rows_agree_with_the_compilers_own_target_descriptions(row: dict[str, str]) -> None:
    gpu = gpus.find(row["gpu_slug"])
    assert gpu.sm_count == int(row["sm_count"])
    assert gpu.rates.cuda_cores == int(row["cores_per_sm"])
    tolerance = 0.055  # B200: vendors print 8 TB/s and 7.67 TB/s is what the clock gives
    assert gpu.memory_bytes_per_s == pytest.approx(
        float(row["bandwidth_bytes_per_s"]), rel=tolerance
    )
    assert gpu.l2_bytes == pytest.approx(float(row["l2_bytes"]), rel=0.05)
    if row["boost_ghz"]:
        assert gpu.boost_hz == pytest.approx(float(row["boost_ghz"]) * 1e9, rel=0.03)
    if row["tensor_ghz"]:
        assert gpu.tensor_clock_hz == pytest.approx(float(row["tensor_ghz"]) * 1e9, rel=0.03)
        assert gpu.rates.fp16_tensor_per_clock == int(row["tensor_fp16_ops_per_sm"])
    if row["shared_memory_per_sm_bytes"]:
        assert gpu.rates.shared_memory_bytes == int(row["shared_memory_per_sm_bytes"])


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("4090", "rtx-4090"),
        ("RTX 4090", "rtx-4090"),
        ("RTX4090", "rtx-4090"),
        ("rtx_4090", "rtx-4090"),
        ("4070 Ti Super", "rtx-4070-ti-super"),
        ("1080ti", "gtx-1080-ti"),
        ("A100 80GB SXM", "a100-sxm4-80gb"),
        ("Tesla T4", "t4"),
        ("H100 SXM", "h100-sxm5-80gb"),
        ("H200", "h200-sxm-141gb"),
        ("RTX 3080 Laptop", "rtx-3080-mobile"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 3060 Laptop GPU", "rtx-3060-mobile"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA A10G", "a10g"),
        ("Quadro RTX 6000", "quadro-rtx-6000"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-blackwell"),
        ("Tesla K80", "k80"),
        ("Tesla V100-SXM3-32GB", "v100-sxm3-32gb"),
        ("V100-SXM3-32GB-H", "v100-sxm3-32gb-h"),
        ("GeForce RTX 2080 Super with Max-Q Design", "rtx-2080-super-max-q"),
        ("RTX 2070 Max-Q", "rtx-2070-max-q"),
        ("RTX PRO 6000 Max-Q", "rtx-pro-6000-blackwell-max-q"),
        ("NVIDIA RTX A2000 Laptop GPU", "rtx-a2000-mobile"),
        ("NVIDIA RTX A2000", "rtx-a2000"),
        ("GeForce GTX TITAN X", "gtx-titan-x"),
        ("TITAN X", "titan-x-pascal"),
        ("B200-192GB", "b200-sxm-180gb"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "h100-sxm5-80gb:1g.10gb"),
    ],
)
def test_names_that_people_and_drivers_use_resolve(name: str, slug: str) -> None:
    assert gpus.find(name).slug == slug


def test_every_alias_slug_and_name_resolves_to_its_own_row() -> None:
    with (tables.DATA / "aliases.csv").open() as file:
        for row in csv.DictReader(file):
            assert gpus.find(row["alias"]).slug == row["gpu_slug"]
    for gpu in gpus.all_gpus():
        assert gpus.find(gpu.slug) is gpu
        assert gpus.find(gpu.name) is gpu


@pytest.mark.parametrize("name", ["h100", "A100", "v100", "RTX 6000", "a100 80gb", "orin"])
def test_an_ambiguous_name_lists_the_choices(name: str) -> None:
    with pytest.raises(UsageError, match=r"means \d+ GPUs; choose one of"):
        gpus.find(name)


@pytest.mark.parametrize(
    ("name", "hint"), [("rtx 4900", "rtx-4090"), ("a100-smx4-80gb", "a100-sxm4-80gb")]
)
def test_a_miss_suggests_the_nearest_name(name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=hint):
        gpus.find(name)


@pytest.mark.parametrize(
    "name", ["mi300x", "MI250", "rx 7900 xtx", "Radeon VII", "m3", "M2 Ultra", "gaudi3", "tpu-v5e"]
)
def test_a_card_of_another_maker_is_refused_by_its_kind(name: str) -> None:
    with pytest.raises(UsageError, match="is not an NVIDIA GPU: tfdyno knows NVIDIA GPUs only"):
        gpus.find(name)


@pytest.mark.parametrize("name", ["k40", "rtx 9090"])
def test_a_card_of_nvidia_that_is_not_known_is_not_called_foreign(name: str) -> None:
    with pytest.raises(UsageError, match="there is no GPU"):
        gpus.find(name)


@pytest.mark.parametrize("name", ["", " ", ":", "tesla", "nonsense", "a100-sxm4-80gb:9g.1gb"])
def test_what_names_nothing_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        gpus.find(name)
    assert "\n" not in str(caught.value)


def test_a_list_keeps_the_order_and_drops_repeats() -> None:
    found = [gpu.slug for gpu in gpus.parse_list("t4, RTX 4090,t4")]
    assert found == ["t4", "rtx-4090"]
    assert len(gpus.parse_list("t4,all")) == len(gpus.all_gpus())
    with pytest.raises(UsageError, match="no GPU was named"):
        gpus.parse_list(" , ")


def test_a_mig_slice_has_its_share_of_the_card() -> None:
    card, part = gpus.find("a100-sxm4-80gb"), gpus.find("a100-sxm4-80gb:3g.40gb")
    assert part.sm_count == 42  # 3 slices of 14 SMs
    assert part.memory_bytes == card.memory_bytes // 2  # 4 of 8 memory slices
    assert part.memory_bytes_per_s == pytest.approx(card.memory_bytes_per_s / 2)
    assert part.l2_bytes == pytest.approx(card.l2_bytes / 2)
    assert part.rates is card.rates
    assert part.nvlink_bytes_per_s == 0


def test_every_card_with_mig_has_slices_that_fit_into_it() -> None:
    for gpu in gpus.all_gpus():
        slices = gpus.slices_of(gpu)
        assert bool(slices) == bool(gpu.mig_max_instances), gpu.slug
        for part in slices:
            assert part.sm_count <= gpu.sm_count
            assert part.usable_memory_bytes <= gpu.usable_memory_bytes, part.slug


def test_usable_memory_is_measured_where_known_and_ruled_elsewhere() -> None:
    assert gpus.find("t4").usable_memory_bytes == 15102 * 1024**2
    assert gpus.find("a10").usable_memory_bytes == 24 * 1024**3 * 94 // 100  # GDDR6 with ECC
    assert gpus.find("rtx-3080").usable_memory_bytes == 10 * 1024**3 * 98 // 100
    # GDDR5 with ECC on keeps its check bits in the memory too (figures of nvidia-smi)
    for slug, reported_mib in (("k80", 11441), ("p40", 22912)):
        assert gpus.find(slug).usable_memory_bytes == pytest.approx(
            reported_mib * 1024**2, rel=0.01
        )
    assert "rule" in gpus.find("a10").usable_memory_source


def test_a_card_with_several_gpus_is_one_row_per_gpu() -> None:
    k80 = gpus.find("k80")  # NVIDIA prints 8.74 TFLOPS, 480 GB/s and 300 W for the card of two
    assert 2 * peak_flops_per_s(k80, "fp32") == pytest.approx(8.74e12, rel=0.001)
    assert 2 * k80.memory_bytes_per_s == pytest.approx(480e9, rel=0.005)
    assert 2 * k80.tdp_w == 300
    assert gpus.find("m60").tdp_w == 150
    assert gpus.find("m10").tdp_w == 56.25


def test_every_measured_card_has_a_row() -> None:
    file = Path(__file__).parents[2] / "truth" / "published" / "measurements.csv"
    with file.open(newline="") as opened:
        measured = {row["gpu"] for row in csv.DictReader(opened)}
    assert {name: gpus.find(name).slug for name in measured}.keys() == measured


def test_a_card_older_than_float16_units_has_no_rate_of_them() -> None:
    for slug in ("k80", "gtx-980"):
        assert gpus.find(slug).rates.fp16_vector_per_clock == 0
        assert gpus.find(slug).rates.fp16_tensor_per_clock == 0


def test_b300_and_grace_are_what_cuda_says() -> None:
    assert gpus.find("b300").compute_capability == "10.3"
    assert gpus.find("a10g").sm_count == 80


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (("rtx-4090,", "rtx-4080,"), "already"),
        ((",450,4,0,0,", ",45O,4,0,0,"), "tdp_w is '45O', not a number"),
        ((",450,4,0,0,", ",nan,4,0,0,"), "not a finite number"),
        ((",450,4,0,0,", ",-450,4,0,0,"), "not a finite number"),
        (("8.9,geforce", "8.9,fast"), "no rates for compute capability 8.9, fast"),
    ],
)
def test_a_corrupt_row_is_told_with_file_and_line(
    edit: tuple[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (tables.DATA / "gpus.csv").read_text().splitlines()
    line = next(i for i, row in enumerate(text) if row.startswith("rtx-4090,"))
    assert edit[0] in text[line]
    text[line] = text[line].replace(*edit, 1)
    for name in ("sm_rates.csv", "aliases.csv"):
        (tmp_path / name).write_text((tables.DATA / name).read_text())
    (tmp_path / "gpus.csv").write_text("\n".join(text))
    monkeypatch.setattr(gpus, "DATA", tmp_path)
    gpus.gpu_rows.cache_clear()
    try:
        with pytest.raises(ToolError, match=rf"gpus.csv, line {line + 1}: .*{message}"):
            gpus.all_gpus.__wrapped__()
    finally:
        gpus.gpu_rows.cache_clear()


def test_normalising_ignores_case_blanks_and_the_makers_name() -> None:
    assert names.normalise("NVIDIA GeForce RTX 4090") == names.normalise("rtx-4090") == "rtx4090"
