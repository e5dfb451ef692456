"""Where Horovod itself runs, and the commands that build and start it there."""

from __future__ import annotations

import shlex

from tfdyno.core.doctor.migration import Keeping, MigrationStep, Support
from tfdyno.rules.tables import read_rows

_ANY = "any"


def keeping(script: str, arguments: tuple[str, ...], *, nodes: int, gpus_per_node: int) -> Keeping:
    """Return the commands for a script on so many nodes.

    Args:
        script: Path, as the nodes see it.
        arguments: Of the script.
        nodes: Machines.
        gpus_per_node: Processes of each; 0: the CPUs train, in one process.
    """
    slots = max(1, gpus_per_node)
    values = {
        "processes": str(nodes * slots),
        "hosts": ",".join(f"node{number + 1}:{slots}" for number in range(nodes))
        if nodes > 1
        else f"localhost:{slots}",
        "nodes": str(nodes),
        "slots": str(slots),
        "gpus": f" --gpus-per-node={gpus_per_node}" if gpus_per_node else "",
        "script": shlex.join((script, *arguments)),
    }
    kind = "gpu" if gpus_per_node else "cpu"
    install = [row for row in read_rows("horovod_install.csv", ("on", "text", "command", "source"))
               if row["on"] in (_ANY, kind)]  # fmt: skip
    start = read_rows("horovod_start.csv", ("text", "command", "source"))
    columns = ("tensorflow", "keras", "builds", "trains", "source")
    return Keeping(
        support=tuple(Support(**row) for row in read_rows("horovod_support.csv", columns)),
        install=tuple(_step(row, {}) for row in install),
        start=tuple(_step(row, values) for row in start),
    )


def _step(row: dict[str, str], values: dict[str, str]) -> MigrationStep:
    command = row["command"]
    for name, value in values.items():
        command = command.replace(f"{{{name}}}", value)
    return MigrationStep(text=row["text"], command=command, source=row["source"])
