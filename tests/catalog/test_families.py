from dataclasses import replace

import pytest

from tfdyno.catalog.families import (
    all_families,
    driver_bytes_per_s,
    family,
    family_of,
    keeps_dear,
    served_by,
)
from tfdyno.catalog.gpus import all_gpus, all_slices, find
from tfdyno.core.base.errors import UsageError


@pytest.mark.parametrize(
    ("gpu", "slug"),
    [("p100-pcie-16gb", "6.x"), ("t4", "7.x"), ("rtx-4090", "8.x"), ("rtx-5090", "12.x")],
)
def test_a_card_belongs_to_the_family_of_its_generation(gpu: str, slug: str) -> None:
    assert family_of(find(gpu)).slug == slug


def test_every_nvidia_card_and_slice_has_a_family_of_its_own_generation() -> None:
    for gpu in (*all_gpus(), *all_slices()):
        if gpu.vendor == "NVIDIA":
            found = family_of(gpu)
            assert found in all_families()
            assert found.slug.split(".")[0] == gpu.compute_capability.split(".")[0]


def test_a_representative_belongs_to_its_own_family_and_names_a_source() -> None:
    for each in all_families():
        assert family_of(each.representative) == each
        assert each.source
        assert each.supported == (not each.reason)


def test_a_newer_generation_is_not_supported_but_no_error() -> None:
    newer = replace(find("rtx-5090"), compute_capability="14.0")
    found = family_of(newer)
    assert (found.slug, found.supported) == ("14.x", False)
    assert "14.0" in found.reason


def test_an_unknown_family_is_a_usage_error_that_lists_the_known() -> None:
    with pytest.raises(UsageError, match=r"8\.x"):
        family("80")


def test_volta_shares_the_program_of_ampere_for_convolutions_in_float16_only() -> None:
    assert served_by("7.x", policy="mixed_float16", attention=False) == "8.x"
    assert served_by("7.x", policy="mixed_bfloat16", attention=False) == "7.x"
    assert served_by("7.x", policy="mixed_float16", attention=True) == "7.x"
    assert served_by("9.x", policy="mixed_float16", attention=False) == "9.x"


def test_the_compiler_is_told_the_bandwidth_that_the_driver_tells() -> None:
    # 2 x 3201 MHz x 6144 bits / 8; the data sheet rounds to 4.8 TB/s
    assert driver_bytes_per_s(find("h200-sxm-141gb")) == pytest.approx(4.9167e12, rel=1e-4)
    assert driver_bytes_per_s(find("t4")) == find("t4").memory_bytes_per_s


def test_only_the_cards_that_were_seen_to_keep_what_is_dear_do() -> None:
    assert keeps_dear(find("h200-sxm-141gb"))
    assert not any(map(keeps_dear, map(find, ("h100-sxm5-80gb", "a100-sxm4-80gb", "b200"))))
