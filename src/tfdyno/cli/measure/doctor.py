"""``tfdyno doctor``: why TensorFlow does not use the GPU, or why it failed, and what to do."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.cli.answer import Answer
from tfdyno.cli.command import TEXT, command, flag, given, group, option, option_names, values_of
from tfdyno.cli.measure.doctor_cluster import Cluster
from tfdyno.cli.options import LANG, OneOf, Telling, moving_to
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import Language
from tfdyno.words.base.language import spoken

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.jobs.doctor.doctor import Examined

STANDARD_INPUT = "-"
_SUBJECTS = ("explain", "code", "can_run", "matrix", "cluster")
"""What may be asked about instead of this machine; one of them."""
_FORMS = ("as_json", "fix_plan", "share")
_MACHINES = ("env", "python")
_ANSWERED = ("", "explain", "code")
_GOES_WITH = {
    "quick": ("", "cluster"),
    "save_env": ("",),
    "python": ("", "code"),
    "env": _ANSWERED,
    "to": ("code",),
    "fix_plan": _ANSWERED,
    "share": _ANSWERED,
    "show_ignored": _ANSWERED,
    "workload": ("explain",),
    "gpu": ("explain", "can_run", "matrix"),
    "tf": ("can_run", "matrix"),
    "lang": ("", "explain", "code", "can_run", "matrix"),
    **dict.fromkeys(
        ("nodes", "gpus", "output", "link", "rank", "port", "wait", "events"), ("cluster",)
    ),
}
"""An option to the subjects with which it has a use; the empty one is this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    quick: bool = flag(help="Static checks only; TensorFlow is not started.")
    explain: str | None = option(
        type=TEXT, metavar="LOG|-", help="Explain a log, from this machine or another."
    )
    code: str | None = option(
        type=TEXT, metavar="PATH", help="Check a script or a folder for calls that fail."
    )
    to: str | None = option(
        type=OneOf("backend", ("jax",), moving_to), metavar="jax",
        help="With --code: what stops the move to this backend of Keras.",
    )  # fmt: skip
    env: str | None = option(
        type=TEXT, metavar="FILE", help="Facts of another machine, a few words or all."
    )
    save_env: str | None = option(
        type=TEXT, metavar="FILE", help="Write this machine's facts, names taken out."
    )
    can_run: bool = flag(help="Does --tf run on --gpu? Needs no machine.")
    matrix: bool = flag(help="Which TensorFlow runs on which GPU.")
    gpu: str | None = option(type=TEXT, metavar="A,B,…", help="GPUs for --can-run and --matrix.")
    tf: str | None = option(
        type=TEXT, metavar="X.Y,…", help="TensorFlow releases for --can-run and --matrix."
    )
    workload: str | None = option(
        type=TEXT, metavar="WORKLOAD", help="After out of memory: the batch that fits."
    )
    python: str = option(
        type=TEXT, default="", metavar="PATH", help="Interpreter whose TensorFlow is meant."
    )
    fix_plan: bool = flag(help="Print the commands in order; none is run.")
    share: bool = flag(help="A report for a bug tracker, names taken out.")
    show_ignored: bool = flag(help="Give every harmless message its reason.")
    cluster: bool = flag(help="Can several nodes train together? On each of them.")
    of_cluster: Cluster = group(Cluster)
    lang: Language | None = LANG
    told: Telling = group(Telling)


@command(_Options)
def doctor(options: _Options) -> Answer | int:
    """Say why TensorFlow does not use the GPU, or why it failed.

    Names the cause, proves it and gives the exact fix. Without options this machine is examined.
    Exit code 1 means a finding that is an error, 4 an error in a log that it does not know; with
    --to it is 1 unless the code moves as it is.
    """
    _check(options)
    if options.cluster:
        from tfdyno.cli.measure.doctor_cluster import answer_cluster

        return answer_cluster(options.of_cluster, options.told, is_quick=options.quick)
    if options.can_run or options.matrix:
        from tfdyno.cli.choose.can_run import support

        return support(options.gpu, options.tf, as_matrix=options.matrix)
    language = spoken()
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        examined = _examined(options, language, progress)
    if options.save_env:
        from tfdyno.jobs.doctor.doctor import save_facts

        save_facts(Path(options.save_env), examined.facts)
    return Answer(
        document=partial(_document, examined),
        indent=0,
        text=partial(_text, examined, options, language),
        exit_code=examined.exit_code,
    )


