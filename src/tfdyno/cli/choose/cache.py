"""``tfdyno cache``: show and clear what is kept to spare work the next time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import click

from tfdyno.cli.answer import Answer, tell
from tfdyno.cli.command import command, flag, many, option
from tfdyno.cli.options import JSON, OneOf, Read
from tfdyno.core.base.errors import ToolError, UsageError
from tfdyno.core.base.units import DAY_S, HOUR_S
from tfdyno.core.choose.cache_content import CACHE_KINDS

_UNITS_S = {"h": HOUR_S, "d": DAY_S, "w": 7 * DAY_S}


def _age_s(value: object) -> float:
    """Read a time as ``12h``, ``30d``, ``4w``, in seconds; raises ``UsageError``."""
    if isinstance(value, float):
        return value
    text = str(value).strip()
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS_S or not number.replace(".", "", 1).isdecimal() or not float(number):
        raise UsageError(f"--older-than {text} cannot be read",
                         remedy="write hours, days or weeks, as 12h, 30d or 4w")  # fmt: skip
    return float(number) * _UNITS_S[unit]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cleared:
    unused_for_s: float = option(
        "--older-than", type=Read("AGE", _age_s), default=0.0,
        help="Only what was not used for so long: 12h, 30d, 4w.",
    )  # fmt: skip
    kinds: tuple[str, ...] = many(
        "--kind", type=OneOf("kind", CACHE_KINDS), help="Only this kind; many."
    )
    dry_run: bool = flag(help="Only say what would go.")
    as_json: bool = JSON


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def cache(context: click.Context, as_json: bool) -> int:
    """Show and clear kept programs, traces and autotune results.

    Programs that a training compiled, and what XLA's autotuning found, are kept by TensorFlow or
    JAX, card and driver, so that the next start takes them instead of compiling. TFDYNO_CACHE names
    another folder, TFDYNO_COMPILE_CACHE=off keeps no programs, and a size, as 10GiB, bounds them.
    """
    if context.invoked_subcommand:
        return 0
    from tfdyno.jobs.lookup.cache import content
    from tfdyno.view.lookup.cache_text import content_document, content_text

    found = content()
    told = Answer(
        document=partial(content_document, found),
        text=lambda width, **_: content_text(found, time.time(), width=width),
    )
    return tell(told, as_json=as_json)


@command(_Cleared, under=cache)
def clear(options: _Cleared) -> Answer:
    """Delete what is kept; all of it can be made again."""
    from tfdyno.jobs.lookup.cache import clear as remove
    from tfdyno.view.lookup.cache_text import cleared_document, cleared_text

    found = remove(options.kinds, unused_for_s=options.unused_for_s, dry=options.dry_run)
    removed = not options.dry_run
    left = ToolError(f"{len(found.left)} of the entries could not be deleted",
                     remedy="see who may write to the folder")  # fmt: skip
    return Answer(
        document=partial(cleared_document, found, removed=removed),
        text=lambda width, **_: cleared_text(found, removed=removed, width=width),
        error=left if found.left else None,
    )
