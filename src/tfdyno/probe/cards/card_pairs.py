"""How the cards of a machine reach each other: by NVML, or as ``nvidia-smi topo`` prints it."""

from __future__ import annotations

import contextlib
import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

from tfdyno.core.cluster.cluster_facts import CardPair, NodeCard
from tfdyno.probe.base.numa import numa_of
from tfdyno.probe.cards.cards import ask, card, handles, reading, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Library, Value
    from tfdyno.probe.base.host import Host

PATHS = {0: "LOC", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
"""``nvmlGpuTopologyLevel_t`` of nvml.h, under the names of nvidia-smi."""
PEERS = {0: "OK", 1: "CNS", 2: "GNS", 3: "TNS", 4: "DR", 5: "NS", 6: "U"}
"""``nvmlGpuP2PStatus_t`` of nvml.h, likewise."""
READ, WRITE = 0, 1
MOST_LINKS = 36
"""``NVML_NVLINK_MAX_LINKS``."""
SMI_S = 20.0
_CARD = re.compile(r"GPU(\d+)")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def node_cards(
    library: Library,
    visible: str | None,
    slug_of: Callable[[str], str],
    host: Host,
) -> tuple[tuple[NodeCard, ...], tuple[CardPair, ...]]:
    """Return every card that a process may use, and every two of them.

    Args:
        library: An opened NVML; None: no cards.
        visible: ``CUDA_VISIBLE_DEVICES`` of the process; None where it is not set.
        slug_of: Gives the row of the catalogue for a card's name, or nothing.
        host: Where the kernel tells of NUMA nodes.
    """
    if library is None:
        return (), ()
    found = [(index, handle) for index, handle in handles(library, visible)]
    cards = tuple(_card(library, index, handle, slug_of, host) for index, handle in found)
    pairs = tuple(_pair(library, one, other) for one, other in combinations(found, 2))
    return cards, pairs


def pairs_from_text(matrix: str, peers: str = "") -> tuple[CardPair, ...]:
    """Read the pairs of ``nvidia-smi topo -m``, and beside them of ``nvidia-smi topo -p2p r``.

    Lines and columns of network cards are left out.

    Args:
        matrix: Output of the first command.
        peers: Of the second; empty: not known.
    """
    paths, reached = _matrix(matrix), _matrix(peers)
    return tuple(
        CardPair(first=one, second=other, path=path, peer=reached.get((one, other), ""))
        for (one, other), path in sorted(paths.items())
        if one < other
    )


def printed_pairs(limit_s: float = SMI_S) -> tuple[CardPair, ...]:
    """Return the pairs as ``nvidia-smi`` prints them, where NVML does not tell; none without it.

    Args:
        limit_s: For each of its two answers.
    """
    import shutil
    import subprocess

    program, printed = shutil.which("nvidia-smi"), []
    for words in (("topo", "-m"), ("topo", "-p2p", "r")):
        done = None
        if program:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                done = subprocess.run(
                    [program, *words], capture_output=True, text=True, check=False, timeout=limit_s
                )
        printed.append(done.stdout if done and not done.returncode else "")
    return pairs_from_text(*printed)


def _card(
    library: Library,
    index: int,
    handle: Library,
    slug_of: Callable[[str], str],
    host: Host,
) -> NodeCard:
    fixed, now = card(library, handle, slug_of), reading(library, handle)
    bus = text(getattr(ask(library, "nvmlDeviceGetPciInfo", handle), "busId", ""))
    capability = ask(library, "nvmlDeviceGetCudaComputeCapability", handle)
    power_mw = ask(library, "nvmlDeviceGetPowerManagementDefaultLimit", handle) or 0
    states = [ask(library, "nvmlDeviceGetNvLinkState", handle, one) for one in range(MOST_LINKS)]
    return NodeCard(
        index=index,
        name=fixed.name,
        slug=fixed.slug,
        compute_capability=".".join(map(str, capability)) if capability else "",
        bus=bus,
        memory_bytes=fixed.memory_bytes,
        numa_node=numa_of(host, bus) if bus else -1,
        ecc=fixed.ecc,
        mig=fixed.mig,
        uncorrected_errors=now.uncorrected_errors,
        power_limit_w=fixed.power_limit_w,
        power_default_w=power_mw / 1000.0,
        throttle=now.throttle or (),
        active_nvlinks=sum(state == 1 for state in states),
        inactive_nvlinks=sum(state == 0 for state in states),
    )


def _pair(library: Library, one: tuple[int, Any], other: tuple[int, Any]) -> CardPair:
    level = ask(library, "nvmlDeviceGetTopologyCommonAncestor", one[1], other[1])
    path = PATHS.get(level, "") if level is not None else ""
    if links := _links_between(library, one[1], other[1]):
        path = f"NV{links}"
    status = [ask(library, "nvmlDeviceGetP2PStatus", one[1], other[1], x) for x in (READ, WRITE)]
    known = [state for state in status if state is not None]
    peer = PEERS.get(max(known), "U") if known else ""
    return CardPair(first=one[0], second=other[0], path=path, peer=peer)


def _links_between(library: Library, one: Value, other: Value) -> int:
    """Count NVLinks that join two cards: those to the other itself, or to a switch of both."""
    wanted = text(getattr(ask(library, "nvmlDeviceGetPciInfo", other), "busId", "")).lower()
    direct = switched = 0
    for link in range(MOST_LINKS):
        if ask(library, "nvmlDeviceGetNvLinkState", one, link) != 1:
            continue
        far = ask(library, "nvmlDeviceGetNvLinkRemotePciInfo", one, link)
        bus = text(getattr(far, "busId", "")).lower()
        direct += bool(bus) and bus == wanted
        kind = ask(library, "nvmlDeviceGetNvLinkRemoteDeviceType", one, link)
        switched += kind == getattr(library, "NVML_NVLINK_DEVICE_TYPE_SWITCH", 2)
    return direct or switched


def _matrix(printed: str) -> dict[tuple[int, int], str]:
    """Read cells between cards; the header says which column is which."""
    columns: list[str] = []
    found = {}
    for line in _ANSI.sub("", printed).splitlines():
        words = line.split()
        if words and all(map(_CARD.fullmatch, words[:2])) and not columns:
            columns = words
            continue
        row = _CARD.fullmatch(words[0]) if words else None
        if not row or not columns:
            continue
        for name, cell in zip(columns, words[1:], strict=False):
            column = _CARD.fullmatch(name)
            if column and cell != "X":
                found[int(row[1]), int(column[1])] = cell
    return found