def _check(options: _Options) -> None:
    """Refuse what cannot be asked together; raises ``UsageError``."""
    names = option_names(_Options)
    for name in ("explain", "code", "env", "save_env", "tf", "gpu", "workload"):
        text = getattr(options, name)
        if text is not None and not text.strip():
            raise UsageError(f"{names[name]} is empty", remedy="leave it out or say which")
    typed = values_of(options)
    for choices in (_SUBJECTS, _FORMS, _MACHINES):
        chosen = [name for name in choices if typed[name]]
        if len(chosen) > 1:
            raise UsageError(f"give {names[chosen[0]]} or {names[chosen[1]]}, not both")
    subject = next((name for name in _SUBJECTS if typed[name]), "")
    for name, subjects in _GOES_WITH.items():
        if given(options, name) and subject not in subjects:
            known = [s for s in subjects if s and (s != "cluster" or "" not in subjects)]
            others = " or ".join(map(names.__getitem__, known))
            remedy = f"it goes with {others}" if others else "it examines this machine"
            what = f"with {names[subject]}" if subject else "alone"
            raise UsageError(f"{names[name]} has no use {what}", remedy=remedy)
    if options.to and (options.env or options.python):
        name = names["env"] if options.env else names["python"]
        raise UsageError(f"{name} has no use with --to", why="the move depends on no machine")
    if options.explain and options.gpu and not options.workload:
        raise UsageError("--gpu goes with --explain only where --workload names what ran")
    if options.can_run and not (options.gpu and options.tf):
        raise UsageError(
            "--can-run needs a GPU and a release",
            remedy="for example --can-run --gpu rtx-5090 --tf 2.20",
        )


def _examined(options: _Options, language: Language, progress: Callable[[str], None]) -> Examined:
    from tfdyno.jobs.doctor import doctor as job

    facts = job.told_facts(Path(options.env)) if options.env else None
    if options.explain:
        from tfdyno.probe.files.log_file import read_log

        path = None if options.explain == STANDARD_INPUT else Path(options.explain)
        chunks = read_log(path, progress=lambda n: progress(f"read {n / 1e6:,.0f} MB"))
        found = job.explain(chunks, facts=facts, language=language)
        if options.workload:
            from tfdyno.jobs.memory.fitting_batch import with_fitting_batch

            return with_fitting_batch(found, options.workload, options.gpu or "", progress)
        return found
    if options.code and options.to:
        from tfdyno.jobs.doctor.move import check_move

        return check_move(Path(options.code), language=language, progress=progress)
    if options.code:
        return job.check_source(
            Path(options.code), facts=facts, python=options.python,
            language=language, progress=progress,
        )  # fmt: skip
    if facts is not None:
        return job.replay(facts, language=language)
    return job.examine(
        quick=options.quick, python=options.python, language=language, progress=progress
    )


def _document(examined: Examined) -> dict[str, Any]:
    from tfdyno.view.doctor.document import doctor_document

    facts = None if examined.diagnosis.move else examined.facts  # no machine was looked at
    return doctor_document(examined.diagnosis, facts)


def _text(
    examined: Examined, options: _Options, language: Language, *, width: int, colour: bool
) -> str:
    from tfdyno.view.doctor.text import doctor_text, fix_plan, shared_report

    if options.fix_plan:
        return fix_plan(examined.diagnosis, language=language)
    if options.share:
        from tfdyno.jobs.doctor.doctor import redacted

        return redacted(shared_report(examined.diagnosis, examined.facts))
    return doctor_text(
        examined.diagnosis,
        exit_code=examined.exit_code,
        from_log=bool(options.explain),
        show_ignored=options.show_ignored,
        language=language,
        width=width,
        colour=colour,
    )
