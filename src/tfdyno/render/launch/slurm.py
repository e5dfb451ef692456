"""A launch plan as a batch script of Slurm."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import MIB
from tfdyno.core.cluster.launch_plan import node_words

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

KNOWN = {
    "partition": "where it waits",
    "account": "who pays",
    "qos": "quality of service",
    "constraint": "features of the nodes",
    "reservation": "a reserved part of the cluster",
    "nodelist": "these nodes",
    "exclude": "all nodes but these",
    "gpu_type": "type of the GPUs as the cluster names it",
    "module": "environment modules to load, separated by commas",
    "activate": "file that makes the Python environment, as bin/activate",
}
"""Settings of the engine alone."""
_HEADER = ("partition", "account", "qos", "constraint", "reservation", "nodelist", "exclude")
MOST_MARGIN_S = 180
"""The time for the last checkpoint before the time is over."""
_LOOP = """\
over= ended=
# Before the time is over Slurm sends USR1 to this shell: let all tasks write a checkpoint. They are
# not told by srun, which kills them when it gets a SIGTERM itself.
trap 'over=yes; scancel --quiet --signal=TERM "$SLURM_JOB_ID"' USR1
trap ended=yes TERM  # whoever ended the job has told the tasks
left=%(restarts)d
while :; do
    %(srun)s &
    step=$!
    while wait "$step"; code=$?; kill -0 "$step" 2>/dev/null; do :; done  # a trap ends wait early
    if [ "$code" -eq 0 ] || [ -n "$ended" ]; then exit "$code"; fi
    if [ -n "$over" ]; then
        echo "%(name)s: stopped with a checkpoint, and queued again" >&2
        exec scontrol requeue "$SLURM_JOB_ID"
    fi
    if [ "$code" -eq 2 ] || [ "$left" -le 0 ]; then exit "$code"; fi  # 2: wrong use stays wrong
    left=$((left - 1))
    echo "%(name)s: ended with code $code; going on from its checkpoint, $left more times" >&2
done
"""


def render_slurm(plan: LaunchPlan) -> str:
    """Return the script that ``sbatch`` takes; raises ``UsageError``."""
    lines = ["#!/bin/bash", *(f"#SBATCH {option}" for option in _options(plan)), ""]
    if modules := plan.option("module"):
        names = [part for part in modules.split(",") if part.strip()]
        lines.append(f"module load {shlex.join(name.strip() for name in names)} || exit 2")
    if activate := plan.option("activate"):
        lines.append(f". {shlex.quote(activate)} || exit 2")
    lines.append("set -u")  # not before: files of others use variables that are not set
    lines += [f"export {name}={shlex.quote(value)}" for name, value in plan.environment]
    lines += [f"cd {shlex.quote(plan.folder)} || exit 2"] if plan.folder else []
    values = {"restarts": plan.restarts, "srun": _srun(plan), "name": plan.name}
    return "\n".join(lines) + "\n" + _LOOP % values


def _options(plan: LaunchPlan) -> list[str]:
    found = [f"--job-name={plan.name}", f"--nodes={plan.nodes}", f"--ntasks={plan.nodes}"]
    found += ["--ntasks-per-node=1"]
    if plan.gpus_per_node:
        kind = plan.option("gpu_type")
        found.append(f"--gpus-per-node={f'{kind}:' * bool(kind)}{plan.gpus_per_node}")
    found += [f"--cpus-per-task={plan.cpus}"] if plan.cpus else []
    found += [f"--mem={-(-plan.memory_bytes // MIB)}M"] if plan.memory_bytes else []
    if plan.time_limit_s:
        minutes = math.ceil(plan.time_limit_s / 60)  # the smallest unit of Slurm
        margin_s = min(MOST_MARGIN_S, minutes * 60 // 3)
        found += [f"--time={_clock(minutes)}", f"--signal=B:USR1@{margin_s}"]
    # After the failure of a node Slurm starts it anew, and what it said before stays.
    found += ["--requeue", "--open-mode=append", f"--output={plan.name}-%j.log"]
    named = ((name, plan.option(name)) for name in _HEADER)
    return [*found, *(f"--{name}={shlex.quote(value)}" for name, value in named if value)]


def _srun(plan: LaunchPlan) -> str:
    words = ["srun", "--kill-on-bad-exit=1", "--label", "--mpi=none"]
    words += [f"--cpus-per-task={plan.cpus}"] if plan.cpus else []
    if plan.image:
        words.append(f"--container-image={plan.image}")
        words += [f"--container-mounts={_mount(plan.folder)}"] if plan.folder else []
        words += [f"--container-workdir={plan.folder}"] if plan.folder else []
    return shlex.join([*words, *node_words(plan)])


def _mount(folder: str) -> str:
    """Return the folder at its own place in the container; raises ``UsageError``."""
    if "," in folder or ":" in folder:
        what = f"--workdir {folder} cannot be mounted into a container"
        why = "pyxis takes ',' and ':' for something else"
        raise UsageError(what, why=why, remedy="choose a folder without them")
    return f"{folder}:{folder}"


def _clock(minutes: int) -> str:
    """Write a length of time as Slurm does: ``1-02:30:00``."""
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{f'{days}-' * bool(days)}{hours:02}:{minutes:02}:00"
