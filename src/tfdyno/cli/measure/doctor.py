"""``tfdyno doctor``: why TensorFlow does not use the GPU, or why it failed, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tfdyno.cli.options import TOLD, Filled, Whole
from tfdyno.cli.progress import progress_line
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.settings import MOST_PORT
from tfdyno.core.doctor.finding import LANGUAGES, Language

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


@click.command()
@click.option("--quick", is_flag=True, help="Static checks only; TensorFlow is not started.")
@click.option("--explain", metavar="LOG|-", help="Explain a log, from this machine or another.")
@click.option("--code", metavar="PATH", help="Check a script or a folder for calls that fail.")
@click.option("--env", metavar="FILE", help="Facts of another machine, a few words or all.")
@click.option("--save-env", metavar="FILE", help="Write this machine's facts, names taken out.")
@click.option("--can-run", is_flag=True, help="Does --tf run on --gpu? Needs no machine.")
@click.option("--matrix", is_flag=True, help="Which TensorFlow runs on which GPU.")
@click.option("--gpu", metavar="A,B,…", help="GPUs for --can-run and --matrix.")
@click.option("--tf", metavar="X.Y,…", help="TensorFlow releases for --can-run and --matrix.")
@click.option("--workload", metavar="WORKLOAD", help="After out of memory: the batch that fits.")
@click.option("--python", default="", metavar="PATH", help="Interpreter whose TensorFlow is meant.")
@click.option("--fix-plan", is_flag=True, help="Print the commands in order; none is run.")
@click.option("--share", is_flag=True, help="A report for a bug tracker, names taken out.")
@click.option("--show-ignored", is_flag=True, help="Give every harmless message its reason.")
@click.option("--cluster", is_flag=True, help="Can several nodes train together? On each of them.")
@click.option(
    "--nodes", type=Whole("--nodes"), help="Of --cluster; started here without an engine."
)
@click.option("--output", type=Filled(), metavar="DIR", help="Of --cluster: the run's folder.")
@click.option(
    "--gpus-per-node",
    "gpus",
    type=Whole("--gpus-per-node", least=0),
    help="Of --cluster; 0: the CPUs train.  [default: whatever there is]",
)
@click.option("--link", type=Filled(), metavar="SLUG", help="Of --cluster: between the nodes.")
@click.option("--rank", type=Whole("--rank", least=0), help="Of --cluster, where no engine tells.")
@click.option("--port", type=Whole("--port", most=MOST_PORT), help="Of --cluster: of every node.")
@click.option("--wait", type=Filled(), metavar="TIME", help="Of --cluster: for the other nodes.")
@click.option("--events", is_flag=True, hidden=True, help="Lines of JSON on stderr.")
@click.option("--lang", type=click.Choice(LANGUAGES), help="Without it: as the locale says.")
@TOLD
def doctor(**given: Any) -> int:
    """Say why TensorFlow does not use the GPU, or why it failed.

    Names the cause, proves it and gives the exact fix. Without options this machine is examined.
    Exit code 1 means a finding that is an error, 4 an error in a log that it does not know.
    """
    _check(given)
    if given["cluster"]:
        from tfdyno.cli.measure.doctor_cluster import answer_cluster

        return answer_cluster(given)
    if given["can_run"] or given["matrix"]:
        from tfdyno.cli.choose.can_run import answer_support

        return answer_support(given)
    language: Language = given["lang"] or _language_of_locale()
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        examined = _examined(given, language, progress)
    if given["save_env"]:
        from tfdyno.jobs.doctor.doctor import save_facts

        save_facts(Path(given["save_env"]), examined.facts)
    _print(examined, given, language)
    return examined.exit_code


def _check(given: dict[str, Any]) -> None:
    """Refuse what cannot be asked together; raises ``UsageError``."""
    for name in ("explain", "code", "env", "save_env", "tf", "gpu", "workload"):
        if given[name] is not None and not given[name].strip():
            raise UsageError(f"{_option(name)} is empty", remedy="leave it out or say which")
    for choices in (_SUBJECTS, _FORMS, _MACHINES):
        chosen = [name for name in choices if given[name]]
        if len(chosen) > 1:
            raise UsageError(f"give {_option(chosen[0])} or {_option(chosen[1])}, not both")
    subject = next((name for name in _SUBJECTS if given[name]), "")
    for name, subjects in _GOES_WITH.items():
        is_given = given[name] not in ("", None) and given[name] is not False
        if is_given and subject not in subjects:
            known = [s for s in subjects if s and (s != "cluster" or "" not in subjects)]
            others = " or ".join(map(_option, known))
            remedy = f"it goes with {others}" if others else "it examines this machine"
            what = f"with {_option(subject)}" if subject else "alone"
            raise UsageError(f"{_option(name)} has no use {what}", remedy=remedy)
    if given["explain"] and given["gpu"] and not given["workload"]:
        raise UsageError("--gpu goes with --explain only where --workload names what ran")
    if given["can_run"] and not (given["gpu"] and given["tf"]):
        raise UsageError(
            "--can-run needs a GPU and a release",
            remedy="for example --can-run --gpu rtx-5090 --tf 2.20",
        )


def _option(name: str) -> str:
    if name == "gpus":
        return "--gpus-per-node"
    return f"--{name.removeprefix('as_').replace('_', '-')}"


def _examined(
    given: dict[str, Any], language: Language, progress: Callable[[str], None]
) -> Examined:
    from tfdyno.jobs.doctor import doctor as job

    facts = job.told_facts(Path(given["env"])) if given["env"] else None
    if given["explain"]:
        from tfdyno.probe.files.log_file import read_log

        path = None if given["explain"] == STANDARD_INPUT else Path(given["explain"])
        chunks = read_log(path, progress=lambda n: progress(f"read {n / 1e6:,.0f} MB"))
        found = job.explain(chunks, facts=facts, language=language)
        if given["workload"]:
            from tfdyno.jobs.memory.fitting_batch import with_fitting_batch

            return with_fitting_batch(found, given["workload"], given["gpu"] or "", progress)
        return found
    if given["code"]:
        return job.check_source(
            Path(given["code"]), facts=facts, python=given["python"],
            language=language, progress=progress,
        )  # fmt: skip
    if facts is not None:
        return job.replay(facts, language=language)
    return job.examine(
        quick=given["quick"], python=given["python"], language=language, progress=progress
    )


def _print(examined: Examined, given: dict[str, Any], language: Language) -> None:
    from tfdyno.view.base.text import colour_wanted, terminal_width

    diagnosis = examined.diagnosis
    if given["as_json"]:
        from tfdyno.core.base.codec import to_json
        from tfdyno.view.doctor.document import doctor_document

        shown = to_json(doctor_document(diagnosis, examined.facts)).decode()
    elif given["fix_plan"]:
        from tfdyno.view.doctor.text import fix_plan

        shown = fix_plan(diagnosis, language=language)
    elif given["share"]:
        from tfdyno.view.doctor.text import shared_report

        shown = shared_report(diagnosis, examined.facts)
    else:
        from tfdyno.view.doctor.text import doctor_text

        shown = doctor_text(
            diagnosis,
            exit_code=examined.exit_code,
            from_log=bool(given["explain"]),
            show_ignored=given["show_ignored"],
            language=language,
            width=terminal_width(),
            colour=colour_wanted(),
        )
    if given["share"]:
        from tfdyno.jobs.doctor.doctor import redacted

        shown = redacted(shown)
    click.echo(shown)


def _language_of_locale() -> Language:
    import os

    told = (os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, told), "").lower().startswith("zh") else "en"
