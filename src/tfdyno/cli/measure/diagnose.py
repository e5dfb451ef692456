"""``tfdyno diagnose``: what holds a training back, what to change, and the proof that it helps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.cli.answer import Answer, noted
from tfdyno.cli.backend_options import EITHER, backend_of
from tfdyno.cli.command import command, flag, given, group, option
from tfdyno.cli.options import (
    HTML,
    LANG,
    RECIPE,
    SET,
    WAIT_FREE,
    Filled,
    Positive,
    Telling,
    Whole,
    check_writable,
    recipe_from,
)
from tfdyno.cli.progress import progress_line
from tfdyno.cli.workload_options import CodeOptions, WorkloadOptions, workload_from
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import Language
from tfdyno.core.base.lasting import Lasting
from tfdyno.core.recipe.recipe import typed

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.measure.fix_proof import ProvenDiagnosis
    from tfdyno.jobs.diagnose.diagnose import DiagnoseRequest, Examined
    from tfdyno.view.diagnose.document import DiagnoseReport

_NEED_FIX = {
    "write": "only what is proven is written",
    "output": "it keeps the measurements that prove a fix",
    "resume": "it takes measurements that prove a fix",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(WorkloadOptions):
    backend: str | None = EITHER
    recipe: Path | None = RECIPE
    changes: tuple[str, ...] = SET
    steps: int | None = option(
        type=Whole("steps"), help="Look at so many.  [default: as time allows]"
    )
    seconds: float | None = option(
        type=Positive("seconds"), metavar="S",
        help="Look for so long, and so long in each run with --fix.",
    )  # fmt: skip
    leak: bool = flag(help="Look only at whether memory grows, and longer at that.")
    fix: bool = flag(help="Make each change, measure it, keep what is proven.")
    write: str | None = option(
        type=Filled(), metavar="DIR",
        help="With --fix: write the recipe, and a diff for your script.",
    )  # fmt: skip
    output: str | None = option(
        type=Filled(), metavar="DIR", help="With --fix: folder of the results."
    )
    resume: bool = flag(help="With --fix: take what is measured already.")
    wait_free: bool = WAIT_FREE
    html: Path | None = HTML
    lang: Language | None = LANG
    code: CodeOptions = group(CodeOptions)
    told: Telling = group(Telling)


@command(_Options)
def diagnose(options: _Options) -> Answer:
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

    check_writable(options.html)
    if is_run(options.workload):
        return _of_run(options)
    if is_profile(options.workload):
        return _of_profile(options)
    request, note = _request(options)
    from tfdyno.jobs.diagnose.diagnose import check, examined
    from tfdyno.jobs.diagnose.write import check_folder

    check(request)
    folder = Path(options.write) if options.write else None
    if folder:  # looked at before minutes of work
        check_folder(folder)
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        if note:
            progress(Lasting(note))
        found = examined(request, progress=progress)
        last, stop = _proven(request, found, options, progress)
    told = _told(request, found, last, options, folder)
    return replace(
        _answer(told, options),
        error=stop and noted(stop, "What was found until then is printed."),
    )


def _of_profile(options: _Options) -> Answer:
    """Return what a profile tells; there is nothing to run, so nothing is proven."""
    _refuse_to_run(options, "a profile")
    from tfdyno.jobs.diagnose.profile import examined_profile
    from tfdyno.view.diagnose.document import told_of

    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        found = examined_profile(Path(options.workload), progress=progress)
    return _answer(told_of(found.diagnosis, found.facts, options.workload), options)


def _of_run(options: _Options) -> Answer:
    """Return what was recorded of a run, and what to type for all the rest."""
    _refuse_to_run(options, "a run that is over")
    from tfdyno.jobs.diagnose.recorded_run import examined_run
    from tfdyno.view.diagnose.document import told_of
    from tfdyno.view.diagnose.words import command

    run = examined_run(options.workload)
    found = run.examined
    told = replace(
        told_of(found.diagnosis, found.facts, options.workload),
        environment=found.environment,
        look=command("diagnose", run.reference, run.arguments, run.settings),
    )
    return _answer(told, options)


def _refuse_to_run(options: _Options, what: str) -> None:
    """Refuse what asks for steps of something that has none to run; raises ``UsageError``."""
    refused = given(options, "leak", "fix", "write", "output", "resume", "recipe", "changes",
                    "steps", "seconds", "script_arguments", "wait_free", "backend")  # fmt: skip
    if refused:
        name = "arguments" if refused[0] == "script_arguments" else refused[0]
        raise UsageError(f"{name} cannot go with {what}", why="there is nothing to run",
                         remedy="give the script instead, or leave it out")  # fmt: skip


def _request(options: _Options) -> tuple[DiagnoseRequest, str]:
    """Return what is asked, and what is to be told of the backend that was found."""
    from tfdyno.jobs.diagnose.diagnose import DiagnoseRequest

    if options.leak and options.fix:
        raise UsageError("--fix cannot go with --leak", why="only memory is looked at then",
                         remedy="leave one of them out")  # fmt: skip
    for name, why in _NEED_FIX.items():
        if given(options, name) and not options.fix:
            raise UsageError(f"--{name} needs --fix", why=why, remedy="add --fix or leave it out")
    workload = workload_from(options, options.code)
    backend, note = backend_of(workload, options.backend)
    request = DiagnoseRequest(
        workload=workload,
        recipe=recipe_from(options.recipe, typed(options.changes)),
        steps=options.steps or 0,
        seconds_s=options.seconds or 0.0,
        folder=Path(options.output) if options.output else None,
        resume=options.resume,
        memory_alone=options.leak,
        wait_free=options.wait_free,
        backend=backend,
    )
    return request, note


def _proven(
    request: DiagnoseRequest,
    found: Examined,
    options: _Options,
    progress: Callable[[str], None],
) -> tuple[ProvenDiagnosis, BaseException | None]:
    """Return what is proven, as far as it came, and what stopped it."""
    from tfdyno.core.measure.fix_proof import ProvenDiagnosis

    last = ProvenDiagnosis(diagnosis=found.diagnosis, recipe=request.recipe)
    if found.stopped:
        return last, KeyboardInterrupt()
    if found.failed or not options.fix:
        return last, found.failed
    from tfdyno.jobs.diagnose.fixes import proven

    try:
        for so_far in proven(request, found, progress=progress):
            last = so_far
    except BaseException as error:  # told after the answer so far
        return last, error
    return last, None


def _told(
    request: DiagnoseRequest,
    found: Examined,
    last: ProvenDiagnosis,
    options: _Options,
    folder: Path | None,
) -> DiagnoseReport:
    from tfdyno.view.diagnose.document import DiagnoseReport

    files: tuple[Path, ...] = ()
    if folder:
        from tfdyno.jobs.diagnose.write import written

        files = written(folder, last, request.recipe, found.facts, request.workload)
    return DiagnoseReport(
        proven=last,
        facts=found.facts,
        reference=request.workload.reference,
        base=request.recipe,
        environment=found.environment,
        tried=options.fix,
        arguments=_words(options, request.workload),
        own_arguments=_own_words(options),
        written=tuple(map(str, files)),
        growth=found.growth,
    )


def _words(options: _Options, workload: Workload) -> tuple[str, ...]:
    """Return what is to be typed again for the same workload and recipe."""
    from tfdyno.jobs.choose.reference import option_words, script_words

    words = ["--backend", options.backend] if options.backend else []
    words += ["--recipe", str(options.recipe)] if options.recipe else []
    words += [word for one in options.changes for word in ("--set", one)]
    return (*words, *option_words(workload), *script_words(workload))


def _own_words(options: _Options) -> tuple[str, ...]:
    words = [word for one in options.code.input_spec for word in ("--input-spec", one)]
    return (
        *words,
        *(("--fit", str(options.code.fit_number)) if options.code.fit_number > 1 else ()),
    )


def _answer(told: DiagnoseReport, options: _Options) -> Answer:
    """As it was asked for; 1 where something ends the training, as memory that grows."""
    from tfdyno.core.base.clock import today
    from tfdyno.view.diagnose.document import diagnose_document
    from tfdyno.view.diagnose.growth_page import growth_page
    from tfdyno.view.diagnose.growth_text import growth_text, leak_document
    from tfdyno.view.diagnose.page import diagnose_page
    from tfdyno.view.diagnose.text import diagnose_text

    told = replace(told, made_on=today().isoformat())
    ends = any(one.severity == "error" for one in told.proven.diagnosis.findings)
    return Answer(
        files=((options.html, partial(growth_page if options.leak else diagnose_page, told)),),
        document=partial(leak_document if options.leak else diagnose_document, told),
        text=partial(growth_text if options.leak else diagnose_text, told),
        exit_code=int(ends or any(one.grows for one in told.growth)),
    )
