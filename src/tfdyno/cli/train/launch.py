"""``tfdyno launch``: one training on several nodes, here or by an engine."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import TEXT, command, flag, group, many, option
from tfdyno.cli.options import UNSAFE, WAIT_FREE, Filled, OneOf, Whole
from tfdyno.cli.train.jax_options import JaxOptions, jax_plan, jax_words
from tfdyno.cli.train.train_options import Run, Watched, recipe_given, run_words
from tfdyno.cli.workload_options import CodeOptions, WorkloadOptions, workload_from
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import MOST_PORT
from tfdyno.core.choose.workload import HUB_PREFIX, TEXT_FILES, Workload
from tfdyno.core.cluster.launch_plan import (
    ENGINES,
    EngineName,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(WorkloadOptions):
    engine: EngineName = option(
        "--on", type=OneOf("engine", ENGINES, engine_named), default="local", show_default=True,
        help="What starts it.",
    )  # fmt: skip
    nodes: int = option(
        type=Whole("--nodes"), default=1, show_default=True, help="Each runs one process."
    )
    gpus: int | None = option(
        "--gpus-per-node", type=Whole("--gpus-per-node", least=0),
        help="0: the CPUs train.  [default: with local a share of this machine's, else 0]",
    )  # fmt: skip
    gpu: str | None = option(
        type=Filled(), metavar="SLUG", help="Which card, as tfdyno gpus names it."
    )
    cpus: int | None = option(type=Whole("--cpus"), help="Of each node.")
    memory: str | None = option(type=Filled(), metavar="SIZE", help="Of each node, as 64GiB.")
    time_limit: str | None = option(type=Filled(), metavar="TIME", help="As 90min, 2h, 1-12:00:00.")
    restarts: int = option(
        type=Whole("--restarts", least=0), default=0, metavar="K", show_default=True,
        help="After failures, from the newest checkpoint.",
    )  # fmt: skip
    name: str | None = option(type=Filled(), help="Of the job.  [default: the workload's]")
    image: str | None = option(type=Filled(), help="Container image with tfdyno in it.")
    python: str | None = option(
        type=Filled(), metavar="PATH", help="Interpreter of the nodes, with tfdyno in it."
    )
    workdir: str | None = option(type=Filled(), metavar="DIR", help="Where the nodes run it.")
    port: int | None = option(
        type=Whole("--port", most=MOST_PORT), help="Of the first process of a node."
    )
    variables: tuple[str, ...] = many(
        "--env", type=TEXT, metavar="NAME=VALUE", help="Of all processes."
    )
    extra: tuple[str, ...] = many(
        "--with", type=TEXT, metavar="KEY=VALUE",
        help="A setting of the engine alone; a wrong one lists them.",
    )  # fmt: skip
    jax: JaxOptions = group(JaxOptions)
    run: Run = group(Run)
    wait_free: bool = WAIT_FREE
    dry_run: bool = flag(help="Print the engine's file, start nothing.")
    check: bool = flag(help="Only check the nodes: doctor --cluster on each.")
    write: str | None = option(
        type=Filled(), metavar="FOLDER", help="Keep the file, start nothing."
    )
    unsafe: bool = UNSAFE
    told: Watched = group(Watched)


@command(_Options)
def launch(options: _Options) -> Answer:
    """Train on several nodes: here, by Ray, Slurm, Kubernetes, SkyPilot.

    WORKLOAD is what tfdyno train takes, unmodified; each node runs one process that sees all of
    its GPUs. A job that was ended or has failed goes on from its newest checkpoint when it is
    started again with the same --output. What is made for the services vertex, azureml and
    sagemaker is untested: it follows their documentation, and was never submitted.
    """
    if options.wait_free and options.engine != "local":
        why = f"{options.engine} itself starts a node when its cards are free"
        raise UsageError("--wait-free goes with --on local", why=why, remedy="leave it out")
    jax = jax_plan(options.jax, folder=_files_in(options), found=_backend_found(options))
    plan = _plan(options, jax)
    from tfdyno.jobs.launch.launch import check_plan, kind_of, rendered, written

    check_plan(plan, recipe_given(options.run.what), jax)
    if jax:
        _check_jax(options, plan.reference)
    if options.write:
        path = str(written(plan, Path(options.write)))
        return Answer(document=lambda: {"path": path}, text=lambda **_: path)
    if options.dry_run:
        text = rendered(plan)
        return Answer(
            document=lambda: {"plan": plan, "file": text}, text=lambda **_: text.rstrip("\n")
        )
    if plan.is_check and plan.engine == "local":
        return _check_here(plan, options.told)
    return _run_here(plan, options) if kind_of(plan) in WATCHED else _submit(plan)


def _backend_found(options: _Options) -> str:
    """Return the backend that the code sets, or the variables of this machine where it trains."""
    file = _file_of(options.workload)
    if options.jax.backend or options.check or not file:
        return ""
    import os

    from tfdyno.jobs.train.backend import found_backend

    named = Workload(reference=file, kind="script", mode="train")
    variables = dict(_variable(text) for text in options.variables)
    given = {**os.environ, **variables} if options.engine == "local" else variables
    return found_backend(named, given, folder=_files_in(options)).name


def _plan(options: _Options, jax: JaxPlan | None) -> LaunchPlan:
    """Return the plan that the options describe; raises ``UsageError``."""
    from tfdyno.catalog.gpus import find
    from tfdyno.core.base.units import parse_bytes
    from tfdyno.jobs.launch.launch import known_settings

    engine = options.engine
    if options.check:
        _check_check(options)
    extra = extra_from(options.extra, known_settings(engine), engine)
    seen = _placed(options)
    folder = _folder(seen)
    _check_workload(seen, folder)
    name = options.name or name_of(options.workload)
    return LaunchPlan(
        engine=engine,
        name=name,
        reference=options.workload,
        script_arguments=options.script_arguments,
        options=(*run_words(options.run, unsafe=options.unsafe), *jax_words(jax)),
        nodes=options.nodes,
        gpus_per_node=_gpus(options),
        folder=folder,
        output=options.run.what.output or _output(seen.engine, name, folder),
        port=options.port or 0,
        time_limit_s=seconds_of(options.time_limit, "--time-limit") if options.time_limit else 0,
        restarts=0 if options.check else options.restarts,  # a check is not begun again
        python=options.python or _python(seen, dict(extra)),
        image=options.image or "",
        gpu=find(options.gpu).slug if options.gpu else "",
        cpus=options.cpus or 0,
        memory_bytes=round(parse_bytes(options.memory)) if options.memory else 0,
        environment=tuple(_variable(text) for text in options.variables),
        is_check=options.check,
        extra=extra,
    )


def _check_check(options: _Options) -> None:
    """Refuse a check of the nodes that would not say what it is asked."""
    if options.engine == "ray":
        remedy = "run tfdyno doctor --cluster on its nodes"
        raise UsageError("--check does not go with --on ray", remedy=remedy)
    if options.jax.backend == "jax":
        what, why = "--check does not go with --backend jax", "it measures TensorFlow's all-reduce"
        remedy = "check without --backend jax: ports, clocks and folders are the same"
        raise UsageError(what, why=why, remedy=remedy)
    if options.nodes < 2:
        raise UsageError("--check compares several nodes", remedy="say how many with --nodes")


def _check_workload(options: _Options, folder: str) -> None:
    """Refuse what cannot be read here; what lies elsewhere only is not looked for."""
    engine, reference, data = options.engine, options.workload, options.run.what.data or ""
    files = [text for text in (reference, data) if _file_of(text)]
    if engine in ("skypilot", "azureml"):
        for text in files:
            _check_copied(text, engine)
    if engine in IN_IMAGE:  # the folder is one of the nodes
        if Path(_file_of(reference) or ".").exists():
            _workload_at(options, reference)
        return
    if "://" in folder or (engine != "local" and folder and not Path(folder).is_dir()):
        return
    if folder and not Path(folder).is_dir():
        raise UsageError(f"there is no folder {folder}", remedy="check --workdir")
    seen_from = options.workdir or ""
    here = _seen(reference, seen_from) if reference in files else reference
    _workload_at(options, here)
    if data in files and not Path(folder, _file_of(data)).is_file():
        what = f"there is no file {Path(seen_from, _file_of(data))}"
        raise UsageError(what, remedy="name the file of --data as it is seen from --workdir")


def _placed(options: _Options) -> _Options:
    """Return the options with the engine that says where files are.

    On Kubernetes a cluster of Ray is in pods, as all else is there.
    """
    is_in_pods = any(text.partition("=")[0].strip() == "kuberay" for text in options.extra)
    is_kuberay = options.engine == "ray" and is_in_pods
    return replace(options, engine="kubernetes") if is_kuberay else options


def _files_in(options: _Options) -> str:
    """Return where a file of the command line is looked for: as given, or in --workdir."""
    workdir = options.workdir or ""
    is_elsewhere = _placed(options).engine in IN_IMAGE or "://" in workdir
    return "" if is_elsewhere else workdir


def _check_jax(options: _Options, reference: str) -> None:
    """Refuse what the JAX backend does not train, where it can be seen from here."""
    from tfdyno.core.train.jax_plan import check_settings
    from tfdyno.core.train.training import RunSettings
    from tfdyno.jobs.train.jax_run import check_script

    norms, board = options.run.how.norms or 0, bool(options.run.how.tensorboard)
    check_settings(RunSettings(norms_steps=norms, tensorboard=board))
    place = Path(_files_in(options))
    if (file := _file_of(reference)) and (place / file).exists():
        here = _seen(reference, place)
        check_script(_workload_at(options, here))


def _workload_at(options: _Options, reference: str) -> Workload:
    named = WorkloadOptions(workload=reference, script_arguments=options.script_arguments)
    return workload_from(
        named,
        CodeOptions(input_shapes=options.run.input_shapes, unsafe=options.unsafe),
        fine_tune=options.run.fine_tune,
    )


def _file_of(reference: str) -> str:
    """Return the file of a workload or of its data, or a preset's folder; empty: it has none."""
    place, _, rest = reference.partition(":")
    if reference.startswith(HUB_PREFIX):
        return rest if "/" in rest and "://" not in rest else ""
    return place if place.endswith((".py", ".keras", ".h5", ".hdf5", *TEXT_FILES)) else ""


