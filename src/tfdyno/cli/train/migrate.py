"""``tfdyno migrate``: a Horovod script as one that tfdyno launch trains."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import JSON, Filled, Whole
from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.launch_plan import MOST_GPUS_PER_NODE, MOST_NODES

if TYPE_CHECKING:
    from tfdyno.core.doctor.migration import Migration

NODES = 2


@click.command()
@click.argument("script", type=Filled())
@click.argument("script_arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--nodes", type=Whole("--nodes", most=MOST_NODES), default=NODES, show_default=True,
              help="For the commands that are printed.")  # fmt: skip
@click.option("--gpus-per-node", "gpus",
              type=Whole("--gpus-per-node", least=0, most=MOST_GPUS_PER_NODE),
              help="For the commands that are printed; 0: the CPUs train.")  # fmt: skip
@click.option("--write", type=Filled(), metavar="FILE",
              help="Write the new script; over SCRIPT itself the old one is kept beside it.",
              )  # fmt: skip
@click.option("--keep", is_flag=True, help="Print how to go on with Horovod, where it runs.")
@JSON
def migrate(**given: Any) -> int:
    """Turn a Horovod script into one that tfdyno launch trains.

    SCRIPT is what horovodrun starts; its arguments follow after -- for the commands that are
    printed. The changes are shown as a diff, and nothing is written without --write. What cannot
    be told for sure is listed with its line and what to do; the exit code is 1, and --write
    writes nothing. It is 1 as well where Keras 3 itself needs more than these changes.
    """
    if given["keep"]:
        return _keep(given)
    from tfdyno.jobs.launch.migrate import migrate as migrate_script
    from tfdyno.jobs.launch.migrate import written

    found = migrate_script(Path(given["script"]))
    files: tuple[Path, ...] = ()
    if given["write"] and not found.hands:
        files = written(found, Path(given["write"]))
    _print(found, files, given)
    return int(not found.is_done)


def _keep(given: dict[str, Any]) -> int:
    """How to keep Horovod; the script is only named."""
    if given["write"]:
        raise UsageError("--write cannot go with --keep", why="the script stays as it is")
    if not Path(given["script"]).is_file():
        raise UsageError(f"there is no file {given['script']}")
    from tfdyno.rules.horovod.keep import keeping

    gpus = 1 if given["gpus"] is None else given["gpus"]
    found = keeping(
        given["script"], given["script_arguments"], nodes=given["nodes"], gpus_per_node=gpus
    )
    if given["as_json"]:
        click.echo(_json(found))
        return 0
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.doctor.migrate_text import keep_text

    click.echo(keep_text(found, width=terminal_width(), colour=colour_wanted()))
    return 0


def _print(found: Migration, files: tuple[Path, ...], given: dict[str, Any]) -> None:
    commands, keep = (
        _commands(files, given),
        shlex.join(["tfdyno", "migrate", found.path, "--keep"]),
    )
    if given["as_json"]:
        from tfdyno.core.base.codec import to_builtins

        told = {"commands": commands, "keep_command": keep, "written": [str(one) for one in files]}
        click.echo(_json({**to_builtins(found), **told}))
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.doctor.migrate_text import migrate_text

    text = migrate_text(
        found,
        commands=commands,
        keep_command=keep,
        written=[str(one) for one in files],
        refused="" if files else given["write"] or "",
        width=terminal_width(),
        colour=colour_wanted(),
    )
    click.echo(text)


def _commands(files: tuple[Path, ...], given: dict[str, Any]) -> list[str]:
    """What writes the new script, unless it is written, and what runs it."""
    script = str(files[0]) if files else given["script"]
    write = [] if files else [["tfdyno", "migrate", script, "--write", script]]
    words = ["tfdyno", "launch", script, "--nodes", str(given["nodes"])]
    words += ["--gpus-per-node", str(given["gpus"])] if given["gpus"] is not None else []
    arguments = given["script_arguments"]
    return [
        shlex.join(one) for one in (*write, [*words, *(["--", *arguments] if arguments else [])])
    ]


def _json(value: object) -> str:
    from tfdyno.core.base.codec import to_json

    return to_json(value, indent=2).decode()
