"""``tfdyno serve --render``: options, and what is told of the files that were written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tfdyno.cli.answer import Answer, tell
from tfdyno.cli.command import PATH, given, option
from tfdyno.cli.options import Filled, OneOf, Telling, Whole
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.serving_plan import ENGINES, Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Render:
    """What goes with ``--render``."""

    render: Engine | None = option(
        type=OneOf("--render", ENGINES), metavar="SERVER",
        help=f"Write the files of another server: {', '.join(ENGINES)}.",
    )  # fmt: skip
    output: Path | None = option(
        "-o", "--output", type=PATH, metavar="DIR", help="With --render: new folder."
    )
    size: Path | None = option(
        type=PATH, metavar="FILE",
        help="With --render: what advise --scenario serve --json printed.",
    )  # fmt: skip
    replicas: str | None = option(
        type=Filled(), metavar="N[:M]", help="With --render: fewest and most."
    )
    gpus: int | None = option(
        type=Whole("--gpus", least=0, most=16), metavar="N", help="With --render: of a replica."
    )
    cpus: int | None = option(
        type=Whole("--cpus", most=1024), metavar="N", help="With --render: of a replica."
    )
    memory: str | None = option(
        type=Filled(), metavar="SIZE", help="With --render: of a replica, as 4GiB."
    )
    image: str | None = option(
        type=Filled(), metavar="NAME", help="With --render: container in place of the official one."
    )
    storage: str | None = option(
        type=Filled(), metavar="URI",
        help="With --render: where a cluster finds the model, as pvc://models/cnn.",
    )  # fmt: skip
    namespace: str | None = option(
        type=Filled(), metavar="NAME", help="With --render: of Kubernetes."
    )


_OWN = ("output", "size", "replicas", "gpus", "cpus", "memory", "image", "storage", "namespace")
_SHARED = {"max_batch": 1, "max_delay_ms": 1e3, "max_queue": 1, "deadline_ms": 1e3, "port": 1}
"""Options of serving itself that a file takes over, with what turns them into the plan's unit."""
_NAMES = {"max_batch": "max_batch_size", "max_delay_ms": "max_delay_s", "deadline_ms": "deadline_s"}
_UNUSED = ("grpc_port", "token", "token_file", "insecure", "tls_cert", "tls_key", "p99_ms",
           "requests_per_s", "threads", "max_body_mb", "log", "versions", "host")  # fmt: skip


def check_unused(options: Render) -> None:
    """Refuse what goes with ``--render`` alone; raises ``UsageError``."""
    for name in given(options, *_OWN):
        raise UsageError(f"{name} goes with --render")


def render(
    model: str | None, name: str, options: Render, own: dict[str, Any], told: Telling
) -> int:
    """Write the files and tell of them.

    Args:
        model: To be served.
        name: Of it; empty: from the model.
        options: What goes with ``--render``.
        own: All options of ``tfdyno serve`` by name.
        told: How it is told.
    """
    from tfdyno.cli.progress import progress_line
    from tfdyno.core.base.units import parse_bytes
    from tfdyno.jobs.serve.render import RenderRequest
    from tfdyno.jobs.serve.render import render as write

    typed = _typed()
    if not model:
        raise UsageError("there is no model to serve", remedy="name it: tfdyno serve MODEL")
    if not options.output:
        raise UsageError("--render writes a folder", remedy="name it with --output")
    for one in sorted(typed & set(_UNUSED)):
        option = one.replace("_", "-")
        raise UsageError(f"--{option} is nothing that --render looks at", remedy="leave it out")
    shared: dict[str, Any] = {
        _NAMES.get(one, one): float(own[one]) / unit if unit > 1 else own[one]
        for one, unit in _SHARED.items()
        if one in typed
    }
    assert options.render
    asked = RenderRequest(
        reference=model,
        engine=options.render,
        output=options.output,
        name=name,
        size=options.size,
        replicas=options.replicas or "",
        cpus=options.cpus,
        gpus=options.gpus,
        memory_bytes=int(parse_bytes(options.memory)) if options.memory else None,
        image=options.image or "",
        storage=options.storage or "",
        namespace=options.namespace or "",
        **shared,
    )
    with progress_line(quiet=told.quiet, verbose=told.verbose) as heard:
        found = write(asked, heard=heard)
    paths = "\n".join(f"{found.output}/{path}" for path in (*found.files, found.model))
    code = tell(Answer(document=lambda: found, text=lambda **_: paths), as_json=told.as_json)
    if not (told.as_json or told.quiet):
        for note in found.notes:
            click.echo(f"tfdyno: {note}.", err=True)
        click.echo(f"tfdyno: in {found.output}: {found.start}", err=True)
    return code


def _typed() -> set[str]:
    """Return names of the options that were given, not left at what is usual."""
    from click.core import ParameterSource

    context = click.get_current_context()
    usual = (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    return {name for name in context.params if context.get_parameter_source(name) not in usual}
