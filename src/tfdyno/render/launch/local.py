"""A launch plan as processes of this machine: each stands for a node."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.cluster import LOOPBACK, NO_CARD, PORT, RANK, TOLD_BY, WORKERS
from tfdyno.core.cluster.launch_plan import node_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfdyno.core.cluster.launch_plan import LaunchPlan

VISIBLE = "CUDA_VISIBLE_DEVICES"
_TRAP = """\
told= code=0
end() { kill -TERM $(jobs -pr) 2>/dev/null; }
trap 'told=yes; end' INT TERM"""
_WATCH = """\
if [ -n "$told" ]; then end; fi  # of those that were started since
while [ -n "$(jobs -p)" ]; do
    wait -n
    one=$?
    if [ -n "$told" ] && [ "$one" -gt 128 ]; then continue; fi  # a trap ends wait early
    if [ "$code" -eq 0 ]; then code=$one; fi
    if [ "$one" -ne 0 ] && [ "$one" -ne 75 ]; then end; fi  # 75: all were ended early
done
if [ -n "$told" ] && [ "$code" -eq 0 ]; then code=143; fi
exit "$code"
"""


def render_local(plan: LaunchPlan) -> str:
    """Render a shell script that starts what ``tfdyno launch --on local`` does, less its watch."""
    first = plan.port or PORT
    lines = ["#!/bin/bash", *_said(plan), "set -u", f"unset {' '.join(TOLD_BY)}"]
    lines += [f"cd {shlex.quote(plan.folder)} || exit 2"] if plan.folder else []
    lines.append(_TRAP)
    for rank in range(plan.nodes):
        own = node_variables(plan, rank, range(first, first + plan.nodes))
        words = [f"{name}={shlex.quote(value)}" for name, value in own.items()]
        lines.append(" ".join([*words, shlex.join(node_words(plan)), "&"]))
    return "\n".join([*lines, _WATCH])


def _said(plan: LaunchPlan) -> tuple[str, ...]:
    """Return what the script does, in comments."""
    if plan.is_check:  # of two or more
        return (f"# {plan.name}: {plan.nodes} processes look whether they could train together.",)
    many = f"{plan.nodes} processes that train together"
    who = many if plan.nodes > 1 else "a process that trains"
    return (
        f"# {plan.name}: {who}. The first that fails ends",
        "# all and gives the exit code; Ctrl-C and TERM end them with a checkpoint. It does not",
        "# start them again (--restarts) or end them after a time (--time-limit): tfdyno launch",
        "# does.",
    )


def with_cards(plan: LaunchPlan, environment: Mapping[str, str]) -> LaunchPlan:
    """Return the plan with the cards that the user's own variables let it see.

    Args:
        plan: What is to run; what it sets itself counts first.
        environment: The variables of the user's shell.
    """
    if not plan.gpus_per_node or VISIBLE in dict(plan.environment) or VISIBLE not in environment:
        return plan
    return replace(plan, environment=(*plan.environment, (VISIBLE, environment[VISIBLE])))


def node_variables(plan: LaunchPlan, rank: int, ports: Sequence[int]) -> dict[str, str]:
    """Return what the process of one rank is told by variables.

    Args:
        plan: What is to run.
        rank: Of the process.
        ports: Of all of them by rank.

    Raises:
        UsageError: The plan lists fewer cards than all of them need.
    """
    variables = dict(plan.environment)
    variables[VISIBLE] = _cards(plan, rank, variables.get(VISIBLE))
    if plan.nodes > 1:
        variables[WORKERS] = ",".join(f"{LOOPBACK}:{port}" for port in ports)
        variables[RANK] = str(rank)
    return variables


def _cards(plan: LaunchPlan, rank: int, listed: str | None) -> str:
    """Return one rank's part of the listed cards, or of all: numbers, UUIDs or names of MIG."""
    count = plan.gpus_per_node
    if not count:
        return NO_CARD
    needed = plan.nodes * count
    if listed is None:
        seen = [str(number) for number in range(needed)]
    else:
        parts = [part.strip() for part in listed.split(",") if part.strip()]
        seen = parts[: parts.index(NO_CARD)] if NO_CARD in parts else parts
    if len(seen) < needed:
        raise UsageError(
            f"{plan.nodes} processes with {count} GPUs each need {needed}",
            why=f"{VISIBLE}={listed} lists {len(seen)}",
            remedy="list more, or ask for fewer with --nodes and --gpus-per-node",
        )
    return ",".join(seen[rank * count : (rank + 1) * count])
