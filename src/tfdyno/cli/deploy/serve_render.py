"""``tfdyno serve --render``: options, and what is told of the files that were written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.answer import Answer, tell
from tfdyno.cli.command import PATH, given, option
from tfdyno.cli.options import Filled, OneOf, Telling, Whole
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.language_model import SERVED_PRECISIONS, ServedPrecision
from tfdyno.core.deploy.serving_plan import RENDERED

if TYPE_CHECKING:
    from tfdyno.jobs.serve.render import Rendered


@dataclass(frozen=True, slots=True, kw_only=True)
class Render:
    """What goes with ``--render``."""

    render: str | None = option(
        type=OneOf("--render", RENDERED), metavar="SERVER",
        help=f"Write the files of another server: {', '.join(RENDERED)}.",
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
    card: str | None = option(
        type=Filled(), metavar="NAME", help="With --render vllm: the card, as l4 or h100-sxm."
    )
    prompt: int | None = option(
        type=Whole("--prompt"), metavar="N",
        help="With --render vllm: tokens of a prompt.  [default: as long as the model takes]",
    )  # fmt: skip
    new_tokens: int | None = option(
        type=Whole("--new-tokens"), metavar="N", help="With --render vllm: of an answer."
    )
    precision: ServedPrecision | None = option(
        type=OneOf("--precision", SERVED_PRECISIONS), metavar="TYPE",
        help=f"With --render vllm: {', '.join(SERVED_PRECISIONS)}.  [default: as the card has]",
    )  # fmt: skip


_TEXT = ("card", "prompt", "new_tokens", "precision")
"""Options for a server of text alone."""
_OWN = ("output", "size", "replicas", "gpus", "cpus", "memory", "image", "storage", "namespace",
        *_TEXT)  # fmt: skip
_NOT_TEXT = ("size", "cpus", "memory", "max_delay_ms", "max_queue", "deadline_ms")
"""Options that a server of text has no place for."""
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

    typed = _typed()
    if not model:
        raise UsageError("there is no model to serve", remedy="name it: tfdyno serve MODEL")
    if not options.output:
        raise UsageError("--render writes a folder", remedy="name it with --output")
    is_text = options.render == "vllm"
    unused = {*_UNUSED, *_NOT_TEXT} - {"host"} if is_text else {*_UNUSED, *_TEXT}
    for one in sorted(typed & unused):
        raise UsageError(f"--{one.replace('_', '-')} is nothing that --render {options.render} "
                         "looks at", remedy="leave it out")  # fmt: skip
    write = (_text_server if is_text else _server)(model, name, options, own, typed)
    with progress_line(quiet=told.quiet, verbose=told.verbose) as heard:
        found = write(heard)
    paths = "\n".join(f"{found.output}/{path}" for path in (*found.files, found.model) if path)
    code = tell(Answer(document=lambda: found, text=lambda **_: paths), as_json=told.as_json)
    if not (told.as_json or told.quiet):
        for note in found.notes:
            click.echo(f"tfdyno: {note}.", err=True)
        click.echo(f"tfdyno: in {found.output}: {found.start}", err=True)
    return code


Writing = Callable[[Callable[[str], None]], "Rendered[Any]"]


def _text_server(
    model: str, name: str, options: Render, own: dict[str, Any], typed: set[str]
) -> Writing:
    from tfdyno.jobs.serve.render_vllm import VllmRequest
    from tfdyno.jobs.serve.render_vllm import render as write

    assert options.output
    if not options.card:
        raise UsageError("--render vllm needs to know the card", why="its sizes follow from it",
                         remedy="name it with --card: tfdyno gpus")  # fmt: skip
    chosen = {one: own[one] for one in ("port", "host") if one in typed}
    asked = VllmRequest(
        reference=model,
        output=options.output,
        card=options.card,
        gpus=options.gpus,
        prompt_tokens=options.prompt,
        new_tokens=options.new_tokens,
        precision=options.precision,
        most_requests=own["max_batch"] if "max_batch" in typed else None,
        name=name,
        image=options.image or "",
        storage=options.storage or "",
        namespace=options.namespace or "",
        replicas=options.replicas or "",
        **chosen,
    )
    return lambda heard: write(asked, heard=heard)


def _server(
    model: str, name: str, options: Render, own: dict[str, Any], typed: set[str]
) -> Writing:
    from tfdyno.core.base.units import parse_bytes
    from tfdyno.jobs.serve.render import RenderRequest
    from tfdyno.jobs.serve.render import render as write

    shared: dict[str, Any] = {
        _NAMES.get(one, one): float(own[one]) / unit if unit > 1 else own[one]
        for one, unit in _SHARED.items()
        if one in typed
    }
    assert options.render
    assert options.output
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
    return lambda heard: write(asked, heard=heard)


def _typed() -> set[str]:
    """Return names of the options that were given, not left at what is usual."""
    from click.core import ParameterSource

    context = click.get_current_context()
    usual = (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)
    return {name for name in context.params if context.get_parameter_source(name) not in usual}
