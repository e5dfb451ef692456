"""``tfdyno serve``: a model behind HTTP, with dynamic batching."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.deploy.serve_render import RENDER, check_unused, render
from tfdyno.cli.options import (
    JSON,
    QUIET,
    WAIT_FREE,
    Filled,
    NewFile,
    Positive,
    Whole,
    check_writable,
    together,
)
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import MOST_PORT

if TYPE_CHECKING:
    from tfdyno.jobs.serve.serve import Ready, ServeRequest
    from tfdyno.jobs.serve.setup import NeededSetup

TOKEN = "TFDYNO_SERVE_TOKEN"
MIB = 1024**2
FILE = click.Path(path_type=Path)

SETUP = together(
    click.option("--setup", is_flag=True, help="Make the environment that models are served in."),
    click.option("--folder", type=Filled(), metavar="DIR", help="Where --setup makes it."),
    click.option(
        "--python",
        type=Filled(),
        metavar="PATH",
        help="Interpreter that --setup takes: 3.11, 3.12.",
    ),
    click.option("--gpu", is_flag=True, help="With --setup: TensorFlow's CUDA libraries as well."),
)
YES = click.option(
    "--yes", is_flag=True, help="Make the environment of serve without asking, where there is none."
)
ADDRESS = together(
    click.option("--host", type=Filled(), default="127.0.0.1", show_default=True,
                 help="Address to listen on."),
    click.option("--port", type=Whole("--port", least=0, most=MOST_PORT), default=8501,
                 show_default=True, help="Of REST; 0: any that is free."),
    click.option("--grpc-port", type=Whole("--grpc-port", most=MOST_PORT),
                 help="Of TensorFlow Serving's gRPC; without it there is none."),
    click.option("--token", type=Filled(), metavar="TEXT",
                 help=f"That clients have to send; better: --token-file or {TOKEN}."),
    click.option("--token-file", type=FILE, metavar="FILE", help="Holds the token."),
    click.option("--insecure", is_flag=True, help="Another --host than loopback without a token."),
    click.option("--tls-cert", type=FILE, metavar="FILE", help="Certificate, PEM."),
    click.option("--tls-key", type=FILE, metavar="FILE", help="Its key, PEM."),
)  # fmt: skip
BATCHING = together(
    click.option("--p99-ms", type=Positive("--p99-ms"), metavar="T",
                 help="Choose batching so that 99 of 100 answers take no longer."),
    click.option("--requests-per-s", type=Positive("--requests-per-s"), metavar="N",
                 help="With --p99-ms: how many come."),
    click.option("--max-batch", type=Whole("--max-batch", most=65536), default=64,
                 show_default=True, help="Samples put together at most; 1: never."),
    click.option("--max-delay-ms", type=Filled(), default="2", show_default=True,
                 metavar="D", help="That the first waits for others."),
    click.option("--no-retreat", is_flag=True,
                 help="Fail where XLA fails to compile; do not start with less of XLA."),
    click.option("--threads", type=Whole("--threads", most=4096),
                 help="Of TensorFlow in an operation."),
)  # fmt: skip
LIMITS = together(
    click.option("--max-queue", type=Whole("--max-queue"), default=1024, show_default=True,
                 help="Requests that wait; more are refused (429)."),
    click.option("--deadline-ms", type=Positive("--deadline-ms"), metavar="T",
                 help="Older ones are refused (503).  [default: --p99-ms, else 10000]"),
    click.option("--max-body-mb", type=Positive("--max-body-mb"), default=32, show_default=True,
                 metavar="N", help="Larger ones are refused (413)."),
)  # fmt: skip


@click.command()
@click.argument("model", required=False)
@click.option("--name", type=Filled(), metavar="NAME", help="In the address.  [default: MODEL's]")
@click.option("--versions", type=Filled(), default="latest", show_default=True,
              metavar="WHICH", help="latest, all, or numbers with commas.")  # fmt: skip
@ADDRESS
@BATCHING
@LIMITS
@click.option("--log", type=NewFile(), metavar="FILE", help="Add what the processes print to it.")
@WAIT_FREE
@SETUP
@YES
@RENDER
@JSON
@QUIET
@click.option("-v", "--verbose", is_flag=True, help="Show every stage.")
def serve(**given: Any) -> None:
    """Serve a model over HTTP with dynamic batching, by NVIDIA Triton.

    MODEL is a .keras file, a SavedModel folder, a folder with numbered SavedModels, or
    NAME[:VERSION] of the model store. Clients speak TensorFlow Serving's REST or KServe v2. A line
    "ready URL" tells when it answers. A new version is served without a lost request. SIGTERM or
    Ctrl-C: what is in flight is answered, within 10 s.

    The first time it asks whether it may make the environment that models are served in (1.8 GB):
    where there is no terminal, --yes or tfdyno serve --setup. With --render nothing is served: the
    files of another server are written.
    """
    if given["setup"]:
        _setup(given)
        return
    for option in ("folder", "python", "gpu"):
        if given[option]:
            raise UsageError(f"--{option} goes with --setup")
    if given["render"]:
        render(given)
        return
    check_unused(given)
    if not given["model"]:
        raise UsageError("there is no model to serve", remedy="name it: tfdyno serve MODEL")
    from tfdyno.jobs.serve.serve import ServeReporter, check_model
    from tfdyno.jobs.serve.serve import serve as run
    from tfdyno.jobs.serve.setup import needed_setup

    question = _question(given)
    check_model(question)
    offer_setup(needed_setup(), given)
    with contextlib.ExitStack() as shown:
        progress = shown.enter_context(
            progress_line(quiet=given["quiet"], verbose=given["verbose"])
        )

        def ready(found: Ready) -> None:
            shown.close()
            _print(found, given)

        def notice(text: str) -> None:
            if not given["quiet"]:
                click.echo(f"tfdyno: {text.rstrip('.')}.", err=True)

        run(question, ServeReporter(progress=progress, ready=ready, notice=notice))


def offer_setup(needed: NeededSetup | None, given: dict[str, Any]) -> None:
    """Make the environment where that is agreed to; else what needs it says that it is missing."""
    if not needed or not (given["yes"] or (sys.stdin.isatty() and _agreed(needed))):
        return
    from tfdyno.jobs.serve.setup import setup

    verbose = given.get("verbose", False)
    with progress_line(quiet=given["quiet"], verbose=verbose) as progress:
        made = setup(folder=needed.folder, gpu=needed.gpu, progress=progress)
    if not given["quiet"]:
        size = f"{made.size_bytes / 1e9:.1f} GB"
        click.echo(f"tfdyno: the serving environment is in {made.folder} ({size}).", err=True)


def _agreed(needed: NeededSetup) -> bool:
    """Whether the person says yes; on stderr, since what is printed is for programs."""
    more = " and TensorFlow's CUDA libraries, for this machine's GPU" if needed.gpu else ""
    size = f"{needed.size_bytes / 1e9:.1f} GB"
    click.echo(
        f"{needed.why[:1].upper()}{needed.why[1:]}. Models are served in one of its own: packages "
        f"of {size}{more}, about a minute.",
        err=True,
    )
    return click.confirm("Make it now?", default=True, err=True)


def _question(given: dict[str, Any]) -> ServeRequest:
    from tfdyno.jobs.serve.serve import ServeRequest

    if given["log"]:
        check_writable(given["log"])
    if given["requests_per_s"] and not given["p99_ms"]:
        raise UsageError("--requests-per-s goes with --p99-ms")
    taken = ("host", "port", "grpc_port", "p99_ms", "requests_per_s", "max_batch", "threads",
             "max_queue", "deadline_ms", "insecure", "tls_cert", "tls_key", "log",
             "versions", "wait_free")  # fmt: skip
    return ServeRequest(
        reference=given["model"],
        name=_name(given["name"] or ""),
        max_delay_ms=_delay_ms(given["max_delay_ms"]),
        max_body_bytes=int(given["max_body_mb"] * MIB),
        token=_token(given),
        retreat=not given["no_retreat"],
        **{key: given[key] for key in taken},
    )


def _name(text: str) -> str:
    if text and not all(one.isascii() and (one.isalnum() or one in "._-") for one in text):
        raise UsageError(f"--name {text} cannot be part of an address",
                         remedy="take letters, digits, '.', '_' and '-'")  # fmt: skip
    return text


def _delay_ms(text: str) -> float:
    """Milliseconds, 0 included; raises ``UsageError``."""
    from tfdyno.core.base.settings import positive

    return 0.0 if text in ("0", "0.0") else positive(text, "--max-delay-ms")


def _token(given: dict[str, Any]) -> str:
    """The token of the option, of the file or of the environment; raises ``UsageError``."""
    if given["token"] and given["token_file"]:
        raise UsageError("--token and --token-file contradict", remedy="give one of them")
    if given["token"]:
        return str(given["token"])
    if not given["token_file"]:
        return os.environ.get(TOKEN, "")
    try:
        text = given["token_file"].read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {given['token_file']}", why=str(error)) from None
    if not text:
        raise UsageError(f"{given['token_file']} is empty", remedy="write the token into it")
    return str(text)


def _print(ready: Ready, given: dict[str, Any]) -> None:
    """The line that says that it answers, at once; why it batches as it does goes to stderr."""
    if given["as_json"]:
        from tfdyno.core.base.codec import to_json

        click.echo(to_json(ready).decode())
    else:
        click.echo(f"ready {ready.url}")
    if given["quiet"]:
        return
    if ready.batching.reason:
        said = f"By the model alone, without HTTP: {ready.batching.reason.rstrip('.')}."
        click.echo(f"tfdyno: {said}", err=True)
    for name, why in ready.batching.unbatched.items():
        click.echo(f"tfdyno: {name} is served one request at a time: {why}.", err=True)


def _setup(given: dict[str, Any]) -> None:
    from tfdyno.core.base.codec import to_json
    from tfdyno.jobs.serve.setup import setup

    if given["model"]:
        what = "--setup makes the environment and takes no model"
        raise UsageError(what, remedy=f"then run tfdyno serve {given['model']}")
    folder = Path(given["folder"]) if given["folder"] else None
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        made = setup(
            folder=folder, python=given["python"] or "", gpu=given["gpu"], progress=progress
        )
    if given["as_json"]:
        click.echo(to_json(made, indent=2).decode())
        return
    verb = "made" if made.is_new else "already there"
    click.echo(f"Serving environment {verb}: {made.folder} ({made.size_bytes / 1e9:.1f} GB)")
