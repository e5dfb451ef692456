"""``tfdyno cache``: show and clear what is kept to spare work the next time."""

from __future__ import annotations

import time

import click

from tfdyno.cli.options import JSON, OneOf
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.choose.cache_content import CACHE_KINDS

_UNITS_S = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


class Age(click.ParamType[float]):
    """A time as ``12h``, ``30d``, ``4w``, in seconds."""

    name = "AGE"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the time; raises ``UsageError``."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        number, unit = text[:-1], text[-1:]
        if unit not in _UNITS_S or not number.replace(".", "", 1).isdecimal() or not float(number):
            raise UsageError(f"--older-than {text} cannot be read",
                             remedy="write hours, days or weeks, as 12h, 30d or 4w")  # fmt: skip
        return float(number) * _UNITS_S[unit]


@click.group(invoke_without_command=True)
@JSON
@click.pass_context
def cache(context: click.Context, as_json: bool) -> None:
    """Show and clear kept programs, traces and autotune results.

    Programs that a training compiled, and what XLA's autotuning found, are kept by TensorFlow or
    JAX, card and driver, so that the next start takes them instead of compiling. TFDYNO_CACHE names
    another folder, TFDYNO_COMPILE_CACHE=off keeps no programs, and a size, as 10GiB, bounds them.
    """
    if context.invoked_subcommand:
        return
    from tfdyno.jobs.lookup.cache import content

    found = content()
    if as_json:
        from tfdyno.view.lookup.cache_document import content_document

        _print_json(content_document(found))
        return
    from tfdyno.view.base.text import terminal_width
    from tfdyno.view.lookup.cache_text import content_text

    click.echo(content_text(found, time.time(), width=terminal_width()))


@cache.command()
@click.option(
    "--older-than",
    "unused_for_s",
    type=Age(),
    default=0.0,
    help="Only what was not used for so long: 12h, 30d, 4w.",
)
@click.option(
    "--kind",
    "kinds",
    type=OneOf("kind", CACHE_KINDS),
    multiple=True,
    help="Only this kind; many.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@JSON
def clear(unused_for_s: float, kinds: tuple[str, ...], dry_run: bool, as_json: bool) -> None:
    """Delete what is kept; all of it can be made again."""
    from tfdyno.jobs.lookup.cache import clear as remove

    found = remove(kinds, unused_for_s=unused_for_s, dry=dry_run)
    if as_json:
        from tfdyno.view.lookup.cache_document import cleared_document

        _print_json(cleared_document(found, removed=not dry_run))
    else:
        from tfdyno.view.base.text import terminal_width
        from tfdyno.view.lookup.cache_text import cleared_text

        click.echo(cleared_text(found, removed=not dry_run, width=terminal_width()))
    if found.left:
        raise ToolError(f"{len(found.left)} of the entries could not be deleted",
                        remedy="see who may write to the folder")  # fmt: skip


def _print_json(document: dict[str, object]) -> None:
    from tfdyno.core.base.codec import to_json

    click.echo(to_json(document, indent=2).decode())