def _seen(reference: str, folder: str | Path) -> str:
    """Return a workload that has a file as it is seen from here, where it is one of a folder."""
    prefix = HUB_PREFIX if reference.startswith(HUB_PREFIX) else ""
    return f"{prefix}{Path(folder, reference.removeprefix(prefix))}"


def _check_copied(text: str, engine: str) -> None:
    path = Path(_file_of(text))
    if path.is_absolute() or ".." in path.parts:
        raise UsageError(
            f"{text} is not there on the nodes",
            why=f"--on {engine} copies the folder of --workdir, and names in it are relative",
            remedy="name it as it is seen from --workdir",
        )


def _folder(options: _Options) -> str:
    """Return where the nodes run it; empty: where the engine starts them."""
    if options.engine in (*HERE, "azureml"):  # whose file names a folder of this machine
        return str(Path(options.workdir or ".").absolute())
    return options.workdir or (ON_IMAGE if options.engine == "kubernetes" else "")


def _gpus(options: _Options) -> int:
    """Return GPUs of a node, of which only those of this machine are known."""
    if options.gpus is not None or options.engine != "local":
        return options.gpus or 0
    import os

    from tfdyno.jobs.launch.launch import own_share

    return own_share(options.nodes, os.environ.get("CUDA_VISIBLE_DEVICES"))


