"""``tfdyno report``: a project's results as sentences, as one page, and beside its other runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import argument, command, option
from tfdyno.cli.options import HTML, JSON, Filled, check_writable

if TYPE_CHECKING:
    from tfdyno.core.project.report import ProjectReport


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    project: str | None = argument(type=Filled(), required=False, metavar="[PROJECT]")
    run: str | None = option(type=Filled(), metavar="ID", help="Of this run.  [default: newest]")
    against: str | None = option(type=Filled(), metavar="ID", help="Compare with this older run.")
    html: Path | None = HTML
    as_json: bool = JSON


@command(_Options)
def report(options: _Options) -> Answer:
    """Join a project's results into one page, with its history.

    PROJECT is its file, or a folder with the runs of all its projects; without it, project.toml
    here. An ID may be cut to its beginning;
    tfdyno runs list has them.

    The answer comes first: what each step found. Then what changed from run to run, and what it
    gained: as a ratio with its interval, or why that cannot be told.
    """
    from tfdyno.jobs.project.report import report as join
    from tfdyno.jobs.project.runs import history_at
    from tfdyno.view.project.document import report_document
    from tfdyno.view.project.text import report_text

    html = options.html
    check_writable(html)
    found = join(history_at(options.project), run=options.run or "", against=options.against or "")
    return Answer(
        files=((html, partial(_page, found)),),
        document=partial(report_document, found),
        text=partial(report_text, found),
        tail=f"\n\nWrote {html}." if html else "",
    )


def _page(found: ProjectReport) -> str:
    from tfdyno.jobs.project.report import benches
    from tfdyno.view.project.page import project_page

    return project_page(found, benches(found.told))
