"""``tfdyno train``: train a workload under a recipe, in a folder from which it goes on."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import command, flag, given, group, option
from tfdyno.cli.options import LANG, PYTHON, UNSAFE, WAIT_FREE, Filled, recipe_from
from tfdyno.cli.progress import progress_line
from tfdyno.cli.train.jax_options import SPLITTING, JaxOptions, jax_plan
from tfdyno.cli.train.train_options import How, Watched, What, kept_settings
from tfdyno.cli.train.train_progress import train_progress
from tfdyno.cli.workload_options import (
    INPUT_SHAPES,
    CodeOptions,
    FineTuneOptions,
    WorkloadOptions,
    workload_from,
)
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import Language
from tfdyno.core.recipe.recipe import from_settings, typed
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.train.jax_plan import JaxPlan
    from tfdyno.jobs.train.train import Trained, TrainRequest
    from tfdyno.view.train.document import TrainReport

AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(WorkloadOptions):
    what: What = group(What)
    fine_tune: FineTuneOptions = group(FineTuneOptions)
    resume: bool = flag(help="Go on with the run in --output where it stopped.")
    how: How = group(How)
    jax: JaxOptions = group(JaxOptions)
    wait_free: bool = WAIT_FREE
    dry_run: bool = flag(help="Print the plan, with time and memory of a step.")
    gpu: str | None = option(type=Filled(), metavar="SLUG", help="For --dry-run: on this GPU.")
    input_shapes: tuple[tuple[int, ...], ...] = INPUT_SHAPES
    python: str | None = PYTHON
    unsafe: bool = UNSAFE
    told: Watched = group(Watched)
    lang: Language | None = LANG


@command(_Options)
def train(options: _Options) -> Answer:
    """Train with a recipe: precision, XLA, input, strategy, checkpoints.

    WORKLOAD is an unmodified script.py, file.py:function that returns (model, data),
    file.py:function:data_function, model.keras with --data, a standard task as
    task:resnet18-cifar10, or a model of KerasHub by name, keras_hub:gpt2_base_en with --data
    texts.csv, whole or by --lora. Arguments of a script follow after --.

    A script runs to its end; each of its calls of fit is trained under the recipe. Ctrl-C or
    SIGTERM end the training with a checkpoint; --resume goes on as if it had not stopped.
    """
    if options.gpu and not options.dry_run:
        remedy = "choose among the cards here with --set visible_devices=N"
        raise UsageError("--gpu goes with --dry-run", remedy=remedy)
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        request, reasons, notes = _request(options, progress)
        if options.dry_run:
            return _preview(request, reasons, notes, options.gpu or "", progress)
    from tfdyno.jobs.train.train import train as run

    with train_progress(quiet=options.told.quiet, verbose=options.told.verbose) as shown:
        trained = run(request, progress=shown.progress, output=shown.output)
    told = [f"{name}: {why}" for name, why in reasons.items()]
    return answer(trained, (*notes[:1], *told, *notes[1:]))


def _request(
    options: _Options, progress: Callable[[str], None]
) -> tuple[TrainRequest, dict[str, str], tuple[str, ...]]:
    """Return what is asked, why each setting of a chosen recipe is there, and notes on it."""
    from tfdyno.core.train.training import RunSettings
    from tfdyno.jobs.train.train import TrainRequest

    what, kept = options.what, kept_settings(options.what, options.how)
    code = CodeOptions(
        input_shapes=options.input_shapes, python=options.python, unsafe=options.unsafe
    )
    workload = workload_from(options, code, fine_tune=options.fine_tune)
    jax, backend_notes = _jax(options, workload)
    changes = typed(what.changes)
    recipe: Recipe | None = None
    reasons: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    if what.recipe == AUTO and not options.resume:
        from tfdyno.catalog.gpus import find
        from tfdyno.jobs.recipe.auto import auto_recipe

        card = find(options.gpu) if options.gpu else None
        visible = from_settings(changes).visible_devices or None
        if options.wait_free and not (options.gpu or options.dry_run):
            from tfdyno.jobs.holders.room import wait_for_room

            wait_for_room(visible, progress=progress)  # or it would be chosen for what is left
        chosen = auto_recipe(
            workload, gpu=card, visible=visible, on_jax=jax is not None, progress=progress
        )
        recipe = from_settings(changes, chosen.recipe)
        reasons = {name: why for name, why in chosen.reasons.items() if name not in changes}
        notes = (say("The recipe is for {target}.", target=chosen.target), *chosen.notes)
    elif changes or what.recipe not in (None, AUTO):
        recipe = recipe_from(None if what.recipe == AUTO else what.recipe, changes)
    request = TrainRequest(
        workload=workload,
        recipe=recipe,
        settings=RunSettings(output=what.output or "", resume=options.resume, **kept),
        given=frozenset(kept),
        data=what.data or "",
        spot=options.how.spot or "",
        jax=jax,
        wait_free=options.wait_free,
    )
    return request, reasons, (*notes, *backend_notes)


def _jax(options: _Options, workload: Workload) -> tuple[JaxPlan | None, tuple[str, ...]]:
    """Return the plan on JAX, and what is to be told of the choice; None: it is TensorFlow.

    A run that goes on keeps its backend, and its mesh where no other is asked for.
    """
    from tfdyno.jobs.train.backend import found_backend, plan_of_run

    asked = options.jax
    if options.resume and options.what.output:
        kept = plan_of_run(Path(options.what.output))
        if asked.backend is None or (asked.backend == "jax" and kept):
            if not given(asked, *SPLITTING):
                return kept, ()
            return jax_plan(asked, found="jax" if kept else ""), ()
    if asked.backend:
        return jax_plan(asked), ()
    found = found_backend(workload, os.environ)
    return jax_plan(asked, found=found.name), (found.note,) if found.note else ()


def _preview(
    request: TrainRequest,
    reasons: dict[str, str],
    notes: tuple[str, ...],
    gpu: str,
    progress: Callable[[str], None],
) -> Answer:
    from tfdyno.jobs.train.preview import preview
    from tfdyno.view.train.preview_text import train_preview_document, train_preview_text

    plan = preview(request, gpu=gpu, reasons=reasons, progress=progress)
    plan = replace(plan, notes=(*plan.notes, *notes))
    return Answer(
        document=partial(train_preview_document, plan), text=partial(train_preview_text, plan)
    )


def answer(trained: Trained, notes: tuple[str, ...] = ()) -> Answer:
    """Return what came of a training on this machine."""
    from tfdyno.view.train.document import TrainReport

    told = TrainReport(
        outcome=replace(trained.outcome, notes=(*notes, *trained.outcome.notes)),
        output=str(trained.folder),
        reference=trained.workload.reference,
        recipe=trained.recipe,
        environment=trained.environment,
        telemetry=trained.telemetry,
        resume_command=trained.resume_command,
    )
    return answer_of(told)


def answer_of(told: TrainReport, **more: object) -> Answer:
    """Return what came of a training; the exit code is 1 where a finding is an error.

    Args:
        told: With its folder in full, which the text shortens.
        more: For the document.
    """
    from tfdyno.jobs.train.train import shown
    from tfdyno.view.train.document import train_document
    from tfdyno.view.train.text import train_text

    return Answer(
        document=lambda: {**train_document(told), **more},
        text=partial(train_text, replace(told, output=shown(Path(told.output)))),
        exit_code=int(any(one.severity == "error" for one in told.outcome.findings)),
    )
