"""What is to run on which engine: one plan, from which every job file is rendered."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal, get_args

from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.units import DAY_S, HOUR_S, MINUTE_S

EngineName = Literal[
    "local", "ray", "slurm", "kubernetes", "skypilot", "vertex", "azureml", "sagemaker"
]
Pairs = tuple[tuple[str, str], ...]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
_ENGINE_ALIASES = {
    "k8s": "kubernetes", "kube": "kubernetes", "sbatch": "slurm", "sky": "skypilot",
    "vertexai": "vertex", "gcp": "vertex", "azure": "azureml", "aml": "azureml",
    "aws": "sagemaker", "sm": "sagemaker", "kuberay": "ray --with kuberay=rayjob",
}  # fmt: skip
UNFINISHED = 75
"""Exit code of ``tfdyno node`` that was ended before its end: started again, it goes on from its
checkpoint (EX_TEMPFAIL of BSD's sysexits.h)."""
MOST_NODES = 4096
MOST_GPUS_PER_NODE = 64
LONGEST_NAME = 40
"""Kubernetes adds ``-node-0-123-abcde`` to it, and 63 characters are the most of a host's name."""
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNITS_S = {"s": 1.0, "min": MINUTE_S, "m": MINUTE_S, "h": HOUR_S, "d": DAY_S}
_DURATION = re.compile(r"([\d.]+)\s*(s|min|m|h|d)")
_CLOCK = re.compile(r"(?:(\d+)-)?(\d{1,3}):(\d{2}):(\d{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlan:
    """One training on several nodes: a process on each, which sees all GPUs of its node."""

    engine: EngineName
    name: str
    """The name of the job: a part of a host's name."""
    reference: str
    """The workload as the nodes see it, relative to ``folder``."""
    script_arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    """Words of ``tfdyno node`` beside those of the plan itself: ``--epochs 3 --set seed=1``."""
    nodes: int = 1
    gpus_per_node: int = 0
    """0: the CPUs train."""
    folder: str = ""
    """Where the commands run on each node; empty: where the engine starts them."""
    output: str = ""
    """Folder of the run, which all nodes see."""
    port: int = 0
    """The port of each node's process; 0: chosen by the process itself."""
    time_limit_s: float = 0.0
    """0: the engine's own."""
    restarts: int = 0
    """How often it is started again after failures, from the newest checkpoint."""
    python: str = "python3"
    image: str = ""
    """The image of a container; empty: the engine's own, or none."""
    gpu: str = ""
    """Slug of the catalogue; empty: any."""
    cpus: int = 0
    """CPUs of each node; 0: the engine's own."""
    memory_bytes: int = 0
    """Memory of each node; 0: the engine's own."""
    environment: Pairs = ()
    """Variables of every process."""
    is_check: bool = False
    """Whether the nodes are only checked (``tfdyno doctor --cluster``)."""
    extra: Pairs = ()
    """Settings of the engine alone: ``partition=gpu``, ``namespace=ml``."""

    def __post_init__(self) -> None:
        """Refuse a plan that no engine can run; raises ``UsageError``."""
        engine_named(self.engine)
        check_name(self.name)
        _check_range("nodes", self.nodes, 1, MOST_NODES)
        _check_range("gpus-per-node", self.gpus_per_node, 0, MOST_GPUS_PER_NODE)
        _check_range("restarts", self.restarts, 0, 1000)
        if self.port:
            # On one machine their ports follow each other.
            more = self.nodes - 1 if self.engine == "local" else 0
            _check_range("port", self.port, 1024, settings.MOST_PORT - more)
        if self.gpu and not self.gpus_per_node:
            what = f"--gpu {self.gpu} without GPUs"
            raise UsageError(what, remedy="say how many with --gpus-per-node")
        lines = {"output": self.output, "workdir": self.folder, "python": self.python}
        lines |= {"image": self.image, **{f"with {key}": text for key, text in self.extra}}
        for name, value in lines.items():
            if not value.isprintable():  # it stands on a line of its own in a job file
                what = f"--{name} holds a line break or another character that cannot be shown"
                raise UsageError(what, remedy="leave it out")
        for name, _ in self.environment:
            if not _VARIABLE.fullmatch(name):
                what = f"'{name}' is no name of an environment variable"
                raise UsageError(what, remedy="write --env NAME=VALUE")

    def option(self, name: str, default: str = "") -> str:
        """Return a setting of the engine alone."""
        return dict(self.extra).get(name, default)

    def counted(self, noun: str = "node") -> str:
        """Count its nodes in words: ``1 node``, ``4 nodes``.

        Args:
            noun: What one is called.
        """
        return f"{self.nodes} {noun}{'s' * (self.nodes != 1)}"


def node_words(plan: LaunchPlan, *, output: str = "") -> tuple[str, ...]:
    """Return what an engine starts once on each node.

    Args:
        plan: What is to run.
        output: The folder of the run, where the nodes see it elsewhere than the plan says.
    """
    if plan.is_check:
        return _check_words(plan, output or plan.output)
    words = [plan.python, "-m", "tfdyno", "node", plan.reference, "--nodes", str(plan.nodes)]
    words += ["--gpus-per-node", str(plan.gpus_per_node)]
    words += ["--port", str(plan.port)] if plan.port else []
    words += ["--output", output or plan.output, *plan.options]
    return (*words, "--", *plan.script_arguments) if plan.script_arguments else tuple(words)


def _check_words(plan: LaunchPlan, output: str) -> tuple[str, ...]:
    words = [plan.python, "-m", "tfdyno", "doctor", "--cluster", "--nodes", str(plan.nodes)]
    words += ["--gpus-per-node", str(plan.gpus_per_node)]
    words += ["--port", str(plan.port)] if plan.port else []
    return (*words, "--output", output)


def check_strategy(strategy: str, nodes: int) -> None:
    """Refuse a strategy whose processes or cards are those of one machine, on several nodes.

    Args:
        strategy: Of the recipe; empty: none was asked for.
        nodes: That train together.

    Raises:
        UsageError: They cannot.
    """
    if nodes > 1 and strategy not in ("", "multiworker"):
        what = f"strategy = {strategy} does not train on {nodes} nodes"
        why = "its processes or cards are those of one machine"
        raise UsageError(what, why=why, remedy="leave it out, or use multiworker")


def engine_named(text: str) -> EngineName:
    """Return the engine that is meant; raises ``UsageError`` with the nearest name."""
    if near := _ENGINE_ALIASES.get(text.lower()):
        what = f"engine '{text}' is not one of {', '.join(ENGINES)}"
        raise UsageError(what, remedy=f"did you mean {near}?")
    return settings.one_of(text, ENGINES, "engine")


def check_name(name: str) -> None:
    """Refuse what cannot be a part of a host's name; raises ``UsageError``."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot name a job",
            why="a name has small letters, digits and '-', and begins with a letter",
            remedy=f"did you mean {name_from(name)}?",
        )
    if len(name) > LONGEST_NAME:
        why = f"it has {len(name)} characters, and {LONGEST_NAME} are the most"
        raise UsageError(f"'{name}' cannot name a job", why=why, remedy="choose a shorter one")


def name_from(text: str) -> str:
    """Return a name for a job, made of any text: a part of a host's name."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    plain = re.sub(r"^[^a-z]+", "", plain)[:LONGEST_NAME].rstrip("-")
    return plain or "run"


def name_of(reference: str) -> str:
    """Return a name for the job of a workload: that of its file, of the task or of the model."""
    place, _, name = reference.partition(":")
    is_file = place.endswith((".py", ".keras"))
    return name_from(PurePath(place).stem if is_file or not name else name)


def seconds_of(text: str, what: str) -> float:
    """Read a length of time: ``90min``, ``2h``, ``1.5d``, or as Slurm has it, ``1-12:00:00``.

    Args:
        text: As typed.
        what: Its name in the message.

    Raises:
        UsageError: It cannot be read, or is nothing.
    """
    plain = text.strip()
    if clock := _CLOCK.fullmatch(plain):
        days, hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        found = float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
        return settings.positive(found, what)
    if duration := _DURATION.fullmatch(plain):
        return settings.positive(duration[1], what) * _UNITS_S[duration[2]]
    remedy = "write it as 90min, 2h, 1.5d or 1-12:00:00"
    raise UsageError(f"{what} {text} cannot be read", remedy=remedy)


def extra_from(texts: tuple[str, ...], known: dict[str, str], engine: str) -> Pairs:
    """Return settings of an engine as typed, ``key=value``.

    Args:
        texts: As typed; the last of a key counts.
        known: What the engine understands, with what it means.
        engine: Its name in messages.

    Raises:
        UsageError: One cannot be read, or the engine does not know it.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if known and (not equals or not value.strip()):
            remedy = f"write --with KEY=VALUE, with one of {', '.join(known)}"
            raise UsageError(f"--with {text} cannot be read", remedy=remedy)
        if not known:
            raise UsageError(f"--with {text}: {engine} has no settings of its own")
        found[settings.one_of(key.strip(), known, f"setting of {engine}")] = value.strip()
    return tuple(sorted(found.items()))


def _check_range(what: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        remedy = f"give {least} to {most}"
        raise UsageError(f"--{what} {value} is not possible", remedy=remedy)
