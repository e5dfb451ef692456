from __future__ import annotations

import pytest

from tfdyno.catalog import gpus, links
from tfdyno.core.base.errors import UsageError


def test_every_link_has_a_rate_and_a_latency() -> None:
    found = links.all_links()
    assert len(found) == 42
    for link in found:
        assert link.bus_bytes_per_s > 0
        assert 0 < link.latency_s < 1e-3


@pytest.mark.parametrize(
    ("gpu", "count", "link"),
    [
        ("h100-sxm5-80gb", 2, "nvlink4-nvswitch-h100-2"),
        ("h100-sxm5-80gb", 4, "nvlink4-nvswitch-h100-ring"),
        ("h100-sxm5-80gb", 8, "nvlink4-nvswitch-h100-nvls"),  # SHARP from 5 GPUs
        ("a100-sxm4-80gb", 8, "nvlink3-nvswitch-a100"),
        ("a100-pcie-80gb", 4, "pcie4-x16"),
        ("v100-sxm2-16gb", 8, "nvlink2-v100"),
        ("rtx-4090", 2, "pcie4-x16"),
        ("rtx-5090", 2, "pcie5-x16"),
        ("gtx-1080-ti", 4, "pcie3-x16"),
        ("h800-sxm5-80gb", 8, "nvlink4-nvswitch-h800"),
        ("gb200", 2, "nvlink5-nvswitch-b200-2"),
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


@pytest.mark.parametrize(
    ("gpu", "link", "reason"),
    [
        ("t4", "nvlink4-nvswitch-h100-ring", "Tesla T4 has no NVLink"),
        ("rtx-4090", "nvlink3-bridge-ga102", "has no NVLink"),
        ("a100-sxm4-80gb", "nvlink4-nvswitch-h100-ring", "has NVLink 3, not 4"),
        ("h100-sxm5-80gb", "nvlink4-nvswitch-h100-ring", ""),
        ("rtx-3090", "nvlink3-bridge-ga102", ""),
        ("t4", "pcie4-x16", ""),
        ("t4", "ib-hdr-200", ""),
    ],
)
def test_nvlink_joins_cards_of_its_own_generation(gpu: str, link: str, reason: str) -> None:
    found = links.cannot_join(gpus.find(gpu), links.find_link(link))
    assert (reason in found) if reason else not found


def test_every_architecture_with_nvlink_has_its_generation() -> None:
    for gpu in gpus.all_gpus():
        if gpu.nvlink_bytes_per_s:
            other = links.find_link(
                "nvlink1-p100" if gpu.architecture != "Pascal" else "nvlink2-v100"
            )
            assert "has NVLink" in links.cannot_join(gpu, other)


def test_only_networks_go_beyond_a_machine() -> None:
    assert links.most_in_one_machine(gpus.find("t4")) == 8
    assert links.most_in_one_machine(gpus.find("gb200")) == 72
    assert links.is_network(links.find_link("ib-hdr-200"))
    assert not links.is_network(links.find_link("nvlink2-v100"))


def test_the_usual_node_is_not_the_largest_machine() -> None:
    a100 = gpus.find("a100-sxm4-80gb")
    assert (links.most_in_one_machine(a100), links.usual_in_a_node(a100)) == (16, 8)
    assert links.usual_in_a_node(gpus.find("h100-sxm5-80gb")) == 8
    assert links.usual_in_a_node(gpus.find("gb200")) == 72


@pytest.mark.parametrize(
    ("gpu", "network"),
    [
        ("gh200-96gb", "ib-ndr-400"),
        ("gh200-144gb", "ib-ndr-400"),
        ("gb10", "eth-100g-roce"),
        ("rtx-2060-mobile", "eth-10g"),
        ("jetson-nano", "eth-10g"),
    ],
)
def test_cards_alone_in_their_machine_meet_over_a_network(gpu: str, network: str) -> None:
    found = gpus.find(gpu)
    own = links.own_network(found)
    assert own
    assert (own.slug, links.most_in_one_machine(found), links.usual_in_a_node(found)) == (
        network, 1, 1,
    )  # fmt: skip
    assert links.own_network(gpus.find("t4")) is None


def test_every_laptop_and_every_embedded_board_has_one_card() -> None:
    markets = {gpu.market for gpu in gpus.all_gpus()}
    assert set(links.ALONE) <= markets
    for gpu in gpus.all_gpus():
        if gpu.market in links.ALONE:
            assert links.most_in_one_machine(gpu) == 1


def test_the_beginning_of_a_link_suggests_all_that_begin_so() -> None:
    with pytest.raises(UsageError, match="choose one of nvlink5-nvl72, nvlink5-nvswitch-b200-2"):
        links.find_link("nvlink5")


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("InfiniBand", "ib-hdr-200"),
        ("ethernet", "eth-25g"),
        ("nvswitch", "nvlink3-nvswitch-a100"),
        ("bridge", "nvlink3-bridge-ga102"),
        ("pcie4", "pcie4-x16-host"),
        ("efa", "efa-v2-p5"),
    ],
)
def test_the_kind_of_a_link_suggests_its_links(name: str, slug: str) -> None:
    with pytest.raises(UsageError, match=slug):
        links.find_link(name)


def test_an_unknown_link_suggests_others() -> None:
    with pytest.raises(UsageError, match="pcie4-x16"):
        links.find_link("pcie4x16")