def _python(options: _Options, extra: dict[str, str]) -> str:
    """Return the interpreter of the nodes: this one, where nothing else brings one."""
    brings = options.image or extra.get("activate") or extra.get("module")
    return sys.executable if options.engine in HERE and not brings else "python3"


def _output(engine: str, name: str, folder: str) -> str:
    """Return a new folder where the run is watched; else one that a job finds again."""
    if engine not in WATCHED:
        return f"{FOLDER}/{name}"
    import time

    from tfdyno.store.run_folder import unused

    stem = f"{name}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    return f"{FOLDER}/{unused(Path(folder, FOLDER, stem)).name}"


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--env {text} cannot be read", remedy="write --env NAME=VALUE")
    return name, value


def _submit(plan: LaunchPlan) -> Answer:
    from tfdyno.jobs.launch.launch import run_folder, submit_command, submitted

    path, said = submitted(plan, FOLDER)
    return Answer(
        document=lambda: {"plan": plan, "path": str(path), "said": said},
        text=lambda **_: (
            f"{' '.join(submit_command(plan, path))}: {said or 'done'}\n"
            f"Its run is in {run_folder(plan)} on the nodes."
        ),
    )


def _check_here(plan: LaunchPlan, told: Watched) -> Answer:
    from tfdyno.cli.measure.doctor_cluster import check_here
    from tfdyno.jobs.doctor.cluster import ClusterRequest

    output = str(Path(plan.folder or ".", plan.output))
    asked = ClusterRequest(
        output=output, nodes=plan.nodes, gpus_per_node=plan.gpus_per_node, port=plan.port
    )
    return check_here(asked, quiet=told.quiet, verbose=told.verbose)


def _run_here(plan: LaunchPlan, options: _Options) -> Answer:
    run: Callable[..., Any]
    if plan.engine == "ray":
        from tfdyno.jobs.launch.ray import launch_ray as run
    else:
        from tfdyno.jobs.launch.local import launch_local

        run = partial(launch_local, wait_free=options.wait_free)
    from tfdyno.cli.train.launch_answer import answer

    with _shown(options.told) as (progress, output):
        launched = run(plan, progress=progress, output=output)
    return answer(launched, plan)


@contextlib.contextmanager
def _shown(
    told: Watched,
) -> Iterator[tuple[Callable[[str], None], Callable[[str], None]]]:
    """Show the training: each worker's lines behind its name, in its colour."""
    from tfdyno.cli.train.train_progress import train_progress
    from tfdyno.cli.train.worker_lines import Requests, coloured, is_noise
    from tfdyno.view.base.text import colour_wanted

    colour, requests = colour_wanted(sys.stderr), Requests()
    with train_progress(quiet=told.quiet, verbose=told.verbose) as shown:

        def output(line: str) -> None:
            if told.verbose or not (is_noise(line) or requests.is_repeated(line)):
                shown.output(coloured(line, colour=colour))

        yield shown.progress, output
