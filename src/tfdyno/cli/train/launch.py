"""``tfdyno launch``: one training on several nodes, here or by an engine."""

from __future__ import annotations

import contextlib
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import JSON, UNSAFE, WAIT_FREE, WORKLOAD, Filled, OneOf, Whole
from tfdyno.cli.train.jax_options import JAX_OPTIONS, jax_plan, jax_words
from tfdyno.cli.train.train_options import RUN_OPTIONS, recipe_given, run_words, workload_of
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import MOST_PORT
from tfdyno.core.cluster.launch_plan import (
    ENGINES,
    LaunchPlan,
    engine_named,
    extra_from,
    name_of,
    seconds_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tfdyno.core.train.jax_plan import JaxPlan

FOLDER = Path("tfdyno-runs")
ON_IMAGE = "/workspace"
"""Where a claim is mounted, if nothing else is said."""
IN_IMAGE = ("kubernetes", "vertex", "sagemaker")
"""Engines whose nodes have the workload in their image, or on a volume."""
HERE = ("local", "ray", "slurm")
"""Engines whose nodes see the folders of this machine."""
WATCHED = ("local", "ray")
"""Engines whose training is watched from here to its end."""


class _Engine(OneOf):
    """An engine; names that people have for it are told as well."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Read the name; raises ``UsageError``."""
        return engine_named(str(value))


@click.command()
@WORKLOAD
@click.option("--on", "engine", type=_Engine("engine", ENGINES), default="local",
              show_default=True, help="What starts it.")  # fmt: skip
@click.option("--nodes", type=Whole("--nodes"), default=1, show_default=True,
              help="Each runs one process.")  # fmt: skip
@click.option("--gpus-per-node", "gpus", type=Whole("--gpus-per-node", least=0),
              help="0: the CPUs train.  [default: with local a share of this machine's, else 0]",
              )  # fmt: skip
@click.option("--gpu", type=Filled(), metavar="SLUG", help="Which card, as tfdyno gpus names it.")
@click.option("--cpus", type=Whole("--cpus"), help="Of each node.")
@click.option("--memory", type=Filled(), metavar="SIZE", help="Of each node, as 64GiB.")
@click.option("--time-limit", type=Filled(), metavar="TIME", help="As 90min, 2h, 1-12:00:00.")
@click.option("--restarts", type=Whole("--restarts", least=0), default=0, metavar="K",
              show_default=True, help="After failures, from the newest checkpoint.")  # fmt: skip
@click.option("--name", type=Filled(), help="Of the job.  [default: the workload's]")
@click.option("--image", type=Filled(), help="Container image with tfdyno in it.")
@click.option("--python", type=Filled(), metavar="PATH",
              help="Interpreter of the nodes, with tfdyno in it.")  # fmt: skip
@click.option("--workdir", type=Filled(), metavar="DIR", help="Where the nodes run it.")
@click.option(
    "--port", type=Whole("--port", most=MOST_PORT), help="Of the first process of a node."
)
@click.option("--env", "variables", multiple=True, metavar="NAME=VALUE", help="Of all processes.")
@click.option("--with", "extra", multiple=True, metavar="KEY=VALUE",
              help="A setting of the engine alone; a wrong one lists them.")  # fmt: skip
@JAX_OPTIONS
@RUN_OPTIONS
@WAIT_FREE
@click.option("--dry-run", is_flag=True, help="Print the engine's file, start nothing.")
@click.option("--check", is_flag=True, help="Only check the nodes: doctor --cluster on each.")
@click.option("--write", type=Filled(), metavar="FOLDER", help="Keep the file, start nothing.")
@UNSAFE
@JSON
@click.option("-q", "--quiet", is_flag=True, help="Nothing on stderr but what is wrong.")
@click.option("-v", "--verbose", is_flag=True, help="Show every stage and event as a line.")
def launch(**given: Any) -> int:
    """Train on several nodes: here, by Ray, Slurm, Kubernetes, SkyPilot.

    WORKLOAD is what tfdyno train takes, unmodified; each node runs one process that sees all of
    its GPUs. A job that was ended or has failed goes on from its newest checkpoint when it is
    started again with the same --output. What is made for the services vertex, azureml and
    sagemaker is untested: it follows their documentation, and was never submitted.
    """
    if given["wait_free"] and given["engine"] != "local":
        why = f"{given['engine']} itself starts a node when its cards are free"
        raise UsageError("--wait-free goes with --on local", why=why, remedy="leave it out")
    jax = jax_plan(given, folder=_files_in(given))
    plan = _plan(given, jax)
    from tfdyno.jobs.launch.launch import check_plan, kind_of, rendered, written

    check_plan(plan, recipe_given(given), jax)
    if jax:
        _check_jax(given, plan.reference)
    if given["write"]:
        return _told_path(written(plan, Path(given["write"])), given)
    if given["dry_run"]:
        text = rendered(plan)
        click.echo(_json({"plan": plan, "file": text}) if given["as_json"] else text.rstrip("\n"))
        return 0
    if plan.is_check and plan.engine == "local":
        return _check_here(plan, given)
    return _run_here(plan, given) if kind_of(plan) in WATCHED else _submit(plan, given)


def _plan(given: dict[str, Any], jax: JaxPlan | None = None) -> LaunchPlan:
    """The plan that the options describe; raises ``UsageError``."""
    from tfdyno.jobs.launch.launch import known_settings

    engine = given["engine"]
    if given["check"]:
        _check_check(given)
    extra = extra_from(given["extra"], known_settings(engine), engine)
    seen = _placed(given)
    folder = _folder(seen)
    _check_workload(seen, folder)
    name = given["name"] or name_of(given["workload"])
    return LaunchPlan(
        engine=engine,
        name=name,
        reference=given["workload"],
        script_arguments=given["script_arguments"],
        options=(*run_words(given), *jax_words(jax)),
        nodes=given["nodes"],
        gpus_per_node=_gpus(given),
        folder=folder,
        output=given["output"] or _output(seen["engine"], name, folder),
        port=given["port"] or 0,
        time_limit_s=seconds_of(given["time_limit"], "--time-limit") if given["time_limit"] else 0,
        restarts=0 if given["check"] else given["restarts"],  # a check is not begun again
        python=given["python"] or _python(seen, dict(extra)),
        image=given["image"] or "",
        gpu=_slug(given["gpu"]),
        cpus=given["cpus"] or 0,
        memory_bytes=_bytes(given["memory"]),
        environment=tuple(_variable(text) for text in given["variables"]),
        is_check=given["check"],
        extra=extra,
    )


def _check_check(given: dict[str, Any]) -> None:
    """Refuse a check of the nodes that would not say what it is asked."""
    if given["engine"] == "ray":
        remedy = "run tfdyno doctor --cluster on its nodes"
        raise UsageError("--check does not go with --on ray", remedy=remedy)
    if given["backend"] == "jax":
        what, why = "--check does not go with --backend jax", "it measures TensorFlow's all-reduce"
        remedy = "check without --backend jax: ports, clocks and folders are the same"
        raise UsageError(what, why=why, remedy=remedy)
    if given["nodes"] < 2:
        raise UsageError("--check compares several nodes", remedy="say how many with --nodes")


def _check_workload(given: dict[str, Any], folder: str) -> None:
    """Refuse what cannot be read here; what lies elsewhere only is not looked for."""
    engine, reference, data = given["engine"], given["workload"], given["data"] or ""
    files = [text for text in (reference, data) if _file_of(text)]
    if engine in ("skypilot", "azureml"):
        for text in files:
            _check_copied(text, engine)
    if engine in IN_IMAGE:  # the folder is one of the nodes
        if Path(_file_of(reference) or ".").exists():
            workload_of({**given, "python": None})
        return
    if "://" in folder or (engine != "local" and folder and not Path(folder).is_dir()):
        return
    if folder and not Path(folder).is_dir():
        raise UsageError(f"there is no folder {folder}", remedy="check --workdir")
    seen_from = given["workdir"] or ""
    here = str(Path(seen_from, reference)) if reference in files else reference
    workload_of({**given, "python": None, "workload": here})
    if data in files and not Path(folder, _file_of(data)).is_file():
        what = f"there is no file {Path(seen_from, _file_of(data))}"
        raise UsageError(what, remedy="name the file of --data as it is seen from --workdir")


def _placed(given: dict[str, Any]) -> dict[str, Any]:
    """The options with the engine that says where files are.

    On Kubernetes a cluster of Ray is in pods, as all else is there.
    """
    is_in_pods = any(text.partition("=")[0].strip() == "kuberay" for text in given["extra"])
    is_kuberay = given["engine"] == "ray" and is_in_pods
    return {**given, "engine": "kubernetes"} if is_kuberay else given


def _files_in(given: dict[str, Any]) -> str:
    """Where a file of the command line is looked for: where it is given, or in --workdir."""
    workdir = given["workdir"] or ""
    is_elsewhere = _placed(given)["engine"] in IN_IMAGE or "://" in workdir
    return "" if is_elsewhere else workdir


def _check_jax(given: dict[str, Any], reference: str) -> None:
    """Refuse what the JAX backend does not train, where it can be seen from here."""
    from tfdyno.core.train.jax_plan import check_settings
    from tfdyno.core.train.training import RunSettings
    from tfdyno.jobs.train.jax_script import check_script

    norms, board = given["norms"] or 0, bool(given["tensorboard"])
    check_settings(RunSettings(norms_steps=norms, tensorboard=board))
    place = Path(_files_in(given))
    if (file := _file_of(reference)) and (place / file).exists():
        here = str(place / reference)
        check_script(workload_of({**given, "python": None, "workload": here}))


def _file_of(reference: str) -> str:
    """The file of a workload or of its data; empty where it has none."""
    place = reference.partition(":")[0]
    return place if place.endswith((".py", ".keras", ".h5", ".hdf5")) else ""


def _check_copied(text: str, engine: str) -> None:
    path = Path(_file_of(text))
    if path.is_absolute() or ".." in path.parts:
        raise UsageError(
            f"{text} is not there on the nodes",
            why=f"--on {engine} copies the folder of --workdir, and names in it are relative",
            remedy="name it as it is seen from --workdir",
        )


def _folder(given: dict[str, Any]) -> str:
    """Where the nodes run it; empty: where the engine starts them."""
    if given["engine"] in (*HERE, "azureml"):  # whose file names a folder of this machine
        return str(Path(given["workdir"] or ".").absolute())
    return given["workdir"] or (ON_IMAGE if given["engine"] == "kubernetes" else "")


def _gpus(given: dict[str, Any]) -> int:
    """GPUs of a node, of which only those of this machine are known."""
    if given["gpus"] is not None or given["engine"] != "local":
        return given["gpus"] or 0
    import os

    from tfdyno.jobs.launch.launch import own_share

    return own_share(given["nodes"], os.environ.get("CUDA_VISIBLE_DEVICES"))


def _python(given: dict[str, Any], extra: dict[str, str]) -> str:
    """The interpreter of the nodes: this one, where nothing else brings one."""
    brings = given["image"] or extra.get("activate") or extra.get("module")
    return sys.executable if given["engine"] in HERE and not brings else "python3"


def _output(engine: str, name: str, folder: str) -> str:
    """A new folder where the run is watched; else one that a job finds again."""
    if engine not in WATCHED:
        return f"{FOLDER}/{name}"
    import time

    from tfdyno.store.run_folder import unused

    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    return f"{FOLDER}/{unused(Path(folder, FOLDER, stem)).name}"


def _slug(gpu: str | None) -> str:
    if not gpu:
        return ""
    from tfdyno.catalog.gpus import find

    return find(gpu).slug


def _bytes(text: str | None) -> int:
    if not text:
        return 0
    from tfdyno.core.base.units import parse_bytes

    return round(parse_bytes(text))


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--env {text} cannot be read", remedy="write --env NAME=VALUE")
    return name, value


def _submit(plan: LaunchPlan, given: dict[str, Any]) -> int:
    from tfdyno.jobs.launch.launch import run_folder, submit_command, submitted

    path, said = submitted(plan, FOLDER)
    if given["as_json"]:
        click.echo(_json({"plan": plan, "path": str(path), "said": said}))
    else:
        click.echo(f"{' '.join(submit_command(plan, path))}: {said or 'done'}")
        click.echo(f"Its run is in {run_folder(plan)} on the nodes.")
    return 0


def _told_path(path: Path, given: dict[str, Any]) -> int:
    click.echo(_json({"path": str(path)}) if given["as_json"] else str(path))
    return 0


def _check_here(plan: LaunchPlan, given: dict[str, Any]) -> int:
    from tfdyno.cli.measure.doctor_cluster import check_here
    from tfdyno.jobs.doctor.cluster import ClusterRequest

    output = str(Path(plan.folder or ".", plan.output))
    asked = ClusterRequest(
        output=output, nodes=plan.nodes, gpus_per_node=plan.gpus_per_node, port=plan.port
    )
    return check_here(asked, given)


def _run_here(plan: LaunchPlan, given: dict[str, Any]) -> int:
    run: Callable[..., Any]
    if plan.engine == "ray":
        from tfdyno.jobs.launch.ray import launch_ray as run
    else:
        from tfdyno.jobs.launch.local import launch_local

        run = partial(launch_local, wait_free=given["wait_free"])
    from tfdyno.cli.train.launch_answer import answer

    with _shown(given) as (progress, output):
        launched = run(plan, progress=progress, output=output)
    return answer(launched, plan, given)


@contextlib.contextmanager
def _shown(
    given: dict[str, Any],
) -> Iterator[tuple[Callable[[str], None], Callable[[str], None]]]:
    """Where the training is shown: each worker's lines behind its name, in its colour."""
    from tfdyno.cli.train.train_progress import train_progress
    from tfdyno.cli.train.worker_lines import Requests, coloured, is_noise
    from tfdyno.view.base.text import colour_wanted

    colour, requests = colour_wanted(sys.stderr), Requests()
    with train_progress(quiet=given["quiet"], verbose=given["verbose"]) as shown:

        def output(line: str) -> None:
            if given["verbose"] or not (is_noise(line) or requests.is_repeated(line)):
                shown.output(coloured(line, colour=colour))

        yield shown.progress, output


def _json(value: object) -> str:
    from tfdyno.core.base.codec import to_json

    return to_json(value, indent=2).decode()
