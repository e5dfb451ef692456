"""Start a training on several nodes: here, or by an engine that gets a file made from the plan."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import write_atomic
from tfdyno.core.base.errors import OSErrorsAs, ToolError, UsageError
from tfdyno.core.base.units import format_bytes
from tfdyno.core.cluster.launch_plan import check_strategy
from tfdyno.core.recipe.composition import check_composition
from tfdyno.core.train.jax_plan import check_recipe
from tfdyno.jobs.train.jax_run import host_devices

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno.core.cluster.launch_plan import LaunchPlan
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.train.jax_plan import JaxPlan

SUBMIT_S = 300.0
OF_THEIR_OWN = ("skypilot", "vertex", "azureml", "sagemaker")
"""Engines that say themselves how they are started, and where their nodes see the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Engine:
    """How an engine is given its file."""

    suffix: str
    submit: tuple[str, ...] = ()
    """Words in front of the file; empty: it is not submitted from here."""
    scheme: str = ""
    """What its program wants right before the file's name."""


_ENGINES = {
    "local": _Engine(suffix=".sh"),
    "ray": _Engine(suffix=".ray.yaml"),
    "kuberay": _Engine(suffix=".rayjob.yaml", submit=("kubectl", "apply", "--filename")),
    "slurm": _Engine(suffix=".sbatch", submit=("sbatch", "--parsable")),
    "kubernetes": _Engine(suffix=".yaml", submit=("kubectl", "apply", "--filename")),
    "skypilot": _Engine(suffix=".sky.yaml"),
    "vertex": _Engine(suffix=".vertex.yaml"),
    "azureml": _Engine(suffix=".azureml.yaml"),
    "sagemaker": _Engine(suffix=".sagemaker.yaml", scheme="file://"),
}


_IGNORED = {
    ("local", "cpus"): "leave it out; the processes share the CPUs of this machine",
    ("local", "memory"): "leave it out; each process takes what it needs of this machine",
    ("local", "gpu"): "leave it out; CUDA_VISIBLE_DEVICES chooses among the cards of this machine",
    ("local", "image"): "leave it out; start tfdyno launch in the container",
    ("slurm", "gpu"): "name it as the cluster does, with --with gpu_type=NAME",
    ("kubernetes", "gpu"): "choose nodes by their label, with --with selector=KEY:VALUE",
    ("ray", "gpu"): "leave it out; Ray places workers where GPUs are",
    ("kuberay", "gpu"): "choose nodes by their label, with --with selector=KEY:VALUE",
    ("ray", "image"): "leave it out; the cluster has its own",
    ("vertex", "cpus"): "choose a machine that has them, with --with machine=NAME",
    ("vertex", "memory"): "choose a machine that has it, with --with machine=NAME",
    ("vertex", "port"): "leave it out; TF_CONFIG names the ports",
    ("azureml", "cpus"): "choose a machine that has them, with --with machine=NAME",
    ("azureml", "memory"): "choose a machine that has it, with --with machine=NAME",
    ("azureml", "port"): "leave it out; TF_CONFIG names the ports",
    ("azureml", "restarts"): "leave it out; the same command again goes on from the checkpoint",
    ("sagemaker", "cpus"): "choose a machine that has them, with --with machine=NAME",
    ("sagemaker", "memory"): "choose a machine that has it, with --with machine=NAME",
}
"""Engine and option that it does not look at, with what does the same there."""


def known_settings(engine: str) -> dict[str, str]:
    """Return what ``--with`` may set for an engine, with what it means."""
    if engine == "local":
        return {}
    found: dict[str, str] = importlib.import_module(f"tfdyno.render.launch.{engine}").KNOWN
    return found


def check_plan(plan: LaunchPlan, recipe: Recipe, jax: JaxPlan | None = None) -> None:
    """Refuse what no node could train, before anything is submitted; raises ``UsageError``.

    Args:
        plan: What is to run.
        recipe: By which.
        jax: On Keras' JAX backend; None: on TensorFlow's.
    """
    check_composition(recipe)
    if jax:
        check_recipe(recipe)
        _check_devices(plan, jax)
    _check_ignored(plan)
    check_strategy(recipe.strategy, plan.nodes)
    if plan.engine == "vertex":
        _check_tpu(plan, recipe)
    if recipe.devices:
        what = f"devices = {recipe.devices} does not go with launch"
        raise UsageError(what, remedy="say --nodes and --gpus-per-node")
    if recipe.visible_devices:
        what = f"visible_devices = {recipe.visible_devices} does not go with launch"
        raise UsageError(what, why="each process gets cards of its own",
                         remedy="set CUDA_VISIBLE_DEVICES for --on local")  # fmt: skip


def _check_devices(plan: LaunchPlan, jax: JaxPlan) -> None:
    """Refuse a mesh that is not over all devices, and CPUs that stand for some beside GPUs."""
    if plan.gpus_per_node and jax.host_devices:
        what = f"--host-devices {jax.host_devices} does nothing with GPUs"
        raise UsageError(what, why=f"the devices are the {plan.gpus_per_node} GPUs of each node",
                         remedy="leave it out, or say --gpus-per-node 0")  # fmt: skip
    own = host_devices(jax, {**os.environ, **dict(plan.environment)})
    jax.whole_mesh(plan.nodes * (plan.gpus_per_node or own))


