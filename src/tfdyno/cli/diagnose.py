"""``tfdyno diagnose``: what holds a training back, what to change, and the proof that it helps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import (
    FIT,
    INPUT_SHAPE,
    INPUT_SPEC,
    PYTHON,
    SET,
    UNSAFE,
    Filled,
    Positive,
    Whole,
    recipe_from,
    workload_from,
)
from tfdyno.cli.progress import progress_line
from tfdyno.core.errors import UsageError
from tfdyno.core.recipe import typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.fix_proof import ProvenDiagnosis
    from tfdyno.jobs.diagnose import Examined, Question
    from tfdyno.view.diagnose_document import DiagnoseTold

_NEED_FIX = {
    "write": "only what is proven is written",
    "output": "it keeps the measurements that prove a fix",
    "resume": "it takes measurements that prove a fix",
}


@click.command()
@click.argument("workload")
@click.argument("script_arguments", nargs=-1, type=click.UNPROCESSED)
@click.option("--recipe", type=click.Path(path_type=Path), metavar="FILE", help="Settings, TOML.")
@SET
@click.option("--steps", type=Whole("steps"), help="Look at so many.  [default: as time allows]")
@click.option(
    "--seconds", type=Positive("seconds"), metavar="S",
    help="Look for so long, and so long in each run with --fix.",
)  # fmt: skip
@click.option("--fix", is_flag=True, help="Make each change, measure it, keep what is proven.")
@click.option(
    "--write", type=Filled(), metavar="DIR",
    help="With --fix: write the recipe, and a diff for your script.",
)  # fmt: skip
@click.option("--output", type=Filled(), metavar="DIR", help="With --fix: folder of the results.")
@click.option("--resume", is_flag=True, help="With --fix: take what is measured already.")
@INPUT_SHAPE
@INPUT_SPEC
@FIT
@PYTHON
@UNSAFE
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on stderr.")
@click.option("-v", "--verbose", is_flag=True, help="Show every stage.")
def diagnose(**given: Any) -> int:
    """Say what holds a training back, and prove the fix.

    WORKLOAD is an unmodified script.py, file.py:function that returns (model, data), model.keras
    or a standard task as task:resnet18-cifar10. Arguments of a script follow after --. A profile
    that TensorFlow has written elsewhere does as well: an xplane.pb, a trace.json.gz or the folder
    of a TensorBoard log.

    Its own steps are looked at with and without the data; the answer is one cause, where the time
    goes, and what a change should gain. --fix measures each change in turns with the run as it is
    and keeps it only if it is surely faster and learns the same.
    """
    from tfdyno.jobs.diagnose_profile import is_profile

    if is_profile(given["workload"]):
        return _of_profile(given)
    question = _question(given)
    from tfdyno.jobs.diagnose import check, examined

    check(question)
    folder = _folder(given)
    stop: BaseException | None = None
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        found = examined(question, progress=progress)
        last, stop = _proven(question, found, given, progress)
    told = _told(question, found, last, given, folder)
    _print(told, given)
    if stop:
        stop.add_note("What was found until then is printed.")
        raise stop
    return _exit_code(last)


def _exit_code(last: ProvenDiagnosis) -> int:
    return int(any(one.severity == "error" for one in last.diagnosis.findings))


def _of_profile(given: dict[str, Any]) -> int:
    """What a profile tells; there is nothing to run, so nothing is proven."""
    refused = [name for name in ("fix", "write", "output", "resume", "recipe", "changes", "steps",
                                 "seconds", "script_arguments") if given[name]]  # fmt: skip
    if refused:
        name = {"changes": "--set", "script_arguments": "arguments"}.get(
            refused[0], f"--{refused[0]}"
        )
        raise UsageError(f"{name} cannot go with a profile", why="there is nothing to run",
                         remedy="give the script instead, or leave it out")  # fmt: skip
    from tfdyno.core.fix_proof import ProvenDiagnosis
    from tfdyno.core.recipe import Recipe
    from tfdyno.jobs.diagnose_profile import examined_profile
    from tfdyno.view.diagnose_document import DiagnoseTold

    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        found = examined_profile(Path(given["workload"]), progress=progress)
    last = ProvenDiagnosis(diagnosis=found.diagnosis, recipe=Recipe())
    told = DiagnoseTold(
        proven=last, facts=found.facts, reference=given["workload"], base=Recipe(),
        environment=found.environment, tried=False, arguments=(), own_arguments=(), written=(),
    )  # fmt: skip
    _print(told, given)
    return _exit_code(last)


def _question(given: dict[str, Any]) -> Question:
    from tfdyno.jobs.diagnose import Question

    for name, why in _NEED_FIX.items():
        if given[name] and not given["fix"]:
            raise UsageError(f"--{name} needs --fix", why=why, remedy="add --fix or leave it out")
    return Question(
        workload=workload_from({**given, "precision": ""}, mode="train"),
        recipe=recipe_from(given["recipe"], typed(given["changes"])),
        steps=given["steps"] or 0,
        seconds_s=given["seconds"] or 0.0,
        folder=Path(given["output"]) if given["output"] else None,
        resume=given["resume"],
    )


def _folder(given: dict[str, Any]) -> Path | None:
    """Where to write, looked at before minutes of work."""
    if not given["write"]:
        return None
    from tfdyno.jobs.diagnose_write import check_folder

    folder = Path(given["write"])
    check_folder(folder)
    return folder


def _proven(
    question: Question, found: Examined, given: dict[str, Any], progress: Callable[[str], None]
) -> tuple[ProvenDiagnosis, BaseException | None]:
    """What is proven, as far as it came, and what stopped it."""
    from tfdyno.core.fix_proof import ProvenDiagnosis

    last = ProvenDiagnosis(diagnosis=found.diagnosis, recipe=question.recipe)
    if found.stopped:
        return last, KeyboardInterrupt()
    if not given["fix"]:
        return last, None
    from tfdyno.jobs.diagnose_fixes import proven

    try:
        for so_far in proven(question, found, progress=progress):
            last = so_far
    except BaseException as error:  # told after the answer so far
        return last, error
    return last, None


def _told(
    question: Question,
    found: Examined,
    last: ProvenDiagnosis,
    given: dict[str, Any],
    folder: Path | None,
) -> DiagnoseTold:
    from tfdyno.view.diagnose_document import DiagnoseTold

    files: tuple[Path, ...] = ()
    if folder:
        from tfdyno.jobs.diagnose_write import written

        files = written(folder, last, question.recipe, found.facts, question.workload)
    return DiagnoseTold(
        proven=last,
        facts=found.facts,
        reference=question.workload.reference,
        base=question.recipe,
        environment=found.environment,
        tried=given["fix"],
        arguments=_words(given),
        own_arguments=_own_words(given),
        written=tuple(map(str, files)),
    )


def _words(given: dict[str, Any]) -> tuple[str, ...]:
    """What is to be typed again for the same workload and recipe."""
    words = ["--recipe", str(given["recipe"])] if given["recipe"] else []
    words += [word for one in given["changes"] for word in ("--set", one)]
    for shape in given["input_shapes"]:
        words += ["--input-shape", ",".join(map(str, shape)) or "()"]
    words += ["--python", given["python"]] if given["python"] else []
    words += ["--unsafe"] if given["unsafe"] else []
    words += ["--", *given["script_arguments"]] if given["script_arguments"] else []
    return tuple(words)


def _own_words(given: dict[str, Any]) -> tuple[str, ...]:
    words = [word for one in given["input_spec"] for word in ("--input-spec", one)]
    return (*words, *(("--fit", str(given["fit_number"])) if given["fit_number"] > 1 else ()))


def _print(told: DiagnoseTold, given: dict[str, Any]) -> None:
    if given["as_json"]:
        from tfdyno.core.codec import to_json
        from tfdyno.view.diagnose_document import diagnose_document

        click.echo(to_json(diagnose_document(told), indent=2).decode())
        return
    from tfdyno.view.diagnose_text import diagnose_text
    from tfdyno.view.text import colour_wanted, terminal_width

    click.echo(diagnose_text(told, width=terminal_width(), colour=colour_wanted()))
