"""How cards reach each other: as NVML tells it, and as nvidia-smi printed it on real machines."""

# The names are NVIDIA's, and what the bindings return has no type.
# ruff: noqa: N802, ANN401

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.probe.fake_nvml import FakeNvml

from tfdyno.core.cluster.cluster_facts import CardPair
from tfdyno.probe.base.host import Host
from tfdyno.probe.cards import card_pairs
from tfdyno.probe.cards.card_pairs import node_cards, pairs_from_text, printed_pairs

if TYPE_CHECKING:
    import pytest

RECORDED = Path(__file__).parents[2] / "data" / "topology"


class Board(FakeNvml):
    """Four cards: 0 and 1 joined by two NVLinks, all on one host bridge; 3 has no peer access."""

    def nvmlDeviceGetPciInfo(self, handle: int) -> Any:
        return SimpleNamespace(busId=f"00000000:{handle}1:00.0".encode())

    def nvmlDeviceGetTopologyCommonAncestor(self, _one: int, _other: int) -> int:
        return 30

    def nvmlDeviceGetP2PStatus(self, one: int, other: int, _what: int) -> int:
        return 2 if 3 in (one, other) else 0

    def nvmlDeviceGetNvLinkState(self, handle: int, link: int) -> int:
        if handle > 1 or link > 2:
            raise ValueError("Not Supported")
        return int(link < 2)

    def nvmlDeviceGetNvLinkRemotePciInfo(self, handle: int, _link: int) -> Any:
        return SimpleNamespace(busId=f"00000000:{1 - handle}1:00.0".encode())

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, _handle: int, _link: int) -> int:
        return 0


def test_nvml_tells_paths_links_and_peer_access(tmp_path: Path) -> None:
    cards, pairs = node_cards(Board(4), None, str.lower, Host(root=tmp_path))
    assert [card.index for card in cards] == [0, 1, 2, 3]
    assert (cards[0].active_nvlinks, cards[0].inactive_nvlinks) == (2, 1)
    assert cards[2].active_nvlinks == 0
    assert pairs[0] == CardPair(first=0, second=1, path="NV2", peer="OK")
    assert CardPair(first=0, second=3, path="PHB", peer="GNS") in pairs


def test_only_cards_that_the_process_sees_are_told(tmp_path: Path) -> None:
    cards, pairs = node_cards(Board(4), "2,0", str.lower, Host(root=tmp_path))
    assert [card.index for card in cards] == [2, 0]
    assert [(pair.first, pair.second) for pair in pairs] == [(2, 0)]
    assert node_cards(None, None, str.lower, Host(root=tmp_path)) == ((), ())


def test_four_cards_behind_nvswitch_were_printed_so() -> None:
    pairs = pairs_from_text((RECORDED / "h100x4.txt").read_text())
    assert len(pairs) == 6  # network cards are no cards
    assert {pair.path for pair in pairs} == {"NV6"}


def test_two_geforce_cards_without_peer_access_were_printed_so() -> None:
    matrix = (RECORDED / "rtx5090x2.txt").read_text()
    peers = (RECORDED / "rtx5090x2-p2p.txt").read_text()
    assert pairs_from_text(matrix, peers) == (
        CardPair(first=0, second=1, path="PHB", peer="GNS"),
    )  # fmt: skip


def test_five_cards_on_two_sockets_were_printed_so() -> None:
    pairs = pairs_from_text((RECORDED / "mixedx5.txt").read_text())
    assert Counter(pair.path for pair in pairs) == {"SYS": 4, "NODE": 4, "PHB": 2}


def test_other_text_holds_no_pairs() -> None:
    assert pairs_from_text("nvidia-smi: command not found") == ()
    assert pairs_from_text("") == ()


def test_the_program_is_asked_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f"#!/bin/sh\ncase $2 in -m) cat {RECORDED}/rtx5090x2.txt;;"
        f" *) cat {RECORDED}/rtx5090x2-p2p.txt;; esac\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert [pair.peer for pair in printed_pairs()] == ["GNS"]
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert card_pairs.printed_pairs() == ()