def _check_ignored(plan: LaunchPlan) -> None:
    """Refuse what the plan's engine would not look at."""
    python = plan.python if plan.python != "python3" else ""
    given = {
        "gpu": plan.gpu,
        "image": plan.image,
        "python": python,
        "cpus": plan.cpus,
        "memory": format_bytes(plan.memory_bytes) if plan.memory_bytes else "",
        "port": plan.port,
        "restarts": plan.restarts,
    }
    for name, value in given.items():
        remedy = _IGNORED.get((kind_of(plan), name))
        if value and remedy:
            what = f"--{name} {value} is nothing that --on {plan.engine} looks at"
            raise UsageError(what, remedy=remedy)


def _check_tpu(plan: LaunchPlan, recipe: Recipe) -> None:
    """Refuse TPUs that nothing would train on, and a strategy that would find none."""
    tpu = plan.option("tpu")
    if tpu and recipe.strategy != "tpu":
        what, remedy = f"--with tpu={tpu} needs a strategy", "say --set strategy=tpu"
        raise UsageError(what, why="without it the CPU would train", remedy=remedy)
    if recipe.strategy == "tpu" and not tpu:
        raise UsageError("strategy = tpu needs TPUs", remedy="name them with --with tpu=v5e-8")


def own_share(nodes: int, visible: str | None) -> int:
    """Return GPUs of this machine for each of so many processes; 0: the CPUs train.

    Args:
        nodes: Processes.
        visible: ``CUDA_VISIBLE_DEVICES``; None: not set.
    """
    from tfdyno.jobs.train.run import visible_cards

    return len(visible_cards(visible)) // nodes


def kind_of(plan: LaunchPlan) -> str:
    """Return its engine, or ``kuberay`` where Ray gets a cluster of its own on Kubernetes."""
    return "kuberay" if plan.engine == "ray" and plan.option("kuberay") else plan.engine


def run_folder(plan: LaunchPlan) -> str:
    """Return where the nodes see the run; raises ``UsageError`` where they cannot."""
    if plan.engine in OF_THEIR_OWN:
        module = importlib.import_module(f"tfdyno.render.launch.{plan.engine}")
        found: str = module.run_folder(plan)
        return found
    return plan.output


def rendered(plan: LaunchPlan) -> str:
    """Render the file of the plan's engine; raises ``UsageError`` where it cannot."""
    module = importlib.import_module(f"tfdyno.render.launch.{plan.engine}")
    render: Callable[[LaunchPlan], str] = getattr(module, f"render_{plan.engine}")
    if plan.engine == "local":
        plan = module.with_cards(plan, os.environ)
    return render(plan)


def written(plan: LaunchPlan, folder: Path) -> Path:
    """Keep the file of the plan's engine in a folder; raises ``UsageError``."""
    text = rendered(plan)
    path = folder / f"{plan.name}{_ENGINES[kind_of(plan)].suffix}"
    with OSErrorsAs(UsageError, f"cannot write to {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text.encode())
    if plan.engine == "local":
        path.chmod(path.stat().st_mode | 0o111)
    return path


def submitted(plan: LaunchPlan, folder: Path) -> tuple[Path, str]:
    """Give the file to the engine; the file, and what the engine's program printed.

    Raises:
        UsageError: The program is not on this machine, or refuses the file.
        ToolError: It does not answer.
    """
    words = submit_words(plan)
    if not words:
        what = f"--on {plan.engine} is not started from here"
        raise UsageError(what, remedy="print what it needs with --dry-run")
    if not shutil.which(words[0]):
        raise UsageError(
            f"there is no {words[0]} on this machine",
            why=f"--on {plan.engine} is started by it",
            remedy="start it where it is, or keep its file with --write FOLDER",
        )
    path = written(plan, folder)
    try:
        done = subprocess.run(
            submit_command(plan, path),
            capture_output=True,
            text=True,
            check=False,
            timeout=SUBMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"{words[0]} does not answer", why=str(error)) from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise UsageError(f"{words[0]} refuses {path}", why=said or f"exit code {done.returncode}")
    return path, done.stdout.strip()


def submit_command(plan: LaunchPlan, path: Path) -> tuple[str, ...]:
    """Return what starts a file that is kept."""
    return (*submit_words(plan), f"{_ENGINES[plan.engine].scheme}{path}")


def submit_words(plan: LaunchPlan) -> tuple[str, ...]:
    """Return what stands in front of the file to start it; empty where nothing does."""
    if plan.engine in OF_THEIR_OWN:
        module = importlib.import_module(f"tfdyno.render.launch.{plan.engine}")
        words: tuple[str, ...] = module.submit_words(plan)
        return words
    return _ENGINES[kind_of(plan)].submit
