"""``tfdyno edge``: does a model fit a phone, a board or a microcontroller, and how fast is it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import HTML, TOLD, UNSAFE, Filled, Positive, Wholes, check_writable
from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from tfdyno.core.deploy.edge import EdgeReport

MOST_THREADS = 64


@click.command()
@click.argument("model", required=False, metavar="MODEL")
@click.option(
    "--device", type=Filled(), default="all", show_default=True, metavar="SLUG[,SLUG]",
    help="Devices, or kinds as phone, jetson, microcontroller.",
)  # fmt: skip
@click.option("--list", "listed", is_flag=True, help="Name the devices of the catalogue.")
@click.option(
    "--threads", type=Wholes("threads"), default="1,2", show_default=True,
    help="To measure with on this CPU.",
)  # fmt: skip
@click.option(
    "--seconds", type=Positive("seconds"), default=0.3, show_default=True, metavar="S",
    help="Of each of the 9 turns of measuring.",
)  # fmt: skip
@click.option("--no-measure", is_flag=True, help="Do not run the model here.")
@click.option(
    "--write", type=Filled(), metavar="DIR",
    help="Write the model with C, Android, Jetson and Raspberry Pi code for it.",
)  # fmt: skip
@UNSAFE
@HTML
@TOLD
def edge(**given: Any) -> int:
    """Say on which phones, boards and microcontrollers a model fits.

    MODEL is a .tflite file as tfdyno export writes it, or a .keras file or file.py:function, which
    is converted to floats first; or NAME[:V] of the model store.

    Memory, operators and a class of latency come from the file and the catalogue; on this CPU the
    model is run and timed. With --device the exit code is 1 where it does not fit.
    """
    from tfdyno.catalog.edge_devices import all_devices, parse_list

    if given["listed"]:
        _print_devices(as_json=given["as_json"])
        return 0
    if not given["model"]:
        raise UsageError("no model was named",
                         remedy="name a .tflite or .keras file, or --list the devices")  # fmt: skip
    devices = parse_list(given["device"])
    if given["html"]:
        check_writable(given["html"])
    report = _judged(given, devices)
    if given["html"]:
        _write_page(report, given["html"])
    _print(report, given)
    chosen = len(devices) < len(all_devices())
    return int(chosen and not all(one.fits for one in report.verdicts))


def _judged(given: dict[str, Any], devices: tuple[Any, ...]) -> EdgeReport:
    from tfdyno.cli.progress import progress_line
    from tfdyno.jobs.deploy.edge import EdgeRequest
    from tfdyno.jobs.deploy.edge import edge as judge

    question = EdgeRequest(
        model=given["model"],
        devices=devices,
        threads=() if given["no_measure"] else _threads(given["threads"]),
        seconds=given["seconds"],
        write=Path(given["write"]) if given["write"] else None,
        unsafe=given["unsafe"],
    )
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        return judge(question, progress=progress)


def _threads(counts: tuple[int, ...]) -> tuple[int, ...]:
    if max(counts) > MOST_THREADS:
        raise UsageError(f"{max(counts)} threads are too many", remedy=f"at most {MOST_THREADS}")
    return tuple(dict.fromkeys(counts))


def _write_page(report: EdgeReport, path: Path) -> None:
    import datetime

    import tfdyno
    from tfdyno.core.base.codec import write_atomic
    from tfdyno.view.deploy.edge_page import edge_page

    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    page = edge_page(report, date=today, version=tfdyno.__version__)
    write_atomic(path, page.encode())


def _print(report: EdgeReport, given: dict[str, Any]) -> None:
    if given["as_json"]:
        from tfdyno.core.base.codec import to_json
        from tfdyno.view.deploy.edge_document import edge_document

        click.echo(to_json(edge_document(report), indent=2).decode())
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.deploy.edge_text import edge_text

    click.echo(edge_text(report, width=terminal_width(), colour=colour_wanted()))
    if given["write"]:
        click.echo(f"\n{given['write']} holds the model and its code: read README.md in it first.")


def _print_devices(*, as_json: bool) -> None:
    from tfdyno.catalog.edge_devices import all_devices

    if as_json:
        from tfdyno.core.base.codec import to_json
        from tfdyno.view.deploy.edge_document import devices_document

        click.echo(to_json(devices_document(all_devices()), indent=2).decode())
        return
    from tfdyno.view.deploy.edge_text import devices_text

    click.echo(devices_text(all_devices()))
