from __future__ import annotations

import pytest

from tfdyno.catalog import gpus, links
from tfdyno.core.errors import UsageError


def test_every_link_has_a_rate_and_a_latency() -> None:
    found = links.all_links()
    assert len(found) == 34
    for link in found:
        assert link.bus_bytes_per_s > 0
        assert 0 < link.latency_s < 1e-3


@pytest.mark.parametrize(
    ("gpu", "count", "link"),
    [
        ("h100-sxm5-80gb", 4, "nvlink4-nvswitch-h100-ring"),
        ("h100-sxm5-80gb", 8, "nvlink4-nvswitch-h100-nvls"),  # SHARP from 5 GPUs
        ("a100-sxm4-80gb", 8, "nvlink3-nvswitch-a100"),
        ("a100-pcie-80gb", 4, "pcie4-x16"),
        ("v100-sxm2-16gb", 8, "nvlink2-v100"),
        ("rtx-4090", 2, "pcie4-x16"),
        ("rtx-5090", 2, "pcie5-x16"),
        ("gtx-1080-ti", 4, "pcie3-x16"),
        ("h800-sxm5-80gb", 8, "nvlink4-nvswitch-h800"),
        ("gb200", 72, "nvlink5-nvl72"),
    ],
)
def test_a_card_gets_the_link_it_is_sold_with(gpu: str, count: int, link: str) -> None:
    assert links.default_link(gpus.find(gpu), count).slug == link


def test_every_gpu_has_a_default_link() -> None:
    for gpu in gpus.all_gpus():
        assert links.default_link(gpu, 8).bus_bytes_per_s > 0


def test_mig_slices_do_not_train_together() -> None:
    part = gpus.find("a100-sxm4-80gb:1g.10gb")
    links.default_link(part, 1)
    with pytest.raises(UsageError, match="cannot train with other slices"):
        links.default_link(part, 2)


def test_the_measured_rate_is_the_one_in_the_source() -> None:
    link = links.find_link("nvlink3-bridge-a100-pcie")
    assert link.bus_bytes_per_s == 208e9  # nccl-tests issue 178


def test_an_unknown_link_suggests_others() -> None:
    with pytest.raises(UsageError, match="pcie4-x16"):
        links.find_link("pcie4x16")
