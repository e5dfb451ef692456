"""``tfdyno serve --render``: options, and what is told of the files that were written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import Filled, OneOf, Whole, together
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.serving_plan import ENGINES

if TYPE_CHECKING:
    from tfdyno.jobs.serve.render import Rendered

_PATH = click.Path(path_type=Path)
RENDER = together(
    click.option("--render", type=OneOf("--render", ENGINES), metavar="SERVER",
                 help=f"Write the files of another server: {', '.join(ENGINES)}."),
    click.option("-o", "--output", type=_PATH, metavar="DIR", help="With --render: new folder."),
    click.option("--size", type=_PATH, metavar="FILE",
                 help="With --render: what advise --scenario serve --json printed."),
    click.option("--replicas", type=Filled(), metavar="N[:M]",
                 help="With --render: fewest and most."),
    click.option("--gpus", type=Whole("--gpus", least=0, most=16), metavar="N",
                 help="With --render: of a replica."),
    click.option("--cpus", type=Whole("--cpus", most=1024), metavar="N",
                 help="With --render: of a replica."),
    click.option("--memory", type=Filled(), metavar="SIZE",
                 help="With --render: of a replica, as 4GiB."),
    click.option("--image", type=Filled(), metavar="NAME",
                 help="With --render: container in place of the official one."),
    click.option("--storage", type=Filled(), metavar="URI",
                 help="With --render: where a cluster finds the model, as pvc://models/cnn."),
    click.option("--namespace", type=Filled(), metavar="NAME",
                 help="With --render: of Kubernetes."),
)  # fmt: skip
_OWN = ("output", "size", "replicas", "gpus", "cpus", "memory", "image", "storage", "namespace")
_SHARED = {"max_batch": 1, "max_delay_ms": 1e3, "max_queue": 1, "deadline_ms": 1e3, "port": 1}
"""Options of serving itself that a file takes over, with what turns them into the plan's unit."""
_NAMES = {"max_batch": "max_batch_size", "max_delay_ms": "max_delay_s", "deadline_ms": "deadline_s"}
_UNUSED = ("grpc_port", "token", "token_file", "insecure", "tls_cert", "tls_key", "p99_ms",
           "requests_per_s", "threads", "max_body_mb", "log", "versions", "host")  # fmt: skip


def check_unused(given: dict[str, Any]) -> None:
    """Refuse what goes with ``--render`` alone; raises ``UsageError``."""
    for name in _OWN:
        if given[name] is not None:
            raise UsageError(f"--{name} goes with --render")


def render(given: dict[str, Any]) -> None:
    """Write the files and tell of them."""
    from tfdyno.cli.progress import progress_line
    from tfdyno.core.base.units import parse_bytes
    from tfdyno.jobs.serve.render import RenderRequest
    from tfdyno.jobs.serve.render import render as write

    _check(given)
    typed = _typed()
    shared: dict[str, Any] = {
        _NAMES.get(name, name): float(given[name]) / unit if unit > 1 else given[name]
        for name, unit in _SHARED.items()
        if name in typed
    }
    asked = RenderRequest(
        reference=given["model"],
        engine=given["render"],
        output=given["output"],
        name=given["name"] or "",
        size=given["size"],
        replicas=given["replicas"] or "",
        cpus=given["cpus"],
        gpus=given["gpus"],
        memory_bytes=int(parse_bytes(given["memory"])) if given["memory"] else None,
        image=given["image"] or "",
        storage=given["storage"] or "",
        namespace=given["namespace"] or "",
        **shared,
    )
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as heard:
        found = write(asked, heard=heard)
    _print(found, as_json=given["as_json"], quiet=given["quiet"])


def _check(given: dict[str, Any]) -> None:
    if not given["model"]:
        raise UsageError("there is no model to serve", remedy="name it: tfdyno serve MODEL")
    if not given["output"]:
        raise UsageError("--render writes a folder", remedy="name it with --output")
    for name in sorted(_typed() & set(_UNUSED)):
        option = name.replace("_", "-")
        raise UsageError(f"--{option} is nothing that --render looks at", remedy="leave it out")


def _typed() -> set[str]:
    """Names of the options that were given, not left at what is usual."""
    from click.core import ParameterSource

    context = click.get_current_context()
    usual = (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    return {name for name in context.params if context.get_parameter_source(name) not in usual}


def _print(found: Rendered, *, as_json: bool, quiet: bool) -> None:
    from tfdyno.core.base.codec import to_json

    if as_json:
        click.echo(to_json(found, indent=2).decode())
        return
    for path in (*found.files, found.model):
        click.echo(f"{found.output}/{path}")
    if quiet:
        return
    for note in found.notes:
        click.echo(f"tfdyno: {note}.", err=True)
    click.echo(f"tfdyno: in {found.output}: {found.start}", err=True)
