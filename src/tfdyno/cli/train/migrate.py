"""``tfdyno migrate``: a script of Horovod, or of TensorFlow, as one of plain Keras 3."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import argument, command, flag, option
from tfdyno.cli.options import JSON, Filled, OneOf, Whole, moving_to
from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.launch_plan import MOST_GPUS_PER_NODE, MOST_NODES

NODES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    script: str = argument(type=Filled())
    script_arguments: tuple[str, ...] = argument(type=click.UNPROCESSED, nargs=-1)
    nodes: int = option(
        type=Whole("--nodes", most=MOST_NODES), default=NODES, show_default=True,
        help="For the commands that are printed.",
    )  # fmt: skip
    gpus: int | None = option(
        "--gpus-per-node", type=Whole("--gpus-per-node", least=0, most=MOST_GPUS_PER_NODE),
        help="For the commands that are printed; 0: the CPUs train.",
    )  # fmt: skip
    to: str | None = option(
        type=OneOf("backend", ("jax",), moving_to), metavar="jax",
        help="Change a script of TensorFlow's backend for this one; else one of Horovod.",
    )  # fmt: skip
    write: str | None = option(
        type=Filled(), metavar="FILE",
        help="Write the new script; over SCRIPT itself the old one is kept beside it.",
    )  # fmt: skip
    keep: bool = flag(help="Print how to go on with Horovod, where it runs.")
    as_json: bool = JSON


@command(_Options)
def migrate(options: _Options) -> Answer:
    """Turn a script of Horovod or TensorFlow into plain Keras 3.

    SCRIPT is what horovodrun or python starts; its arguments follow after -- for the commands that
    are printed. With --to jax operations of TensorFlow in layers, losses and metrics become those
    of keras.ops, and pipelines of tf.data stay as they are. The changes are shown as a diff, and
    nothing is written without --write. What cannot be told for sure is listed with its line and
    what to do; the exit code is 1, and --write writes nothing. It is 1 as well where Keras 3
    itself needs more than these changes.
    """
    if options.to:
        return _to_jax(options)
    if options.keep:
        return _keep(options)
    from tfdyno.core.base.codec import to_builtins
    from tfdyno.jobs.launch.migrate import migrate as migrate_script
    from tfdyno.jobs.launch.migrate import written
    from tfdyno.view.doctor.migrate_text import migrate_text

    found = migrate_script(Path(options.script))
    files: tuple[Path, ...] = ()
    if options.write and not found.hands:
        files = written(found, Path(options.write))
    commands, names = _commands(files, options), [str(one) for one in files]
    keep = shlex.join(["tfdyno", "migrate", found.path, "--keep"])
    return Answer(
        document=lambda: {
            **to_builtins(found), "commands": commands, "keep_command": keep, "written": names,
        },
        text=partial(
            migrate_text, found, commands=commands, keep_command=keep, written=names,
            refused="" if files else options.write or "",
        ),
        exit_code=int(not found.is_done),
    )  # fmt: skip


def _to_jax(options: _Options) -> Answer:
    """Return what becomes of a script of TensorFlow's backend."""
    for name, is_given in (
        ("--keep", options.keep), ("--nodes", options.nodes != NODES),
        ("--gpus-per-node", options.gpus is not None),
    ):  # fmt: skip
        if is_given:
            raise UsageError(f"{name} has no use with --to", why="it is of Horovod's scripts")
    from tfdyno.core.base.codec import to_builtins
    from tfdyno.jobs.doctor.to_jax import KEPT, migrate_to_jax
    from tfdyno.jobs.launch.migrate import written
    from tfdyno.view.doctor.move_text import move_text

    found = migrate_to_jax(Path(options.script))
    files: tuple[Path, ...] = ()
    if options.write and not found.hands:
        files = written(found, Path(options.write), KEPT)
    script = str(files[0]) if files else options.script
    write = ["tfdyno", "migrate", script, "--to", "jax", "--write", script]
    run = ["python", script, *options.script_arguments]
    commands = [shlex.join(one) for one in (*([] if files else [write]), run)]
    names = [str(one) for one in files]
    return Answer(
        document=lambda: {**to_builtins(found), "commands": commands, "written": names},
        text=partial(
            move_text, found, commands=commands, written=names,
            refused="" if files else options.write or "",
        ),
        exit_code=int(not found.is_done),
    )  # fmt: skip


def _keep(options: _Options) -> Answer:
    """Return how to keep Horovod; the script is only named."""
    if options.write:
        raise UsageError("--write cannot go with --keep", why="the script stays as it is")
    if not Path(options.script).is_file():
        raise UsageError(f"there is no file {options.script}")
    from tfdyno.rules.horovod.keep import keeping
    from tfdyno.view.doctor.migrate_text import keep_text

    found = keeping(
        options.script, options.script_arguments, nodes=options.nodes,
        gpus_per_node=1 if options.gpus is None else options.gpus,
    )  # fmt: skip
    return Answer(document=lambda: found, text=partial(keep_text, found))


def _commands(files: tuple[Path, ...], options: _Options) -> list[str]:
    """Return what writes the new script, unless it is written, and what runs it."""
    script = str(files[0]) if files else options.script
    write = [] if files else [["tfdyno", "migrate", script, "--write", script]]
    words = ["tfdyno", "launch", script, "--nodes", str(options.nodes)]
    words += ["--gpus-per-node", str(options.gpus)] if options.gpus is not None else []
    arguments = options.script_arguments
    return [
        shlex.join(one) for one in (*write, [*words, *(["--", *arguments] if arguments else [])])
    ]
