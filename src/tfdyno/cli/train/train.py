"""``tfdyno train``: train a workload under a recipe, in a folder from which it goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import (
    INPUT_SHAPE,
    JSON,
    PYTHON,
    UNSAFE,
    WAIT_FREE,
    WORKLOAD,
    Filled,
    recipe_from,
)
from tfdyno.cli.progress import progress_line
from tfdyno.cli.train.train_options import HOW_OPTIONS, WHAT_OPTIONS, kept_settings, workload_of
from tfdyno.cli.train.train_progress import train_progress
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import from_settings, typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.jobs.train.train import Trained, TrainRequest

AUTO = "auto"


@click.command()
@WORKLOAD
@WHAT_OPTIONS
@click.option("--resume", is_flag=True, help="Go on with the run in --output where it stopped.")
@HOW_OPTIONS
@WAIT_FREE
@click.option("--dry-run", is_flag=True, help="Print the plan, with time and memory of a step.")
@click.option("--gpu", type=Filled(), metavar="SLUG", help="For --dry-run: on this GPU.")
@INPUT_SHAPE
@PYTHON
@UNSAFE
@JSON
@click.option("-q", "--quiet", is_flag=True, help="Nothing on stderr but what is wrong.")
@click.option("-v", "--verbose", is_flag=True, help="Show every stage and event as a line.")
def train(**given: Any) -> int:
    """Train with a recipe: precision, XLA, input, strategy, checkpoints.

    WORKLOAD is an unmodified script.py, file.py:function that returns (model, data),
    file.py:function:data_function, model.keras with --data, or a standard task as
    task:resnet18-cifar10. Arguments of a script follow after --.

    A script runs to its end; each of its calls of fit is trained under the recipe. Ctrl-C or
    SIGTERM end the training with a checkpoint; --resume goes on as if it had not stopped.
    """
    if given["gpu"] and not given["dry_run"]:
        remedy = "choose among the cards here with --set visible_devices=N"
        raise UsageError("--gpu goes with --dry-run", remedy=remedy)
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        question, reasons, notes = _question(given, progress)
        if given["dry_run"]:
            return _preview(question, reasons, notes, given, progress)
    from tfdyno.jobs.train.train import train as run

    with train_progress(quiet=given["quiet"], verbose=given["verbose"]) as shown:
        trained = run(question, progress=shown.progress, output=shown.output)
    told = [f"{name}: {why}" for name, why in reasons.items()]
    return answer(trained, (*notes[:1], *told, *notes[1:]), given)


def _question(
    given: dict[str, Any], progress: Callable[[str], None]
) -> tuple[TrainRequest, dict[str, str], tuple[str, ...]]:
    """What is asked, why each setting of a chosen recipe is there, and notes on the choice."""
    from tfdyno.core.train.training import RunSettings
    from tfdyno.jobs.train.train import TrainRequest

    workload, kept = workload_of(given), kept_settings(given)
    changes = typed(given["changes"])
    recipe: Recipe | None = None
    reasons: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    if given["recipe"] == AUTO and not given["resume"]:
        from tfdyno.catalog.gpus import find
        from tfdyno.jobs.recipe.auto import auto_recipe

        card = find(given["gpu"]) if given["gpu"] else None
        visible = from_settings(changes).visible_devices or None
        if given["wait_free"] and not (given["gpu"] or given["dry_run"]):
            from tfdyno.jobs.holders.room import wait_for_room

            wait_for_room(visible, progress=progress)  # or it would be chosen for what is left
        chosen = auto_recipe(workload, gpu=card, visible=visible, progress=progress)
        recipe = from_settings(changes, chosen.recipe)
        reasons = {name: why for name, why in chosen.reasons.items() if name not in changes}
        notes = (f"The recipe is for {chosen.target}.", *chosen.notes)
    elif changes or given["recipe"] not in (None, AUTO):
        recipe = recipe_from(None if given["recipe"] == AUTO else given["recipe"], changes)
    question = TrainRequest(
        workload=workload,
        recipe=recipe,
        settings=RunSettings(output=given["output"] or "", resume=given["resume"], **kept),
        given=frozenset(kept),
        data=given["data"] or "",
        spot=given["spot"] or "",
        wait_free=given["wait_free"],
    )
    return question, reasons, notes


def _preview(
    question: TrainRequest,
    reasons: dict[str, str],
    notes: tuple[str, ...],
    given: dict[str, Any],
    progress: Callable[[str], None],
) -> int:
    from dataclasses import replace

    from tfdyno.jobs.train.preview import preview
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.train.preview_text import train_preview_document, train_preview_text

    plan = preview(question, gpu=given["gpu"] or "", reasons=reasons, progress=progress)
    plan = replace(plan, notes=(*plan.notes, *notes))
    if given["as_json"]:
        from tfdyno.core.base.codec import to_json

        click.echo(to_json(train_preview_document(plan), indent=2).decode())
    else:
        click.echo(train_preview_text(plan, width=terminal_width(), colour=colour_wanted()))
    return 0


def answer(trained: Trained, notes: tuple[str, ...], given: dict[str, Any]) -> int:
    """Print the answer; 1 where something is wrong with what was trained."""
    from dataclasses import replace

    from tfdyno.jobs.train.train import shown
    from tfdyno.view.train.document import TrainTold, train_document

    outcome = replace(trained.outcome, notes=(*notes, *trained.outcome.notes))
    told = TrainTold(
        outcome=outcome,
        output=str(trained.folder) if given["as_json"] else shown(trained.folder),
        reference=trained.workload.reference,
        recipe=trained.recipe,
        environment=trained.environment,
        telemetry=trained.telemetry,
        resume_command=trained.resume_command,
    )
    if given["as_json"]:
        from tfdyno.core.base.codec import to_json

        click.echo(to_json(train_document(told), indent=2).decode())
    else:
        from tfdyno.view.base.text import colour_wanted, terminal_width
        from tfdyno.view.train.text import train_text

        click.echo(train_text(told, width=terminal_width(), colour=colour_wanted()))
    return int(any(one.severity == "error" for one in outcome.findings))
