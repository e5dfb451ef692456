"""Cards that are not alike, not well, or not joined as they could be."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tfdyno.rules.cluster.draft import differing, draft, grouped, joined, named
from tfdyno.words.base.amounts import capital

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.cluster.cluster_facts import CardPair, ClusterFacts, NodeFacts
    from tfdyno.core.doctor.finding import Finding

WHY_NO_PEER = {
    "CNS": "the chipset does not support it",
    "GNS": "these cards do not support it, as GeForce cards from Turing on over PCIe",
    "TNS": "they hang on places of the board that have no way to each other",
    "DR": "it is switched off in the driver",
    "NS": "it is not supported",
    "U": "the driver does not say why",
}
"""Words for what ``nvidia-smi topo -p2p`` prints, after its own legend; of GeForce cards, see
``model.scaling.PEERLESS_FROM_CAPABILITY``."""


def unlike_cards(facts: ClusterFacts) -> Iterator[Finding]:
    """Find nodes with other cards, or with another number of them."""
    found = grouped((_cards(node), node.name) for node in facts.nodes)
    if len(found) > 1:
        is_error = "no card" in found or len({len(node.cards) for node in facts.nodes}) > 1
        yield draft(
            "cards_differ",
            "error" if is_error else "warning",
            "The nodes do not have the same cards.",
            why="Every step waits for the slowest, and a node without cards cannot take part in "
            "NCCL's exchange.",
            seen=differing(found),
            fix="Ask the engine for one type and number: --gpus-per-node, --with gpu_type=NAME.",
        )


def missing_cards(facts: ClusterFacts) -> Iterator[Finding]:
    """Find nodes that have fewer cards than the plan asks for."""
    few = [node for node in facts.nodes if len(node.cards) < facts.wanted_cards]
    if few:
        yield draft(
            "cards_missing",
            "error",
            f"The plan has {facts.wanted_cards} GPUs on each node, and {named(few)} fewer.",
            why="TensorFlow would train on the CPU there, or the nodes would not fit together.",
            seen=[(node.name, f"a process sees {len(node.cards)}") for node in few],
            fix="Ask the engine for as many, or run tfdyno doctor on that node.",
        )


def sick_cards(facts: ClusterFacts) -> Iterator[Finding]:
    """Find cards with broken memory, held clocks, lowered power or links that are down."""
    for node in facts.nodes:
        for card in node.cards:
            who = f"card {card.index} of {node.name}"
            if card.uncorrected_errors:
                yield draft(
                    "memory_errors",
                    "error",
                    f"The memory of {who} has {card.uncorrected_errors} errors that ECC could not "
                    "correct.",
                    why="It gives wrong values, or ends the training at any step.",
                    seen=[(node.name, f"{card.name} at {card.bus}")],
                    fix="Take the node out, and reset or replace the card.",
                    command="nvidia-smi -q -d ECC,PAGE_RETIREMENT",
                )
            if card.throttle:
                yield draft(
                    "throttled",
                    "warning",
                    f"The clock of {who} is held down: {', '.join(card.throttle)}.",
                    why="Every step waits for the slowest card.",
                    seen=[(node.name, f"{card.name}: {', '.join(card.throttle)}")],
                    fix="Look after its cooling and its power.",
                    command="nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
                )
            if card.active_nvlinks and card.inactive_nvlinks:
                yield draft(
                    "nvlink_down",
                    "warning",
                    f"{card.inactive_nvlinks} NVLinks of {who} are down.",
                    why="What goes over the others takes longer.",
                    seen=[(node.name, f"{card.active_nvlinks} of its links are up")],
                    fix="Look for a bridge that is loose, and at the fabric manager.",
                    command="nvidia-smi nvlink --status",
                )
    yield from _unlike_settings(facts)


def no_peer_access(facts: ClusterFacts) -> Iterator[Finding]:
    """Find cards of a node that do not read each other's memory."""
    for node in facts.nodes:
        cut = [pair for pair in node.pairs if pair.peer and pair.peer != "OK"]
        if not cut:
            continue
        reasons = dict.fromkeys(WHY_NO_PEER.get(pair.peer, pair.peer) for pair in cut)
        yield draft(
            "no_peer_access",
            "note" if all(pair.peer == "GNS" for pair in cut) else "warning",
            f"{_pairs(cut)} of {node.name} have no peer access: {joined(list(reasons))}.",
            why="What they exchange goes through the memory of the host, at a third of the speed "
            "or less.",
            seen=[(node.name, f"{_pair(one)}: {one.path} {one.peer}") for one in cut[:4]],
            fix="Nothing helps on cards that lack it; else look at the IOMMU, at ACS in the BIOS "
            "and at the virtual machine.",
            command="nvidia-smi topo -p2p rw",
        )


def uneven_paths(facts: ClusterFacts) -> Iterator[Finding]:
    """Find nodes whose cards are joined in another way, and cards that are far from the rest."""
    shapes = grouped((_shape(node), node.name) for node in facts.nodes)
    if len(shapes) > 1 and len({len(node.cards) for node in facts.nodes}) == 1:
        yield draft(
            "topology_differs",
            "warning",
            "The cards of the nodes are not joined in the same way.",
            why="Every all-reduce waits for the node with the slowest way between its cards.",
            seen=differing(shapes),
            fix="Compare nvidia-smi topo -m of the nodes; ask for nodes of one kind.",
            command="nvidia-smi topo -m",
        )
    for node in facts.nodes:
        linked = [pair for pair in node.pairs if pair.path.startswith("NV")]
        others = [pair for pair in node.pairs if pair.path and not pair.path.startswith("NV")]
        if linked and others:
            yield draft(
                "nvlink_in_part",
                "note",
                f"NVLink joins some cards of {node.name} only.",
                why="A ring over all of them is as slow as PCIe.",
                seen=[(node.name, f"{_pair(one)}: {one.path}") for one in (*linked, *others)[:6]],
                fix="Train on the cards that are joined, or count with the speed of PCIe "
                "(estimate --link).",
            )


def _unlike_settings(facts: ClusterFacts) -> Iterator[Finding]:
    for what, text in (("ECC", "ecc"), ("power limit", "power")):
        found: dict[str, list[str]] = {}
        for node in facts.nodes:
            for card in node.cards:
                value = (
                    {True: "on", False: "off", None: ""}[card.ecc] if text == "ecc"
                    else f"{card.power_limit_w:.0f} W" if card.power_limit_w else ""
                )  # fmt: skip
                if value:
                    key = f"{card.name}: {what} {value}"
                    found.setdefault(key, []).append(f"card {card.index} of {node.name}")
        kinds = Counter(key.partition(":")[0] for key in found)
        if any(count > 1 for count in kinds.values()):
            yield draft(
                "card_settings",
                "warning",
                f"Cards of one kind differ in their {what}.",
                why="Every step waits for the slowest card.",
                seen=differing(found),
                fix="Set all of them alike.",
            )


def _cards(node: NodeFacts) -> str:
    counts = Counter(card.name for card in node.cards)
    return ", ".join(f"{count} x {name}" for name, count in sorted(counts.items())) or "no card"


def _shape(node: NodeFacts) -> str:
    counts = Counter(pair.path or "unknown" for pair in node.pairs)
    return ", ".join(f"{count} pairs {path}" for path, count in sorted(counts.items())) or "no pair"


def _pair(one: CardPair) -> str:
    return f"cards {one.first} and {one.second}"


def _pairs(pairs: list[CardPair]) -> str:
    text = _pair(pairs[0]) if len(pairs) == 1 else f"{len(pairs)} pairs of cards"
    return capital(text)
