from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.steps import Neutral

from tfdyno.catalog.gpus import find
from tfdyno.catalog.links import find_link
from tfdyno.catalog.time_model import time_model
from tfdyno.core.hardware import Gpu, Link
from tfdyno.model import scaling
from tfdyno.model.scaling import communication_s, has_peer_copies, ring_all_reduce_s

if TYPE_CHECKING:
    from tfdyno.core.time_model import Constants

NVLINK = Link(slug="x", kind="NVLink", scope="", bus_bytes_per_s=1e9, latency_s=1e-3, source="")
A100 = find("a100-sxm4-40gb")


def exchange(
    constants: Constants, *, gradients: float = 0.1e9, replicas: int = 2, gpu: Gpu = A100
) -> tuple[float, float]:
    return communication_s(
        gradient_bytes=gradients,
        replicas=replicas,
        gpu=gpu,
        link=NVLINK,
        device_s=0.09,
        execution="xla",
        constants=constants,
    )


@pytest.mark.parametrize(
    ("ranks", "expected_s"),
    [(1, 0.0), (2, 0.08 + 0.002), (4, 0.12 + 0.006), (8, 0.14 + 0.014)],  # 2 (n-1)/n x 0.08 s
)
def test_time_of_a_ring_matches_the_hand_calculation(ranks: int, expected_s: float) -> None:
    found = ring_all_reduce_s(0.08e9, ranks, bus_bytes_per_s=1e9, latency_s=1e-3)
    assert found == pytest.approx(expected_s)


def test_a_ring_refuses_negative_gradients() -> None:
    with pytest.raises(ValueError, match="payload_bytes >= 0, got 2, -1"):
        ring_all_reduce_s(-1, 2, bus_bytes_per_s=1e9, latency_s=0.0)


def test_the_backward_pass_hides_its_share() -> None:
    constants = Neutral(allreduce_overlap=0.5, allreduce_bucket_bytes=10e6)
    total, exposed = exchange(constants)  # ten buckets of 10 + 2 ms
    assert total == pytest.approx(0.12)
    assert exposed == pytest.approx(0.12 - 0.5 * 2 / 3 * 0.09)


def test_the_last_bucket_is_never_hidden() -> None:
    constants = Neutral(allreduce_overlap=1.0, allreduce_bucket_bytes=10e6)
    assert exchange(constants, gradients=20e6)[1] == pytest.approx(0.012)


def test_one_card_exchanges_nothing() -> None:
    assert exchange(Neutral(), replicas=1) == (0.0, 0.0)


def test_geforce_cards_since_ampere_copy_through_the_host() -> None:
    pcie = find_link("pcie4-x16")
    assert not has_peer_copies(find("rtx-3090"), pcie)
    assert has_peer_copies(find("rtx-a6000"), pcie)
    assert has_peer_copies(find("gtx-1080-ti"), pcie)


@given(st.integers(2, 64), st.floats(1, 1e10))
def test_the_numbers_of_an_exchange_work_out_to_its_seconds(
    replicas: int, gradients: float
) -> None:
    card, link = find("rtx-3090"), find_link("pcie4-x16")
    found = scaling.exchange(
        gradient_bytes=gradients,
        replicas=replicas,
        gpu=card,
        link=link,
        device_s=0.09,
        execution="xla",
        constants=time_model(),
    )
    rate = found.bus_bytes_per_s * prod(share.factor_ratio for share in found.shares)
    hops = 2 * (replicas - 1)
    assert found.sent_s == pytest.approx(hops / replicas * gradients / rate)
    assert found.hops_s == pytest.approx(hops * found.latency_s * gradients / found.bucket_bytes)
    assert found.whole_s == pytest.approx(found.sent_s + found.hops_s + found.waiting_s)
    assert {share.constant for share in found.shares} | set(found.constants) <= set(
        time_model().parameters
    )
    assert {"allreduce_pcie", "allreduce_no_peer", "allreduce_crowding"} == {
        share.constant for share in found.shares
    }


@given(st.integers(1, 512), st.floats(1, 1e11))
def test_more_replicas_never_exchange_faster(replicas: int, gradients: float) -> None:
    model = time_model()
    now, wider = (
        exchange(model, gradients=gradients, replicas=n) for n in (replicas, replicas + 1)
    )
    assert wider[0] >= now[0]
    assert now[0] >= now[1] * (1 - 1e-12) >= 0.0  # rounding where nothing is hidden
