"""A launch plan as processes of this machine: each stands for a node."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from tfdyno.core.cluster import PORT, RANK, WORKERS
from tfdyno.core.launch_plan import node_words
from tfdyno.engines.tf_config import LOOPBACK, NO_CARD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.launch_plan import LaunchPlan


def render_local(plan: LaunchPlan) -> str:
    """A shell script that starts what ``tfdyno launch --on local`` starts, without its watch."""
    first = plan.port or PORT
    lines = ["#!/bin/sh", f"# {plan.name}: {plan.nodes} processes that train together", "set -u"]
    lines += [f"cd {shlex.quote(plan.folder)} || exit 2"] if plan.folder else []
    for rank in range(plan.nodes):
        own = node_variables(plan, rank, range(first, first + plan.nodes))
        words = [f"{name}={shlex.quote(value)}" for name, value in own.items()]
        lines.append(" ".join([*words, shlex.join(node_words(plan)), "&"]))
    return "\n".join([*lines, "wait", ""])


def node_variables(plan: LaunchPlan, rank: int, ports: Sequence[int]) -> dict[str, str]:
    """What the process of one rank is told by variables.

    Args:
        plan: What is to run.
        rank: Of the process.
        ports: Of all of them by rank.
    """
    variables = dict(plan.environment)
    variables["CUDA_VISIBLE_DEVICES"] = _cards(plan, rank)
    if plan.nodes > 1:
        variables[WORKERS] = ",".join(f"{LOOPBACK}:{port}" for port in ports)
        variables[RANK] = str(rank)
    return variables


def _cards(plan: LaunchPlan, rank: int) -> str:
    count = plan.gpus_per_node
    return ",".join(str(rank * count + number) for number in range(count)) or NO_CARD
