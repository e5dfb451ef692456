"""``tfdyno edge``: does a model fit a phone, a board or a microcontroller, and how fast is it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import TEXT, argument, command, flag, group, option
from tfdyno.cli.options import HTML, UNSAFE, Filled, Positive, Telling, Wholes, check_writable
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.errors import UsageError

MOST_THREADS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    model: str | None = argument(type=TEXT, required=False, metavar="MODEL")
    device: str = option(
        type=Filled(), default="all", show_default=True, metavar="SLUG[,SLUG]",
        help="Devices, or kinds as phone, jetson, microcontroller.",
    )  # fmt: skip
    listed: bool = flag("--list", help="Name the devices of the catalogue.")
    threads: tuple[int, ...] = option(
        type=Wholes("threads"), default=(1, 2),
        help="To measure with on this CPU.  [default: 1,2]",
    )  # fmt: skip
    seconds: float = option(
        type=Positive("seconds"), default=0.3, show_default=True, metavar="S",
        help="Of each of the 9 turns of measuring.",
    )  # fmt: skip
    no_measure: bool = flag(help="Do not run the model here.")
    write: str | None = option(
        type=Filled(), metavar="DIR",
        help="Write the model with C, Android, Jetson and Raspberry Pi code for it.",
    )  # fmt: skip
    unsafe: bool = UNSAFE
    html: Path | None = HTML
    told: Telling = group(Telling)


@command(_Options)
def edge(options: _Options) -> Answer:
    """Say on which phones, boards and microcontrollers a model fits.

    MODEL is a .tflite file as tfdyno export writes it, or a .keras file or file.py:function, which
    is converted to floats first; or NAME[:V] of the model store.

    Memory, operators and a class of latency come from the file and the catalogue; on this CPU the
    model is run and timed. With --device the exit code is 1 where it does not fit.
    """
    from tfdyno.catalog.edge_devices import all_devices, parse_list
    from tfdyno.core.base.clock import today
    from tfdyno.core.base.version import VERSION
    from tfdyno.core.deploy.edge_document import devices_document, edge_document
    from tfdyno.jobs.deploy.edge import EdgeRequest
    from tfdyno.jobs.deploy.edge import edge as judge
    from tfdyno.view.deploy.edge_text import devices_text, edge_text

    every = all_devices()
    if options.listed:
        return Answer(
            document=partial(devices_document, every), text=lambda **_: devices_text(every)
        )
    if not options.model:
        raise UsageError("no model was named",
                         remedy="name a .tflite or .keras file, or --list the devices")  # fmt: skip
    from tfdyno.view.deploy.edge_page import edge_page  # with all that draws

    devices = parse_list(options.device)
    check_writable(options.html)
    request = EdgeRequest(
        model=options.model,
        devices=devices,
        threads=() if options.no_measure else _threads(options.threads),
        seconds=options.seconds,
        write=Path(options.write) if options.write else None,
        unsafe=options.unsafe,
    )
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        report = judge(request, progress=progress)
    written = f"\n\n{options.write} holds the model and its code: read README.md in it first."
    return Answer(
        files=(
            (options.html, partial(edge_page, report, date=today().isoformat(), version=VERSION)),
        ),
        document=partial(edge_document, report),
        text=partial(edge_text, report),
        tail=written if options.write else "",
        exit_code=int(len(devices) < len(every) and not all(one.fits for one in report.verdicts)),
    )


def _threads(counts: tuple[int, ...]) -> tuple[int, ...]:
    if max(counts) > MOST_THREADS:
        raise UsageError(f"{max(counts)} threads are too many", remedy=f"at most {MOST_THREADS}")
    return tuple(dict.fromkeys(counts))
