"""``tfdyno models``: keep models by version, and say which one is in use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tfdyno.cli.answer import Answer, agreed, tell
from tfdyno.cli.command import PATH, TEXT, argument, command, flag, group, many, option
from tfdyno.cli.options import JSON, QUIET, Filled, Whole
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.model_version import KEEP

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.deploy.model_version import Collected, ModelVersion
    from tfdyno.store.model_store import ModelStore


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    store: Path | None = option(
        type=PATH, metavar="DIR",
        help="Folder of the store; without it $TFDYNO_STORE, else among your own data.",
    )  # fmt: skip
    as_json: bool = JSON


_YES = flag(help="Remove without asking.")


@click.group()
def models() -> None:
    """Keep models by version; promote one, go back, clear away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _AddOptions:
    path: Path = argument(type=PATH)
    name: str | None = option(type=Filled(), help="Of the model; without it: from the path.")
    run: Path | None = option(type=PATH, metavar="DIR", help="Training run that it came from.")
    data: Path | None = option(
        type=PATH, metavar="PATH", help="What it learned from: a fingerprint."
    )
    metrics: tuple[str, ...] = many(
        type=TEXT, metavar="KEY=VALUE", help="A metric of the model; many."
    )
    estimate: Path | None = option(type=PATH, metavar="FILE", help="What estimate --json printed.")
    code: tuple[Path, ...] = many(
        type=PATH, metavar="FILE", help="A source file: its digest; many."
    )
    parent: str | None = option(type=Filled(), metavar="NAME:V", help="Version it was made from.")
    label: str | None = option(
        type=Filled(), help="A label; labelled versions are never cleared away."
    )
    kept: _Kept = group(_Kept)
    quiet: bool = QUIET


@command(_AddOptions, under=models)
def add(options: _AddOptions) -> Answer | int:
    """Keep a model as the next version of its name.

    PATH is a .keras, .onnx or .tflite file, a TensorRT engine, the folder of a SavedModel, or the
    folder of a training run. Its recipe, metrics, environment and data come from the run, what an
    export was measured to differ by from the export.json beside it.
    """
    from tfdyno.cli.progress import progress_line
    from tfdyno.jobs.deploy.models import AddRequest
    from tfdyno.jobs.deploy.models import add as keep

    asked = AddRequest(
        path=options.path,
        name=options.name or "",
        run=options.run,
        data=options.data,
        estimate=options.estimate,
        code=options.code,
        metrics=_metrics(options.metrics),
        parent=options.parent or "",
        label=options.label or "",
    )
    with progress_line(quiet=options.quiet, verbose=False) as heard:
        version, is_new = keep(_store(options.kept), asked, heard=heard)
    told = _version(version, f"{version.id}  {version.path}", new=is_new)
    code = tell(told, as_json=options.kept.as_json)
    if not (is_new or options.kept.as_json):
        click.echo(f"{version.id} has these files already; nothing was added.", err=True)
    return code


@dataclass(frozen=True, slots=True, kw_only=True)
class _ListOptions:
    name: str | None = argument(type=Filled(), required=False)
    kept: _Kept = group(_Kept)


@command(_ListOptions, "list", under=models)
def list_of(options: _ListOptions) -> Answer:
    """List models with their versions, or the versions of one."""
    from tfdyno.view.deploy.models_text import list_document, models_text

    found = _store(options.kept)
    told = (str(found.folder), found.versions(options.name or ""), found.disk_bytes())
    return Answer(document=partial(list_document, *told), text=partial(models_text, *told))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ShowOptions:
    version: str = argument(type=Filled(), metavar="NAME[:V]")
    kept: _Kept = group(_Kept)


