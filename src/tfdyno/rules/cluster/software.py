"""Versions and variables that have to be the same on all nodes, and those that harm anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.rules.cluster.draft import differing, draft, grouped, named
from tfdyno.rules.cluster.tables import variables
from tfdyno.words.base.amounts import capital

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.cluster.cluster_facts import ClusterFacts, NodeFacts
    from tfdyno.core.doctor.finding import Finding, Severity

DECIDES = ("tfdyno", "tensorflow", "keras", "nccl")
"""Processes of one training that have different ones fail or drift apart."""
ABSENT = "none"
PER_NODE = ("CUDA_VISIBLE_DEVICES", "TF_CONFIG", "CUDA_DEVICE_ORDER")


def different_versions(facts: ClusterFacts) -> Iterator[Finding]:
    """Find software that is not the same everywhere."""
    names = dict.fromkeys(name for node in facts.nodes for name in node.versions)
    for name in names:
        found = grouped((node.versions.get(name, ABSENT), node.name) for node in facts.nodes)
        if len(found) < 2:
            continue
        severity: Severity = "error" if name in DECIDES else "warning"
        if name == "python" and len({v.rpartition(".")[0] for v in found}) > 1:
            severity = "error"  # 3.11 beside 3.12, not 3.11.7 beside 3.11.8
        yield draft(
            "versions",
            severity,
            f"The nodes do not run the same {name}.",
            why="Processes of one training that run different code fail, or learn different things "
            "without a word.",
            seen=differing({f"{name} {value}": who for value, who in found.items()}),
            fix=f"Install the same {name} on all nodes: one container image or one environment "
            "on the shared file system.",
        )


def different_variables(facts: ClusterFacts) -> Iterator[Finding]:
    """Find settings of NCCL, XLA and TensorFlow that only some nodes have."""
    names = sorted({name for node in facts.nodes for name in node.environment})
    for name in names:
        if name in PER_NODE:
            continue
        found = grouped((node.environment.get(name, "not set"), node.name) for node in facts.nodes)
        if len(found) < 2:
            continue
        is_nccl = name.startswith("NCCL_")
        yield draft(
            "variables",
            "warning" if is_nccl or name == "XLA_FLAGS" else "note",
            f"{name} is not the same on all nodes.",
            why="NCCL waits for ever where nodes choose different ways to each other."
            if is_nccl
            else "The nodes may run different programs.",
            seen=differing({f"{name}={value}": who for value, who in found.items()}),
            fix=f"Set {name} for all nodes in the job (launch --env), or for none.",
        )


def harmful_variables(facts: ClusterFacts) -> Iterator[Finding]:
    """Find settings of NCCL that are seldom meant."""
    if not any(node.cards for node in facts.nodes):
        return
    for one in variables():
        having = [node for node in facts.nodes if _has(node, one.name, one.value)]
        if having:
            yield draft(
                "nccl_variable",
                one.severity,
                f"{one.name}={having[0].environment[one.name]} is set on {named(having)}.",
                why=f"{capital(one.why)}.",
                seen=[(one.source, f"{one.name}={having[0].environment[one.name]}")],
                fix=f"{capital(one.fix)}.",
            )


def interface_names(facts: ClusterFacts) -> Iterator[Finding]:
    """Find ``NCCL_SOCKET_IFNAME`` that names no interface of a node."""
    for node in facts.nodes:
        given = node.environment.get("NCCL_SOCKET_IFNAME", "")
        up = [one.name for one in node.interfaces if one.is_up]
        if given and up and not chosen_interfaces(given, up):
            yield draft(
                "socket_ifname",
                "error",
                f"NCCL_SOCKET_IFNAME={given} names no network interface of {node.name}.",
                why="NCCL then finds no network between the nodes and ends with an error.",
                seen=[(node.name, f"its interfaces are {', '.join(up)}")],
                fix="Name one that all nodes have, or unset it.",
            )


def chosen_interfaces(given: str, names: list[str]) -> list[str]:
    """Return interfaces that a value of ``NCCL_SOCKET_IFNAME`` leaves.

    A list of prefixes; ``^`` in front leaves all others, ``=`` asks for whole names (NVIDIA NCCL
    user guide, Environment Variables).
    """
    text = given.strip()
    excludes = text.startswith("^")
    text = text.removeprefix("^")
    is_whole = text.startswith("=")
    words = [word.strip().removeprefix("=") for word in text.split(",") if word.strip()]
    # A port may stand behind a name: eth0:4.
    words = [word.partition(":")[0] for word in words]

    def fits(name: str) -> bool:
        return any(name == word if is_whole else name.startswith(word) for word in words)

    return [name for name in names if fits(name) != excludes]


def _has(node: NodeFacts, name: str, value: str) -> bool:
    there = node.environment.get(name)
    return there is not None and value in ("*", there.strip().upper())
