"""Clocks, and the folder that all nodes have to share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes, format_si
from tfdyno.rules.cluster.draft import draft, joined, named
from tfdyno.rules.cluster.tables import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno.core.cluster.cluster_facts import ClusterFacts
    from tfdyno.core.doctor.finding import Finding


def clock_skew(facts: ClusterFacts) -> Iterator[Finding]:
    """Find clocks that are further apart than they can be by the uncertainty of the question."""
    limit = limits()
    names = {node.rank: node.name for node in facts.nodes}
    for clock in facts.clocks:
        least_s = max(0.0, abs(clock.offset_s) - clock.uncertainty_s)
        if least_s <= limit["clock_warning"]:
            continue
        way = "ahead of" if clock.offset_s > 0 else "behind"
        yield draft(
            "clock_skew",
            "error" if least_s > limit["clock_error"] else "warning",
            f"The clock of {names[clock.rank]} is {abs(clock.offset_s):,.1f} s {way} worker 0's.",
            why="Ages of files, tokens of the cloud and the order of logs are wrong.",
            seen=[(names[clock.rank], f"{clock.offset_s:+.3f} s, ± {clock.uncertainty_s:.3f} s")],
            fix="Start the clock's service there.",
            command="sudo timedatectl set-ntp true; chronyc tracking",
        )


def not_shared(facts: ClusterFacts) -> Iterator[Finding]:
    """Find nodes that do not see what others write."""
    names = {node.rank: node.name for node in facts.nodes}
    blind = [view for view in facts.views if view.seen_s is None and not view.error]
    if blind:
        folder = facts.nodes[0].folder.path
        who = joined(list(dict.fromkeys(names[view.reader] for view in blind)))
        seen = {node.rank: node.folder for node in facts.nodes}
        yield draft(
            "not_shared",
            "error",
            f"{folder} of worker 0 is not the same folder on {who}.",
            why="Checkpoints and what the nodes agree upon lie in it.",
            seen=[
                (names[view.reader],
                 f"sees nothing in {seen[view.reader].path} of what {names[view.writer]} wrote "
                 f"({seen[view.reader].filesystem or 'unknown file system'})")
                for view in blind
            ],
            fix="Name a folder with --output that all nodes share: NFS, Lustre, a volume that all "
            "pods can write.",
        )  # fmt: skip
    for view in facts.views:
        if view.error:
            yield draft(
                "not_writable",
                "error" if view.writer == 0 else "warning",
                f"{names[view.writer]} cannot write to the folder of the run.",
                why="Worker 0 writes checkpoints there, and all agree by files in it.",
                seen=[(names[view.writer], view.error)],
                fix="Mount it for writing, and give the user of the job the right to write.",
            )
            break


def seen_late(facts: ClusterFacts) -> Iterator[Finding]:
    """Find files that are seen late, or in part."""
    limit = limits()["seen_warning"]
    names = {node.rank: node.name for node in facts.nodes}
    late = []
    for view in facts.views:
        if view.seen_s is None:
            continue
        times = {"a new file": view.seen_s, "another file in its place": view.replaced_s,
                 "what was added": view.appended_s}  # fmt: skip
        for what, taken_s in times.items():
            if taken_s is None or taken_s > limit:
                when = "not at all" if taken_s is None else f"after {taken_s:.1f} s"
                late.append((names[view.reader], f"{what} of {names[view.writer]}: {when}"))
    if late:
        kind = facts.nodes[0].folder.filesystem
        yield draft(
            "seen_late",
            "warning",
            f"Nodes see late what others write to {facts.nodes[0].folder.path}.",
            why="They agree on the step of a checkpoint by files: a late one costs steps.",
            seen=late,
            fix="Mount NFS with lookupcache=positive and actimeo=1."
            if kind.startswith("nfs")
            else "Choose a file system that shows new files at once.",
        )


def folder_speed(facts: ClusterFacts) -> Iterator[Finding]:
    """Find a folder that is slow or nearly full."""
    limit = limits()
    names = {node.rank: node.name for node in facts.nodes}
    slow = [
        (names[one.rank], f"{what} {format_si(rate, 'B/s', 2)}")
        for one in facts.speeds
        for what, rate in (("writes", one.write_bytes_per_s), ("reads", one.read_bytes_per_s))
        if rate is not None and rate < limit["folder_slow_warning"]
    ]
    if slow:
        yield draft(
            "folder_slow",
            "warning",
            f"{facts.nodes[0].folder.path} is slow on {joined([who for who, _ in slow])}.",
            why="A checkpoint is written there and read by all.",
            seen=slow,
            fix="Keep the run on a faster file system, or write checkpoints less often.",
        )
    tight = [
        node for node in facts.nodes
        if 0 <= node.folder.free_bytes < limit["folder_free_warning"]
    ]  # fmt: skip
    if tight:
        yield draft(
            "folder_full",
            "warning",
            f"The folder of the run has little room on {named(tight)}.",
            why="A checkpoint that finds no room ends the training.",
            seen=[(n.name, f"{format_bytes(n.folder.free_bytes)} free") for n in tight],
            fix="Make room, or name another folder with --output.",
        )
