"""``tfdyno ui``: a local page to play with card, batch, precision, price and length of a run."""

from __future__ import annotations

import contextlib
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfdyno.cli.answer import Answer, tell
from tfdyno.cli.command import PATH, TEXT, argument, command, flag, group, option
from tfdyno.cli.options import Telling, Whole
from tfdyno.cli.workload_options import CodeOptions, WorkloadOptions, workload_from
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import MOST_PORT

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    workload: str | None = argument(type=TEXT, required=False)
    script_arguments: tuple[str, ...] = argument(nargs=-1, type=click.UNPROCESSED)
    port: int | None = option(
        type=Whole("--port", least=0, most=MOST_PORT),
        help="To listen on; 0: any that is free.  [default: 8710, or any that is free]",
    )  # fmt: skip
    folder: Path = option(
        type=PATH, default=Path(), metavar="DIR",
        help="Whose results and runs the other pages show.  [default: this folder]",
    )  # fmt: skip
    no_browser: bool = flag(help="Print the address and open nothing.")
    code: CodeOptions = group(CodeOptions)
    told: Telling = group(Telling)


@command(_Options)
def ui(options: _Options) -> int:
    """Show a local page that answers while you move its controls.

    It listens on this machine only, and runs no code but the trace of WORKLOAD, or of a model of
    Keras that you choose there. Each figure is the answer of a command, which stands beside it.
    A second page has all results below a folder, side by side; a third follows what runs there.
    Ctrl-C ends it.
    """
    given = _workload(options)
    if not options.folder.is_dir():
        raise UsageError(f"there is no folder {options.folder}")
    try:
        from tfdyno.ui.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn", "anyio", "h11"):
            raise
        raise UsageError(
            "the page needs starlette and uvicorn", why=f"{error.name} is not installed",
            remedy="run pip install 'tfdyno[ui]'",
        ) from None  # fmt: skip

    def ready(url: str) -> None:
        line = Answer(document=lambda: {"url": url}, indent=0, text=lambda **_: f"ready {url}")
        tell(line, as_json=options.told.as_json)
        if not options.told.quiet:
            click.echo("tfdyno: Ctrl-C ends it.", err=True)
        if not options.no_browser:
            import webbrowser

            # one of the terminal would wait here until it is left
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    with contextlib.suppress(KeyboardInterrupt):
        serve(given, folder=options.folder, port=options.port, ready=ready)
    return 0


def _workload(options: _Options) -> Workload | None:
    if not options.workload:
        return None
    named = WorkloadOptions(workload=options.workload, script_arguments=options.script_arguments)
    return workload_from(named, options.code)
