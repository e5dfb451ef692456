"""``tfdyno serve``: a model behind HTTP, with dynamic batching."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfdyno.cli.answer import Answer, tell
from tfdyno.cli.command import PATH, TEXT, argument, command, flag, given, group, option, values_of
from tfdyno.cli.deploy.serve_render import Render, check_unused, render
from tfdyno.cli.options import WAIT_FREE, Filled, NewFile, Positive, Telling, Whole, check_writable
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import MOST_PORT
from tfdyno.core.base.units import MIB
from tfdyno.words.base.amounts import capital

if TYPE_CHECKING:
    from tfdyno.jobs.serve.serve import Ready, ServeRequest
    from tfdyno.jobs.serve.setup import NeededSetup

TOKEN = "TFDYNO_SERVE_TOKEN"
YES = flag(help="Make the environment of serve without asking, where there is none.")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    model: str | None = argument(type=TEXT, required=False)
    name: str | None = option(
        type=Filled(), metavar="NAME", help="In the address.  [default: MODEL's]"
    )
    versions: str = option(
        type=Filled(), default="latest", show_default=True, metavar="WHICH",
        help="latest, all, or numbers with commas.",
    )  # fmt: skip
    host: str = option(
        type=Filled(), default="127.0.0.1", show_default=True, help="Address to listen on."
    )
    port: int = option(
        type=Whole("--port", least=0, most=MOST_PORT), default=8501, show_default=True,
        help="Of REST; 0: any that is free.",
    )  # fmt: skip
    grpc_port: int | None = option(
        type=Whole("--grpc-port", most=MOST_PORT),
        help="Of TensorFlow Serving's gRPC; without it there is none.",
    )  # fmt: skip
    token: str | None = option(
        type=Filled(), metavar="TEXT",
        help=f"That clients have to send; better: --token-file or {TOKEN}.",
    )  # fmt: skip
    token_file: Path | None = option(type=PATH, metavar="FILE", help="Holds the token.")
    insecure: bool = flag(help="Another --host than loopback without a token.")
    tls_cert: Path | None = option(type=PATH, metavar="FILE", help="Certificate, PEM.")
    tls_key: Path | None = option(type=PATH, metavar="FILE", help="Its key, PEM.")
    p99_ms: float | None = option(
        type=Positive("--p99-ms"), metavar="T",
        help="Choose batching so that 99 of 100 answers take no longer.",
    )  # fmt: skip
    requests_per_s: float | None = option(
        type=Positive("--requests-per-s"), metavar="N", help="With --p99-ms: how many come."
    )
    max_batch: int = option(
        type=Whole("--max-batch", most=65536), default=64, show_default=True,
        help="Samples put together at most; 1: never.",
    )  # fmt: skip
    max_delay_ms: str = option(
        type=Filled(), default="2", show_default=True, metavar="D",
        help="That the first waits for others.",
    )  # fmt: skip
    no_retreat: bool = flag(help="Fail where XLA fails to compile; do not start with less of XLA.")
    threads: int | None = option(
        type=Whole("--threads", most=4096), help="Of TensorFlow in an operation."
    )
    max_queue: int = option(
        type=Whole("--max-queue"), default=1024, show_default=True,
        help="Requests that wait; more are refused (429).",
    )  # fmt: skip
    deadline_ms: float | None = option(
        type=Positive("--deadline-ms"), metavar="T",
        help="Older ones are refused (503).  [default: --p99-ms, else 10000]",
    )  # fmt: skip
    max_body_mb: float = option(
        type=Positive("--max-body-mb"), default=32.0, metavar="N",
        help="Larger ones are refused (413).  [default: 32]",
    )  # fmt: skip
    log: Path | None = option(
        type=NewFile(), metavar="FILE", help="Add what the processes print to it."
    )
    wait_free: bool = WAIT_FREE
    setup: bool = flag(help="Make the environment that models are served in.")
    folder: str | None = option(type=Filled(), metavar="DIR", help="Where --setup makes it.")
    python: str | None = option(
        type=Filled(), metavar="PATH", help="Interpreter that --setup takes: 3.11, 3.12."
    )
    gpu: bool = flag(help="With --setup: TensorFlow's CUDA libraries as well.")
    yes: bool = YES
    rendering: Render = group(Render)
    told: Telling = group(Telling)


@command(_Options)
def serve(options: _Options) -> Answer | int:
    """Serve a model over HTTP with dynamic batching, by NVIDIA Triton.

    MODEL is a .keras file, a SavedModel folder, a folder with numbered SavedModels, or
    NAME[:VERSION] of the model store. Clients speak TensorFlow Serving's REST or KServe v2. A line
    "ready URL" tells when it answers. A new version is served without a lost request. SIGTERM or
    Ctrl-C: what is in flight is answered, within 10 s.

    The first time it asks whether it may make the environment that models are served in (1.8 GB):
    where there is no terminal, --yes or tfdyno serve --setup. With --render nothing is served: the
    files of another server are written.
    """
    if options.setup:
        return _setup(options)
    for name in given(options, "folder", "python", "gpu"):
        raise UsageError(f"{name} goes with --setup")
    if options.rendering.render:
        return render(options.model, options.name or "", options.rendering, values_of(options),
                      options.told)  # fmt: skip
    check_unused(options.rendering)
    if not options.model:
        raise UsageError("there is no model to serve", remedy="name it: tfdyno serve MODEL")
    from tfdyno.jobs.serve.serve import ServeReporter, check_model
    from tfdyno.jobs.serve.serve import serve as run
    from tfdyno.jobs.serve.setup import needed_setup

    request = _request(options, options.model)
    check_model(request)
    offer_setup(needed_setup(), options.told, yes=options.yes)
    with contextlib.ExitStack() as shown:
        progress = shown.enter_context(
            progress_line(quiet=options.told.quiet, verbose=options.told.verbose)
        )

        def ready(found: Ready) -> None:
            shown.close()
            _tell(found, options.told)

        def notice(text: str) -> None:
            if not options.told.quiet:
                click.echo(f"tfdyno: {text.rstrip('.')}.", err=True)

        run(request, ServeReporter(progress=progress, ready=ready, notice=notice))
    return 0


def offer_setup(needed: NeededSetup | None, told: Telling, *, yes: bool) -> None:
    """Make the environment where that is agreed to; else what needs it says that it is missing."""
    if not needed or not (yes or (sys.stdin.isatty() and _agreed(needed))):
        return
    from tfdyno.jobs.serve.setup import setup

    with progress_line(quiet=told.quiet, verbose=told.verbose) as progress:
        made = setup(folder=needed.folder, gpu=needed.gpu, progress=progress)
    if not told.quiet:
        size = f"{made.size_bytes / 1e9:.1f} GB"
        click.echo(f"tfdyno: the serving environment is in {made.folder} ({size}).", err=True)


def _agreed(needed: NeededSetup) -> bool:
    """Return whether the person says yes; on stderr, since what is printed is for programs."""
    more = " and TensorFlow's CUDA libraries, for this machine's GPU" if needed.gpu else ""
    size = f"{needed.size_bytes / 1e9:.1f} GB"
    click.echo(
        f"{capital(needed.why)}. Models are served in one of its own: packages "
        f"of {size}{more}, about a minute.",
        err=True,
    )
    return click.confirm("Make it now?", default=True, err=True)


def _request(options: _Options, model: str) -> ServeRequest:
    from tfdyno.jobs.serve.serve import ServeRequest

    check_writable(options.log)
    if options.requests_per_s and not options.p99_ms:
        raise UsageError("--requests-per-s goes with --p99-ms")
    return ServeRequest(
        reference=model,
        versions=options.versions,
        name=_name(options.name or ""),
        host=options.host,
        port=options.port,
        grpc_port=options.grpc_port,
        max_batch=options.max_batch,
        max_delay_ms=_delay_ms(options.max_delay_ms),
        p99_ms=options.p99_ms,
        requests_per_s=options.requests_per_s,
        max_queue=options.max_queue,
        deadline_ms=options.deadline_ms,
        max_body_bytes=int(options.max_body_mb * MIB),
        token=_token(options.token, options.token_file),
        insecure=options.insecure,
        tls_cert=options.tls_cert,
        tls_key=options.tls_key,
        threads=options.threads,
        retreat=not options.no_retreat,
        log=options.log,
        wait_free=options.wait_free,
    )


def _name(text: str) -> str:
    if text and not all(one.isascii() and (one.isalnum() or one in "._-") for one in text):
        raise UsageError(f"--name {text} cannot be part of an address",
                         remedy="take letters, digits, '.', '_' and '-'")  # fmt: skip
    return text


def _delay_ms(text: str) -> float:
    """Return milliseconds, 0 included; raises ``UsageError``."""
    from tfdyno.core.base.settings import positive

    return 0.0 if text in ("0", "0.0") else positive(text, "--max-delay-ms")


def _token(typed: str | None, file: Path | None) -> str:
    """Return the token of the option, of the file or of the environment; raises ``UsageError``."""
    if typed and file:
        raise UsageError("--token and --token-file contradict", remedy="give one of them")
    if typed or not file:
        return typed or os.environ.get(TOKEN, "")
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}", why=str(error)) from None
    if not text:
        raise UsageError(f"{file} is empty", remedy="write the token into it")
    return text


def _tell(ready: Ready, told: Telling) -> None:
    """Print at once the line that it answers; why it batches as it does goes to stderr."""
    line = Answer(document=lambda: ready, indent=0, text=lambda **_: f"ready {ready.url}")
    tell(line, as_json=told.as_json)
    if told.quiet:
        return
    if ready.batching.reason:
        said = f"By the model alone, without HTTP: {ready.batching.reason.rstrip('.')}."
        click.echo(f"tfdyno: {said}", err=True)
    for name, why in ready.batching.unbatched.items():
        click.echo(f"tfdyno: {name} is served one request at a time: {why}.", err=True)


def _setup(options: _Options) -> Answer:
    from tfdyno.jobs.serve.setup import setup

    if options.model:
        what = "--setup makes the environment and takes no model"
        raise UsageError(what, remedy=f"then run tfdyno serve {options.model}")
    folder = Path(options.folder) if options.folder else None
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        made = setup(folder=folder, python=options.python or "", gpu=options.gpu, progress=progress)
    verb = "made" if made.is_new else "already there"
    size = f"{made.size_bytes / 1e9:.1f} GB"
    text = f"Serving environment {verb}: {made.folder} ({size})"
    return Answer(document=lambda: made, text=lambda **_: text)
