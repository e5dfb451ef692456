"""``tfdyno diagnose``: what holds a training back, what to change, and the proof that it helps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import (
    CODE,
    HTML,
    RECIPE,
    SET,
    TOLD,
    WAIT_FREE,
    WORKLOAD,
    Filled,
    Positive,
    Whole,
    check_writable,
    recipe_from,
    workload_from,
)
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.errors import UsageError
from tfdyno.core.recipe.recipe import typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.measure.fix_proof import ProvenDiagnosis
    from tfdyno.jobs.diagnose.diagnose import DiagnoseRequest, Examined
    from tfdyno.view.diagnose.document import DiagnoseTold

_NEED_FIX = {
    "write": "only what is proven is written",
    "output": "it keeps the measurements that prove a fix",
    "resume": "it takes measurements that prove a fix",
}


@click.command()
@WORKLOAD
@RECIPE
@SET
@click.option("--steps", type=Whole("steps"), help="Look at so many.  [default: as time allows]")
@click.option(
    "--seconds", type=Positive("seconds"), metavar="S",
    help="Look for so long, and so long in each run with --fix.",
)  # fmt: skip
@click.option("--leak", is_flag=True, help="Look only at whether memory grows, and longer at that.")
@click.option("--fix", is_flag=True, help="Make each change, measure it, keep what is proven.")
@click.option(
    "--write", type=Filled(), metavar="DIR",
    help="With --fix: write the recipe, and a diff for your script.",
)  # fmt: skip
@click.option("--output", type=Filled(), metavar="DIR", help="With --fix: folder of the results.")
@click.option("--resume", is_flag=True, help="With --fix: take what is measured already.")
@WAIT_FREE
@HTML
@CODE
@TOLD
def diagnose(**given: Any) -> int:
    """Say what holds a training back, and prove the fix.

    WORKLOAD is an unmodified script.py, file.py:function that returns (model, data), model.keras
    or a standard task as task:resnet18-cifar10. Arguments of a script follow after --. A profile
    that TensorFlow has written elsewhere does as well: an xplane.pb, a trace.json.gz or the folder
    of a TensorBoard log. So does what tfdyno train or tfdyno bench has written: the folder of a
    run, of results (their newest) or FOLDER:ID, or a JSON file.

    Its own steps are looked at with and without the data; the answer is one cause, where the time
    goes, and what a change should gain. --fix measures each change in turns with the run as it is
    and keeps it only if it is surely faster and learns the same.
    """
    from tfdyno.jobs.diagnose.profile import is_profile
    from tfdyno.jobs.diagnose.recorded_run import is_run

    if given["html"]:
        check_writable(given["html"])
    if is_run(given["workload"]):
        return _of_run(given)
    if is_profile(given["workload"]):
        return _of_profile(given)
    question = _question(given)
    from tfdyno.jobs.diagnose.diagnose import check, examined

    check(question)
    folder = _folder(given)
    stop: BaseException | None = None
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        found = examined(question, progress=progress)
        last, stop = _proven(question, found, given, progress)
    told = _told(question, found, last, given, folder)
    code = _answer(told, given)
    if stop:
        stop.add_note("What was found until then is printed.")
        raise stop
    return code


def _of_profile(given: dict[str, Any]) -> int:
    """What a profile tells; there is nothing to run, so nothing is proven."""
    _refuse_to_run(given, "a profile")
    from tfdyno.jobs.diagnose.profile import examined_profile
    from tfdyno.view.diagnose.document import told_of

    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        found = examined_profile(Path(given["workload"]), progress=progress)
    return _answer(told_of(found.diagnosis, found.facts, given["workload"]), given)


def _of_run(given: dict[str, Any]) -> int:
    """What was recorded of a run, and what to type for all the rest."""
    _refuse_to_run(given, "a run that is over")
    from dataclasses import replace

    from tfdyno.jobs.diagnose.recorded_run import examined_run
    from tfdyno.view.diagnose.document import told_of
    from tfdyno.view.diagnose.words import command

    run = examined_run(given["workload"])
    found = run.examined
    told = replace(
        told_of(found.diagnosis, found.facts, given["workload"]),
        environment=found.environment,
        look=command("diagnose", run.reference, run.arguments, run.settings),
    )
    return _answer(told, given)


def _refuse_to_run(given: dict[str, Any], what: str) -> None:
    """Refuse what asks for steps of something that has none to run; raises ``UsageError``."""
    refused = [
        name
        for name in ("leak", "fix", "write", "output", "resume", "recipe", "changes", "steps",
                     "seconds", "script_arguments", "wait_free")
        if given[name]
    ]  # fmt: skip
    if refused:
        name = {"changes": "--set", "script_arguments": "arguments"}.get(
            refused[0], f"--{refused[0].replace('_', '-')}"
        )
        raise UsageError(f"{name} cannot go with {what}", why="there is nothing to run",
                         remedy="give the script instead, or leave it out")  # fmt: skip


def _question(given: dict[str, Any]) -> DiagnoseRequest:
    from tfdyno.jobs.diagnose.diagnose import DiagnoseRequest

    if given["leak"] and given["fix"]:
        raise UsageError("--fix cannot go with --leak", why="only memory is looked at then",
                         remedy="leave one of them out")  # fmt: skip
    for name, why in _NEED_FIX.items():
        if given[name] and not given["fix"]:
            raise UsageError(f"--{name} needs --fix", why=why, remedy="add --fix or leave it out")
    return DiagnoseRequest(
        workload=workload_from({**given, "precision": ""}, mode="train"),
        recipe=recipe_from(given["recipe"], typed(given["changes"])),
        steps=given["steps"] or 0,
        seconds_s=given["seconds"] or 0.0,
        folder=Path(given["output"]) if given["output"] else None,
        resume=given["resume"],
        memory_alone=given["leak"],
        wait_free=given["wait_free"],
    )


def _folder(given: dict[str, Any]) -> Path | None:
    """Where to write, looked at before minutes of work."""
    if not given["write"]:
        return None
    from tfdyno.jobs.diagnose.write import check_folder

    folder = Path(given["write"])
    check_folder(folder)
    return folder


def _proven(
    question: DiagnoseRequest,
    found: Examined,
    given: dict[str, Any],
    progress: Callable[[str], None],
) -> tuple[ProvenDiagnosis, BaseException | None]:
    """What is proven, as far as it came, and what stopped it."""
    from tfdyno.core.measure.fix_proof import ProvenDiagnosis

    last = ProvenDiagnosis(diagnosis=found.diagnosis, recipe=question.recipe)
    if found.stopped:
        return last, KeyboardInterrupt()
    if found.failed or not given["fix"]:
        return last, found.failed
    from tfdyno.jobs.diagnose.fixes import proven

    try:
        for so_far in proven(question, found, progress=progress):
            last = so_far
    except BaseException as error:  # told after the answer so far
        return last, error
    return last, None


def _told(
    question: DiagnoseRequest,
    found: Examined,
    last: ProvenDiagnosis,
    given: dict[str, Any],
    folder: Path | None,
) -> DiagnoseTold:
    from tfdyno.view.diagnose.document import DiagnoseTold

    files: tuple[Path, ...] = ()
    if folder:
        from tfdyno.jobs.diagnose.write import written

        files = written(folder, last, question.recipe, found.facts, question.workload)
    return DiagnoseTold(
        proven=last,
        facts=found.facts,
        reference=question.workload.reference,
        base=question.recipe,
        environment=found.environment,
        tried=given["fix"],
        arguments=_words(given, question.workload),
        own_arguments=_own_words(given),
        written=tuple(map(str, files)),
        growth=found.growth,
    )


def _words(given: dict[str, Any], workload: Workload) -> tuple[str, ...]:
    """What is to be typed again for the same workload and recipe."""
    from tfdyno.jobs.choose.reference import option_words, script_words

    words = ["--recipe", str(given["recipe"])] if given["recipe"] else []
    words += [word for one in given["changes"] for word in ("--set", one)]
    return (*words, *option_words(workload), *script_words(workload))


def _own_words(given: dict[str, Any]) -> tuple[str, ...]:
    words = [word for one in given["input_spec"] for word in ("--input-spec", one)]
    return (*words, *(("--fit", str(given["fit_number"])) if given["fit_number"] > 1 else ()))


def _answer(told: DiagnoseTold, given: dict[str, Any]) -> int:
    """Tell it as it was asked for; 1 where something ends the training, as memory that grows."""
    from dataclasses import replace
    from datetime import UTC, datetime

    told = replace(told, made_on=datetime.now(UTC).date().isoformat())
    if given["html"]:
        from tfdyno.core.base.codec import write_atomic
        from tfdyno.view.diagnose.growth_page import growth_page
        from tfdyno.view.diagnose.page import diagnose_page

        page = growth_page if given["leak"] else diagnose_page
        write_atomic(given["html"], page(told).encode())
    _print(told, given)
    ends = any(one.severity == "error" for one in told.proven.diagnosis.findings)
    return int(ends or any(one.grows for one in told.growth))


def _print(told: DiagnoseTold, given: dict[str, Any]) -> None:
    from tfdyno.view.diagnose.growth_text import growth_text, leak_document

    if given["as_json"]:
        from tfdyno.core.base.codec import to_json
        from tfdyno.view.diagnose.document import diagnose_document

        document = leak_document(told) if given["leak"] else diagnose_document(told)
        click.echo(to_json(document, indent=2).decode())
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.diagnose.text import diagnose_text

    text = growth_text if given["leak"] else diagnose_text
    click.echo(text(told, width=terminal_width(), colour=colour_wanted()))
