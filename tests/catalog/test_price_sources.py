from __future__ import annotations

import itertools
import re
from fnmatch import fnmatchcase

import pytest

from tfdyno.catalog import gpus, offers
from tfdyno.catalog.price_sources import (
    ANY_PROVIDER,
    NO_CARD,
    card_names,
    card_of,
    price_sources,
    sources_in_use,
)
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import GIB


def _slug(provider: str, name: str, instance: str = "", memory_gb: float = 0.0) -> str:
    found = card_of(provider, name, instance, memory_gb)
    return found.gpu_slug if found else ""


@pytest.mark.parametrize(
    ("provider", "name", "instance", "memory_gb", "slug"),
    [
        ("aws", "A100", "p4d.24xlarge", 40, "a100-sxm4-40gb"),
        ("aws", "A100-80GB", "p4de.24xlarge", 80, "a100-sxm4-80gb"),
        ("azure", "H100", "Standard_NC40ads_H100_v5", 94, "h100-nvl-94gb"),
        ("gcp", "A100", "a2-ultragpu-8g", 80, "a100-sxm4-80gb"),
        ("lambda", "H100", "gpu_1x_h100_pcie", 80, "h100-pcie-80gb"),
        ("lambda", "H100", "gpu_8x_h100_sxm5", 80, "h100-sxm5-80gb"),
        ("lambda", "A100", "gpu_1x_a100", 40, "a100-pcie-40gb"),
        ("lambda", "A100", "gpu_8x_a100", 40, "a100-sxm4-40gb"),
        ("lambda", "RTX6000", "gpu_1x_rtx6000", 24, "quadro-rtx-6000"),
        ("runpod", "H100", "NVIDIA H100 80GB HBM3", 80, "h100-sxm5-80gb"),
        ("vast", "A100_PCIE", "1x-A100_PCIE-32-65536", 40, "a100-pcie-40gb"),
        ("vast", "A100_PCIE", "1x-A100_PCIE-32-65536", 80, "a100-pcie-80gb"),
        ("vast", "RTX_4060_Ti", "1x-RTX_4060_Ti-32-65536", 16380 / 1024, "rtx-4060-ti-16gb"),
        ("anybody", "L40S", "", 0, "l40s"),
        ("anybody", "RTX3060", "", 12, "rtx-3060"),
        ("anybody", "tpu-v6e-8", "", 0, NO_CARD),
        # Never guessed: which form, which memory, or which card at all is not told.
        ("anybody", "H100", "", 80, ""),
        ("anybody", "A100", "", 0, ""),
        ("anybody", "RTX3060", "", 0, ""),
        ("seeweb", "H200", "ECS1GPU10", 141, ""),
        ("vast", "RTX_4090", "1x-RTX_4090-32-65536", 48, ""),
        ("aws", "L5", "g7.xlarge", 24, ""),
    ],
)
def test_a_name_means_one_card_or_none(
    provider: str, name: str, instance: str, memory_gb: float, slug: str
) -> None:
    assert _slug(provider, name, instance, memory_gb) == slug


def test_every_row_of_the_table_names_a_card_with_the_memory_it_asks_for() -> None:
    cards = {gpu.slug: gpu for gpu in gpus.all_gpus()}
    for one in card_names():
        if one.gpu_slug == NO_CARD:
            continue
        gpu = cards[one.gpu_slug]
        if one.memory_gb:
            assert gpu.memory_bytes / GIB == pytest.approx(one.memory_gb, rel=0.07), one


def test_no_two_rows_of_one_exactness_disagree_on_a_plain_name() -> None:
    plain = [one for one in card_names() if "*" not in one.name + one.instance]
    for one, other in itertools.combinations(plain, 2):
        same = (one.provider, one.name, one.instance) == (
            other.provider,
            other.name,
            other.instance,
        )
        assert not (same and one.memory_gb == other.memory_gb), (one, other)


def test_shipped_prices_are_mapped_as_the_table_maps_them() -> None:
    known = {one.provider for one in card_names()} - {ANY_PROVIDER}
    checked = 0
    for row in offers.shipped_listings():
        names = {
            one.name
            for one in card_names()
            if one.provider == row.provider
            and one.instance
            and fnmatchcase(row.instance, one.instance)
        }
        slugs = {_slug(row.provider, name, row.instance) for name in names} - {""}
        if row.provider in known and slugs:
            assert row.gpu_slug in slugs, row
            checked += 1
    assert checked >= 50


def test_sources_say_what_is_wrong_with_them_and_their_expressions_compile() -> None:
    names = [one.name for one in price_sources()]
    assert names == ["gpuhunt", "lium", "vast", "skypilot"]
    for source in price_sources():
        assert source.url.startswith("https://")
        assert source.licence
        assert source.known_wrong
        for one in source.lists.values():
            re.compile(one.zone_suffix)
            re.compile(one.name_in_instance)
            assert all(re.fullmatch(r"\d+ \S+", gpus) for gpus in one.hosts.values())


def test_a_variable_moves_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFDYNO_PRICES_SKYPILOT", "http://127.0.0.1:1/lists/")
    assert {one.name: one.url for one in sources_in_use()}["skypilot"] == "http://127.0.0.1:1/lists"
    assert [one.name for one in sources_in_use(("gpuhunt",))] == ["gpuhunt"]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://here", "here"])
def test_only_the_web_is_asked(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFDYNO_PRICES_GPUHUNT", url)
    with pytest.raises(UsageError, match="give an address of http or https"):
        sources_in_use()
