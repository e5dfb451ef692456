"""``tfdyno report``: a project's results as sentences, as one page, and beside its other runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfdyno.cli.options import HTML, JSON, Filled, check_writable

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.project.report import ProjectReport


@click.command()
@click.argument("project", required=False, type=Filled(), metavar="[PROJECT]")
@click.option("--run", "run", type=Filled(), metavar="ID", help="Of this run.  [default: newest]")
@click.option("--against", type=Filled(), metavar="ID", help="Compare with this older run.")
@HTML
@JSON
def report(
    project: str | None, run: str | None, against: str | None, html: Path | None, as_json: bool
) -> None:
    """Join a project's results into one page, with its history.

    PROJECT is its file, or a folder with the runs of all its projects; without it, project.toml
    here. An ID may be cut to its beginning;
    tfdyno runs list has them.

    The answer comes first: what each step found. Then what changed from run to run, and what it
    gained: as a ratio with its interval, or why that cannot be told.
    """
    from tfdyno.jobs.project.report import benches
    from tfdyno.jobs.project.report import report as join
    from tfdyno.jobs.project.runs import history_at

    if html:
        check_writable(html)
    found = join(history_at(project), run=run or "", against=against or "")
    if html:
        from tfdyno.core.base.codec import write_atomic
        from tfdyno.view.project.page import project_page

        write_atomic(html, project_page(found, benches(found.told)).encode())
    _print(found, html, as_json=as_json)


def _print(found: ProjectReport, html: Path | None, *, as_json: bool) -> None:
    if as_json:
        from tfdyno.core.base.codec import to_json
        from tfdyno.view.project.document import report_document

        click.echo(to_json(report_document(found), indent=2).decode())
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.project.text import report_text

    colour = colour_wanted()
    click.echo(report_text(found, width=terminal_width(), colour=colour), color=colour)
    if html:
        click.echo(f"\nWrote {html}.")
