"""``tfdyno models``: keep models by version, and say which one is in use."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import JSON, QUIET, Filled, Whole
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.model_version import KEEP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfdyno.core.deploy.model_version import Collected
    from tfdyno.store.model_store import ModelStore

_PATH = click.Path(path_type=Path)
_STORE = click.option(
    "--store",
    type=_PATH,
    metavar="DIR",
    help="Folder of the store; without it $TFDYNO_STORE, else among your own data.",
)
_ID = click.argument("version", metavar="NAME[:V]", type=Filled())
_YES = click.option("--yes", is_flag=True, help="Remove without asking.")


@click.group()
def models() -> None:
    """Keep models by version; promote one, go back, clear away."""


@models.command()
@click.argument("path", type=_PATH)
@click.option("--name", type=Filled(), help="Of the model; without it: from the path.")
@click.option("--run", type=_PATH, metavar="DIR", help="Training run that it came from.")
@click.option("--data", type=_PATH, metavar="PATH", help="What it learned from: a fingerprint.")
@click.option("--metrics", multiple=True, metavar="KEY=VALUE", help="A metric of the model; many.")
@click.option("--estimate", type=_PATH, metavar="FILE", help="What estimate --json printed.")
@click.option(
    "--code", type=_PATH, multiple=True, metavar="FILE", help="A source file: its digest; many."
)
@click.option("--parent", type=Filled(), metavar="NAME:V", help="Version it was made from.")
@click.option("--label", type=Filled(), help="A label; labelled versions are never cleared away.")
@_STORE
@JSON
@QUIET
def add(**given: Any) -> None:
    """Keep a model as the next version of its name.

    PATH is a .keras, .onnx or .tflite file, a TensorRT engine, the folder of a SavedModel, or the
    folder of a training run. Its recipe, metrics, environment and data come from the run, what an
    export was measured to differ by from the export.json beside it.
    """
    from tfdyno.cli.progress import progress_line
    from tfdyno.jobs.deploy.models import AddRequest
    from tfdyno.jobs.deploy.models import add as keep
    from tfdyno.view.deploy.models_document import version_document

    asked = AddRequest(
        path=given["path"],
        name=given["name"] or "",
        run=given["run"],
        data=given["data"],
        estimate=given["estimate"],
        code=given["code"],
        metrics=_metrics(given["metrics"]),
        parent=given["parent"] or "",
        label=given["label"] or "",
    )
    with progress_line(quiet=given["quiet"], verbose=False) as heard:
        version, is_new = keep(_store(given["store"]), asked, heard=heard)
    if given["as_json"]:
        _print_json({**version_document(version), "new": is_new})
        return
    click.echo(f"{version.id}  {version.path}")
    if not is_new:
        click.echo(f"{version.id} has these files already; nothing was added.", err=True)


@models.command("list")
@click.argument("name", required=False, type=Filled())
@_STORE
@JSON
def list_of(name: str | None, store: Path | None, as_json: bool) -> None:
    """List models with their versions, or the versions of one."""
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.deploy.models_document import list_document
    from tfdyno.view.deploy.models_text import models_text

    found = _store(store)
    versions, size = found.versions(name or ""), found.disk_bytes()
    if as_json:
        _print_json(list_document(str(found.folder), versions, size))
        return
    colour = colour_wanted()
    text = models_text(str(found.folder), versions, size, width=terminal_width(), colour=colour)
    click.echo(text, color=colour)


@models.command()
@_ID
@_STORE
@JSON
def show(version: str, store: Path | None, as_json: bool) -> int:
    """Show a version: files, where it came from, when it was in use.

    Without a number the promoted version, else the newest. Ends with 1 where a file is damaged.
    """
    from tfdyno.jobs.deploy.models import exact
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.deploy.models_document import history_document, version_document
    from tfdyno.view.deploy.models_text import version_text

    kept = _store(store)
    found = kept.version(*exact(kept, version))
    history, faults = kept.history(found.name), kept.faults(found)
    if as_json:
        document = version_document(found, faults)
        _print_json({**document, "history": history_document(history)})
    else:
        colour = colour_wanted()
        text = version_text(found, history, faults, width=terminal_width(), colour=colour)
        click.echo(text, color=colour)
    return 1 if faults else 0


@models.command()
@click.argument("version", metavar="NAME:V", type=Filled())
@_STORE
@JSON
def promote(version: str, store: Path | None, as_json: bool) -> None:
    """Let a version be the one in use: what tfdyno serve NAME takes."""
    from tfdyno.jobs.deploy import models as job
    from tfdyno.view.deploy.models_document import version_document

    found, is_new = job.promote(_store(store), version)
    if as_json:
        _print_json({**version_document(found), "new": is_new})
        return
    click.echo(f"{found.id} is {'now' if is_new else 'already'} in use.")


@models.command()
@click.argument("name", type=Filled())
@_STORE
@JSON
def rollback(name: str, store: Path | None, as_json: bool) -> None:
    """Go back to the version that was promoted before."""
    from tfdyno.jobs.deploy import models as job
    from tfdyno.view.deploy.models_document import version_document

    found, left = job.roll_back(_store(store), name)
    if as_json:
        _print_json({**version_document(found), "before": left})
        return
    click.echo(f"{found.id} is in use again, no longer {found.name}:{left}.")


@models.command()
@click.argument("version", metavar="NAME:V", type=Filled())
@click.argument("label", required=False, type=Filled())
@click.option("--remove", is_flag=True, help="Take the label off.")
@_STORE
@JSON
def label(version: str, label: str | None, remove: bool, store: Path | None, as_json: bool) -> None:
    """Label a version: labelled ones are never cleared away."""
    from tfdyno.jobs.deploy.models import needs_number
    from tfdyno.view.deploy.models_document import version_document

    if bool(label) == remove:
        raise UsageError("say a label, or --remove", remedy="tfdyno models label NAME:V LABEL")
    found = _store(store).set_label(*needs_number(version), label or "")
    if as_json:
        _print_json(version_document(found))
        return
    click.echo(f"{found.id} is labelled {found.label}." if label else f"{found.id} has no label.")


@models.command()
@click.argument("name", required=False, type=Filled())
@click.option(
    "--keep", type=Whole("keep"), default=KEEP, show_default=True, help="Of the newest of each."
)
@_YES
@_STORE
@JSON
def gc(name: str | None, keep: int, yes: bool, store: Path | None, as_json: bool) -> None:
    """Clear away old versions; says first which.

    The promoted version, the one that a roll-back goes to, the newest and all that have a label
    stay. What killed commands left goes too.
    """
    kept = _store(store)
    _remove(lambda dry: kept.collect(keep=keep, name=name or "", dry=dry), yes, as_json)


@models.command()
@_ID
@_YES
@_STORE
@JSON
def rm(version: str, yes: bool, store: Path | None, as_json: bool) -> None:
    """Remove a version, or by its name alone a whole model."""
    from tfdyno.core.deploy.model_version import parse_id

    kept, (name, number) = _store(store), parse_id(version)
    _remove(lambda dry: kept.remove(name, number, dry=dry), yes, as_json)


@models.command()
@_ID
@click.option(
    "-o", "--output", type=_PATH, required=True, metavar="PATH", help="New file or folder."
)
@_STORE
@JSON
def get(version: str, output: Path, store: Path | None, as_json: bool) -> None:
    """Copy the files of a version out of the store."""
    from tfdyno.jobs.deploy.models import copy_out
    from tfdyno.view.deploy.models_document import version_document

    found = copy_out(_store(store), version, output)
    if as_json:
        _print_json({**version_document(found), "output": str(output)})
        return
    click.echo(f"{found.id} is in {output}")


def _store(folder: Path | None) -> ModelStore:
    from tfdyno.jobs.deploy.models import model_store

    return model_store(folder)


def _remove(remove: Callable[[bool], Collected], yes: bool, as_json: bool) -> None:
    """Say what would go, ask, and remove it."""
    from tfdyno.view.deploy.models_document import collected_document
    from tfdyno.view.deploy.models_text import collected_text

    planned = remove(True)
    is_empty = not planned.versions and not planned.freed_bytes
    if not yes and not is_empty and not as_json:
        click.echo(collected_text(planned, removed=False))
        if not sys.stdin.isatty():
            raise UsageError("nothing was removed", remedy="add --yes to remove it")
        click.confirm("Remove?", abort=True)
        yes = True
    done = remove(False) if yes else planned
    if as_json:
        _print_json(collected_document(done, removed=yes))
    else:
        click.echo(collected_text(done, removed=True))


def _metrics(given: tuple[str, ...]) -> dict[str, float]:
    from tfdyno.core.base import settings

    found = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise UsageError(f"--metrics {text} cannot be read",
                             remedy="write KEY=VALUE, as accuracy=0.91")  # fmt: skip
        found[key.strip()] = settings.number(value, f"metric {key.strip()}")
    return found


def _print_json(document: Mapping[str, object]) -> None:
    from tfdyno.core.base.codec import to_json

    click.echo(to_json(document, indent=2).decode())
