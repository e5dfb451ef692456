"""What the job specifications of managed training services have in common."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import one_of, whole
from tfdyno.render.base.yaml_text import yaml_text

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

TABLE = Path(__file__).parents[1] / "tables" / "managed_machines.csv"
RUNS = "tfdyno-runs"
"""Where runs lie if nothing else is said."""
MACHINE = "type of each node's machine, instead of the one that --gpu stands for"
SPOT = "true: machines that may be taken away"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine of a service with so many GPUs of a kind."""

    gpu: str
    """Slug of the catalogue."""
    gpus: int
    name: str
    accelerator: str
    """What the service calls the GPU; empty where the machine says it."""


def job_file(
    plan: LaunchPlan, fields: dict[str, Any], start: str, *, service: str, source: str
) -> str:
    """Return a job as YAML, with comments that say how it is started and how far it can be trusted.

    Args:
        plan: What is to run.
        fields: Of the job.
        start: The command that takes the file, with its name.
        service: As people call it.
        source: What says which fields there are, with its version.
    """
    trust = f"untested: rendered as {source} describes it, never submitted to {service}"
    return yaml_text(fields, head=(f"{plan.name}: {plan.counted()}; {start}", trust))


@functools.cache
def machines(service: str) -> tuple[Machine, ...]:
    """Return those of a service that are known here."""
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return tuple(
            Machine(
                gpu=row["gpu"],
                gpus=int(row["gpus"]),
                name=row["machine"],
                accelerator=row["accelerator"],
            )
            for row in csv.DictReader(lines, strict=True)
            if row["service"] == service
        )


def machine_name(plan: LaunchPlan, example: str) -> str:
    """Return the type of the machine of a node: as named, or the one with the plan's GPUs.

    Args:
        plan: What is to run.
        example: A machine without GPUs, for the message.

    Raises:
        UsageError: None is named, and none with these GPUs is known.
    """
    if named := plan.option("machine"):
        return named
    if plan.gpus_per_node:
        return _of_gpu(plan).name
    raise UsageError(
        f"--on {plan.engine} has to know which machine",
        remedy=f"name a card with --gpu and --gpus-per-node, or --with machine={example}",
    )


def accelerator(plan: LaunchPlan) -> str:
    """Return what the service calls the plan's GPU; raises ``UsageError`` where unknown."""
    found = [one.accelerator for one in _own(plan) if one.gpu == plan.gpu]
    return found[0] if found else _of_gpu(plan).accelerator


def check_image(plan: LaunchPlan) -> None:
    """Refuse a plan without the container that all nodes run; raises ``UsageError``."""
    if not plan.image:
        what = f"--on {plan.engine} needs an image with tfdyno in it"
        raise UsageError(what, remedy="name it with --image")


def is_spot(plan: LaunchPlan) -> bool:
    """Return whether its machines may be taken away; raises ``UsageError``."""
    return one_of(plan.option("spot", "false"), ("true", "false"), "spot") == "true"


def disk_gib(plan: LaunchPlan) -> int:
    """Return size of each node's disk, 0 where nothing is said; raises ``UsageError``."""
    text = plan.option("disk_gib")
    return whole(text, "--with disk_gib", most=1 << 20) if text else 0


def in_folder(folder: str, words: tuple[str, ...]) -> list[str]:
    """Return the words that run others in a folder, where no field of the service does."""
    return ["env", f"--chdir={folder}", *words] if folder else list(words)


def folder_in(plan: LaunchPlan, mount: PurePosixPath) -> str:
    """Return the folder of the run below the place that outlives the nodes.

    Raises:
        UsageError: The plan names a folder that is not there.
    """
    output = PurePosixPath(plan.output)
    if output.is_relative_to(mount) and ".." not in output.parts:
        return str(output)
    if output.is_absolute() or ".." in output.parts:
        what = f"--output {plan.output} is gone when the nodes are"
        raise UsageError(what, remedy=f"name it without the first /; it is put below {mount}")
    return str(mount / (output.relative_to(RUNS) if output.is_relative_to(RUNS) else output))


def address_parts(plan: LaunchPlan, name: str, scheme: str) -> str:
    """Return the bucket and folder of a setting, without scheme and closing ``/``.

    Raises:
        UsageError: It is not set, or no address of this kind.
    """
    given = plan.option(name)
    if not given:
        raise UsageError(
            f"--on {plan.engine} needs a bucket for the run",
            why="what lies on the nodes is gone when they are",
            remedy=f"name one with --with {name}={scheme}NAME",
        )
    inside = given.removeprefix(scheme).strip("/")
    if not given.startswith(scheme) or not inside or "//" in inside or ".." in inside.split("/"):
        what = f"--with {name}={given} is no address of a bucket"
        raise UsageError(what, remedy=f"write {scheme}NAME or {scheme}NAME/FOLDER")
    return inside


def _of_gpu(plan: LaunchPlan) -> Machine:
    if not plan.gpu:
        what = f"--on {plan.engine} has to know which {plan.gpus_per_node} GPUs"
        raise UsageError(what, remedy="name the card with --gpu SLUG")
    of_card = [one for one in _own(plan) if one.gpu == plan.gpu]
    found = [one for one in of_card if one.gpus == plan.gpus_per_node]
    if found:
        return found[0]
    if of_card:
        counts = ", ".join(str(count) for count in sorted({one.gpus for one in of_card}))
        what = f"no machine of {plan.engine} with {plan.gpus_per_node} of {plan.gpu} is known here"
        raise UsageError(what, remedy=f"choose {counts} with --gpus-per-node, or a machine with "
                         "--with machine=NAME")  # fmt: skip
    what = f"no machine of {plan.engine} with {plan.gpu} is known here"
    known = ", ".join(sorted({one.gpu for one in _own(plan)}))
    raise UsageError(what, remedy=f"choose among {known}")


def _own(plan: LaunchPlan) -> tuple[Machine, ...]:
    return machines(plan.engine)
