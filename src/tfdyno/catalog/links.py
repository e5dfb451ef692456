"""Interconnects between GPUs, and which one a card has by itself."""

from __future__ import annotations

import difflib
import functools
import re

from tfdyno.catalog.tables import DATA, Row, read_table
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.hardware import Gpu, Link

MOST_ON_PCIE = 8
"""Double-wide cards that a usual server takes; machines with 10 or 16 are rare."""
MOST_IN_A_NODE = 1024
ALONE = ("laptop", "edge")
"""Markets whose cards are the only one of their machine."""
ALONE_NETWORK = "eth-10g"
"""Between such machines, where none is named: the slowest that the catalogue has, since few have a
faster port."""
_WORDS = re.compile(r"[\w-]+")
_GENERATION = re.compile(r"nvlink([0-9])-")
_COLUMNS = [
    "slug",
    "kind",
    "scope",
    "theoretical_gbs_unidir",
    "theoretical_gbs_bidir",
    "per",
    "measured_allreduce_busbw_gbs",
    "measured_config",
    "small_message_latency_us",
    "latency_config",
    "model_hop_latency_us",
    "hop_latency_source",
    "use_in_model_busbw_gbs",
    "date",
    "notes",
    "source",
]


@functools.lru_cache(maxsize=1)
def all_links() -> tuple[Link, ...]:
    """Return all interconnects, sorted by slug; raises ``ToolError`` when the table is corrupt."""
    return tuple(_link(row) for row in read_table(DATA / "links.csv", _COLUMNS, key=("slug",)))


def find_link(slug: str, *, as_network: bool = False) -> Link:
    """Return the interconnect with this slug.

    Args:
        slug: As the catalogue has it.
        as_network: Whether what joins machines is asked for: where there is no such slug, only
            networks are offered. One that is found may still join cards.

    Raises:
        UsageError: There is none, with the nearest slugs.
    """
    by_slug = {link.slug: link for link in all_links()}
    name = slug.strip().lower()
    if name not in by_slug:
        by_slug = {key: one for key, one in by_slug.items() if not as_network or is_network(one)}
        begun = [
            one.slug
            for one in by_slug.values()
            if name and (one.slug.startswith(name) or name in _WORDS.findall(one.kind.lower()))
        ]
        begun = begun or [one for one in by_slug if name and name in one]
        near = begun or difflib.get_close_matches(name, by_slug, n=3, cutoff=0.4) or list(by_slug)
        what = f"there is no {'network' if as_network else 'link'} '{slug}'"
        raise UsageError(what, remedy=f"choose one of {', '.join(near)}")
    return by_slug[name]


def default_link(gpu: Gpu, count: int) -> Link:
    """Return what joins ``count`` GPUs of this kind in the machine they are sold in.

    SXM boards have NVLink as ``default_links.csv`` says; every other card meets the next one over
    PCIe of its generation (bridges join two cards only and are extra).

    Raises:
        UsageError: The GPU is a MIG slice: slices cannot exchange data with each other.
    """
    if ":" in gpu.slug and count > 1:
        raise UsageError(
            f"{gpu.name} cannot train with other slices",
            why="MIG slices have no peer-to-peer and a process sees one of them",
            remedy="use whole GPUs",
        )
    for limit, link in _defaults().get(gpu.slug, ()):
        if count <= limit:
            return find_link(link)
    generation = gpu.pcie_generation if gpu.pcie_generation in {"3", "4", "5"} else "3"
    return find_link(f"pcie{generation}-x16")


def cannot_join(gpu: Gpu, link: Link) -> str:
    """Return why cards of this kind cannot be joined by a link; empty where they can.

    NVLink is on the board or it is not, and every architecture has its own generation of it; PCIe
    and networks join any two cards.
    """
    wanted = _GENERATION.match(link.slug)
    if not link.kind.startswith("NVLink"):
        return ""
    if not gpu.nvlink_bytes_per_s:
        return f"{gpu.name} has no NVLink"
    own = _nvlink_generations().get(gpu.architecture, "")
    if wanted and own and wanted[1] != own:
        return f"{gpu.name} has NVLink {own}, not {wanted[1]}"
    return ""


def most_in_one_machine(gpu: Gpu) -> int:
    """Return how many GPUs of this kind the largest machine joins without a network.

    A laptop and an embedded board have one, and so has a machine that is sold with a network.
    """
    if own_network(gpu):
        return 1
    return max((limit for limit, _ in _defaults().get(gpu.slug, ())), default=MOST_ON_PCIE)


def usual_in_a_node(gpu: Gpu) -> int:
    """Return how many GPUs of this kind a node of a cluster usually has.

    The most that one machine joins, unless ``node_sizes.csv`` knows that such machines are rare.
    """
    return min(most_in_one_machine(gpu), _node_sizes().get(gpu.slug, MOST_IN_A_NODE))


def own_network(gpu: Gpu) -> Link | None:
    """Return the network that joins cards of this kind, each in a machine of its own."""
    if gpu.market in ALONE:
        return find_link(ALONE_NETWORK)
    links = (find_link(slug) for _, slug in _defaults().get(gpu.slug, ()))
    return next(filter(is_network, links), None)


def ports_per_gpu(link: Link) -> float:
    """Return the network ports of each GPU on boards whose GPUs such a link joins; 0: not known.

    Raises:
        ToolError: The table is corrupt.
    """
    return _ports().get(link.kind, 0.0)


def is_network(link: Link) -> bool:
    """Return whether the link joins machines rather than the cards in one."""
    return not link.kind.startswith(("NVLink", "PCIe"))


@functools.lru_cache(maxsize=1)
def _nvlink_generations() -> dict[str, str]:
    rows = read_table(
        DATA / "nvlink_generations.csv",
        ("architecture", "generation", "source"),
        key=("architecture",),
    )
    return {row.text("architecture"): row.text("generation") for row in rows}


@functools.lru_cache(maxsize=1)
def _ports() -> dict[str, float]:
    rows = read_table(
        DATA / "network_ports.csv", ("link_kind", "ports_per_gpu", "source"), key=("link_kind",)
    )
    return {row.text("link_kind"): row.number("ports_per_gpu") for row in rows}


@functools.lru_cache(maxsize=1)
def _node_sizes() -> dict[str, int]:
    rows = read_table(
        DATA / "node_sizes.csv", ("gpu_slug", "gpus_per_node", "source"), key=("gpu_slug",)
    )
    return {row.text("gpu_slug"): row.whole("gpus_per_node") for row in rows}


@functools.lru_cache(maxsize=1)
def _defaults() -> dict[str, tuple[tuple[int, str], ...]]:
    rows = read_table(
        DATA / "default_links.csv",
        ("gpu_slug", "up_to_gpus", "link_slug", "source"),
        key=("gpu_slug", "up_to_gpus"),
    )
    found: dict[str, tuple[tuple[int, str], ...]] = {}
    for row in rows:
        entry = (row.whole("up_to_gpus"), row.text("link_slug"))
        found[row.text("gpu_slug")] = (*found.get(row.text("gpu_slug"), ()), entry)
    return found


def _link(row: Row) -> Link:
    return Link(
        slug=row.text("slug"),
        kind=row.text("kind"),
        scope=row.text("scope"),
        bus_bytes_per_s=row.number("use_in_model_busbw_gbs") * 1e9,
        latency_s=row.number("model_hop_latency_us") * 1e-6,
        source=row.text("source"),
        notes=row.text("notes"),
    )