@command(_ShowOptions, under=models)
def show(options: _ShowOptions) -> Answer:
    """Show a version: files, where it came from, when it was in use.

    Without a number the promoted version, else the newest. Ends with 1 where a file is damaged.
    """
    from tfdyno.jobs.deploy.models import exact
    from tfdyno.view.deploy.models_text import history_document, version_document, version_text

    kept = _store(options.kept)
    found = kept.version(*exact(kept, options.version))
    history, faults = kept.history(found.name), kept.faults(found)
    return Answer(
        document=lambda: {
            **version_document(found, faults), "history": history_document(history)
        },
        text=partial(version_text, found, history, faults),
        exit_code=1 if faults else 0,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _PromoteOptions:
    version: str = argument(type=Filled(), metavar="NAME:V")
    kept: _Kept = group(_Kept)


@command(_PromoteOptions, under=models)
def promote(options: _PromoteOptions) -> Answer:
    """Let a version be the one in use: what tfdyno serve NAME takes."""
    from tfdyno.jobs.deploy import models as job

    found, is_new = job.promote(_store(options.kept), options.version)
    text = f"{found.id} is {'now' if is_new else 'already'} in use."
    return _version(found, text, new=is_new)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RollbackOptions:
    name: str = argument(type=Filled())
    kept: _Kept = group(_Kept)


@command(_RollbackOptions, under=models)
def rollback(options: _RollbackOptions) -> Answer:
    """Go back to the version that was promoted before."""
    from tfdyno.jobs.deploy import models as job

    found, left = job.roll_back(_store(options.kept), options.name)
    text = f"{found.id} is in use again, no longer {found.name}:{left}."
    return _version(found, text, before=left)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LabelOptions:
    version: str = argument(type=Filled(), metavar="NAME:V")
    label: str | None = argument(type=Filled(), required=False)
    remove: bool = flag(help="Take the label off.")
    kept: _Kept = group(_Kept)


@command(_LabelOptions, under=models)
def label(options: _LabelOptions) -> Answer:
    """Label a version: labelled ones are never cleared away."""
    from tfdyno.jobs.deploy.models import needs_number

    name = options.label or ""
    if bool(name) == options.remove:
        raise UsageError("say a label, or --remove", remedy="tfdyno models label NAME:V LABEL")
    found = _store(options.kept).set_label(*needs_number(options.version), name)
    text = f"{found.id} is labelled {found.label}." if name else f"{found.id} has no label."
    return _version(found, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _GcOptions:
    name: str | None = argument(type=Filled(), required=False)
    keep: int = option(
        type=Whole("keep"), default=KEEP, show_default=True, help="Of the newest of each."
    )
    yes: bool = _YES
    kept: _Kept = group(_Kept)


@command(_GcOptions, under=models)
def gc(options: _GcOptions) -> Answer:
    """Clear away old versions; says first which.

    The promoted version, the one that a roll-back goes to, the newest and all that have a label
    stay. What killed commands left goes too.
    """
    kept, name = _store(options.kept), options.name or ""
    return _removed(lambda dry: kept.collect(keep=options.keep, name=name, dry=dry), options)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RmOptions:
    version: str = argument(type=Filled(), metavar="NAME[:V]")
    yes: bool = _YES
    kept: _Kept = group(_Kept)


@command(_RmOptions, under=models)
def rm(options: _RmOptions) -> Answer:
    """Remove a version, or by its name alone a whole model."""
    from tfdyno.core.deploy.model_version import parse_id

    kept, (name, number) = _store(options.kept), parse_id(options.version)
    return _removed(lambda dry: kept.remove(name, number, dry=dry), options)


@dataclass(frozen=True, slots=True, kw_only=True)
class _GetOptions:
    version: str = argument(type=Filled(), metavar="NAME[:V]")
    output: Path = option(
        "-o", "--output", type=PATH, required=True, metavar="PATH", help="New file or folder."
    )
    kept: _Kept = group(_Kept)


@command(_GetOptions, under=models)
def get(options: _GetOptions) -> Answer:
    """Copy the files of a version out of the store."""
    from tfdyno.jobs.deploy.models import copy_out

    found = copy_out(_store(options.kept), options.version, options.output)
    output = str(options.output)
    return _version(found, f"{found.id} is in {output}", output=output)


def _store(kept: _Kept) -> ModelStore:
    from tfdyno.jobs.deploy.models import model_store

    return model_store(kept.store)


def _version(found: ModelVersion, text: str, **more: object) -> Answer:
    from tfdyno.view.deploy.models_text import version_document

    return Answer(document=lambda: {**version_document(found), **more}, text=lambda **_: text)


def _removed(remove: Callable[[bool], Collected], options: _GcOptions | _RmOptions) -> Answer:
    """Say what would go, ask, and remove it."""
    from tfdyno.view.deploy.models_text import collected_document, collected_text

    planned, yes = remove(True), options.yes
    is_empty = not planned.versions and not planned.freed_bytes
    if not yes and not is_empty and not options.kept.as_json:
        if not agreed(collected_text(planned, removed=False)):
            raise click.Abort
        yes = True
    done = remove(False) if yes else planned
    return Answer(
        document=partial(collected_document, done, removed=yes),
        text=lambda **_: collected_text(done, removed=True),
    )


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
