"""``tfdyno.diagnose``: the command of that name for Python and notebooks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.lasting import Lasting
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.fix_proof import ProvenDiagnosis
from tfdyno.core.measure.measurement import Environment
from tfdyno.core.measure.step_facts import StepFacts
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.recipe_file import given_recipe

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.measure.bottleneck import Bottleneck
    from tfdyno.core.measure.software import Backend
    from tfdyno.jobs.diagnose.diagnose import DiagnoseRequest, Examined
    from tfdyno.view.diagnose.document import DiagnoseReport


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseResult(ProvenDiagnosis):
    """What holds a training back, with all that was seen; a notebook shows cause, fix and gains."""

    facts: StepFacts
    environment: Environment | None
    reference: str
    """What was diagnosed."""
    base: Recipe
    """The recipe without the fixes that were kept."""
    tried: bool = False
    """Whether fixes were asked to be proven."""
    look: str = ""
    """What is typed to look at the steps themselves, where a record was all there was."""

    @property
    def primary(self) -> Bottleneck:
        """The one cause that leads."""
        return self.diagnosis.primary

    @property
    def findings(self) -> tuple[Bottleneck, ...]:
        """All of them, the primary one first."""
        return self.diagnosis.findings

    def html(self) -> str:
        """Return the report page, self-contained."""
        from tfdyno.view.diagnose.page import diagnose_page

        return diagnose_page(self._told())

    def text(self, width: int = 80) -> str:
        """Return what the command prints."""
        from tfdyno.view.diagnose.text import diagnose_text

        return diagnose_text(self._told(), width=width)

    def _repr_html_(self) -> str:
        from tfdyno.view.notebook import diagnosis_html

        return diagnosis_html(self._told())

    def _told(self) -> DiagnoseReport:
        from tfdyno.view.diagnose.document import DiagnoseReport

        return DiagnoseReport(
            proven=self,
            facts=self.facts,
            reference=self.reference,
            base=self.base,
            environment=self.environment,
            tried=self.tried,
            look=self.look,
        )


def diagnose(
    subject: Value,
    *,
    recipe: Recipe | Mapping[str, object] | str | Path | None = None,
    fix: bool = False,
    steps: int | None = None,
    seconds: float | None = None,
    output: str | Path | None = None,
    resume: bool = False,
    backend: Backend | None = None,
    progress: bool = True,
    **options: Any,
) -> DiagnoseResult:
    """Say what holds a training back, and with ``fix`` prove the change.

    The training runs in a fresh process; this one, and its GPU, are left alone.

    Args:
        subject: A script, ``file.py:function``, ``model.keras`` or task as on the command line, a
            ``Workload``; or a profile, or what ``train`` or ``bench`` has written.
        recipe: A ``Recipe``, its settings by name, or the path of a TOML file.
        fix: Make each change that a recipe can make, measure it in turns with the run as it is,
            and keep it if it is faster and learns the same.
        steps: Look at so many steps; None: as time allows.
        seconds: Look for so long, and so long in each run of a proof.
        output: Folder of the measurements that prove a fix; None: the user's own.
        resume: Take what is measured of the fixes already.
        backend: Of Keras: ``jax`` or ``tensorflow``; None: as the code or the variables set it.
        progress: Tell every stage on stderr.
        options: Fields of ``Workload``: ``script_arguments``, ``fit_number``, ``python``, …

    Raises:
        UsageError: What is asked has no answer, or the user's code fails.
        ToolError: A child process failed.
    """
    from tfdyno.cli.progress import progress_line

    given = {"recipe": recipe, "fix": fix, "steps": steps, "seconds": seconds, "output": output,
             "resume": resume, "backend": backend}  # fmt: skip
    with progress_line(quiet=not progress, verbose=False) as shown:
        if isinstance(subject, str | Path):
            found = _recorded(str(subject), {**given, **options}, shown)
            if found:
                return found
        request, note = _request(subject, given, options)
        if note:
            shown(Lasting(note))
        return _answer(request, fix, shown)


def _recorded(
    place: str, given: Mapping[str, object], progress: Callable[[str], None]
) -> DiagnoseResult | None:
    """Return what a profile or a record tells; None: it is neither."""
    from tfdyno.jobs.diagnose.profile import examined_profile, is_profile
    from tfdyno.jobs.diagnose.recorded_run import examined_run, is_run
    from tfdyno.view.diagnose.words import command

    if not (is_run(place) or is_profile(place)):
        return None
    if asked := [name for name, value in given.items() if value]:
        raise UsageError(f"{asked[0]} cannot go with {place}", why="there is nothing to run",
                         remedy="give the script instead, or leave it out")  # fmt: skip
    if not is_run(place):
        return _result(examined_profile(Path(place), progress=progress), place, Recipe())
    run = examined_run(place)
    look = command("diagnose", run.reference, run.arguments, run.settings)
    return replace(_result(run.examined, place, run.recipe), look=look)


def _request(
    subject: Value, given: Mapping[str, Any], options: dict[str, Any]
) -> tuple[DiagnoseRequest, str]:
    """Return what is asked, and what is to be told of the backend that was found."""
    from tfdyno.cli.backend_options import backend_of
    from tfdyno.jobs.choose.reference import parse_reference
    from tfdyno.jobs.diagnose.diagnose import DiagnoseRequest, check

    for name in ("output", "resume"):
        if given[name] and not given["fix"]:
            raise UsageError(f"{name} needs fix", why="it is about measurements that prove a fix",
                             remedy="give fix=True or leave it out")  # fmt: skip
    if isinstance(subject, Workload):
        workload = replace(subject, **options)
    elif isinstance(subject, str | Path):
        workload = parse_reference(str(subject), **options)
    else:
        raise _not_taken(subject)
    backend, note = backend_of(workload, given["backend"])
    request = DiagnoseRequest(
        workload=workload,
        recipe=given_recipe(given["recipe"]) or Recipe(),
        steps=settings.whole(given["steps"], "steps") if given["steps"] is not None else 0,
        seconds_s=settings.positive(given["seconds"], "seconds")
        if given["seconds"] is not None
        else 0.0,
        folder=Path(given["output"]) if given["output"] else None,
        resume=given["resume"],
        backend=backend,
    )
    check(request)
    return request, note


def _not_taken(subject: Value) -> UsageError:
    what = f"{type(subject).__name__} cannot be diagnosed"
    if not hasattr(subject, "save") or not hasattr(subject, "layers"):
        return UsageError(what, why="its steps run in a fresh process, with their data",
                          remedy="give a script or 'file.py:function'")  # fmt: skip
    return UsageError(
        what,
        why="its steps run in a fresh process, which has no way to the data and callbacks of this",
        remedy="give the script that trains it, or 'file.py:function' that returns (model, data); "
        "model.save('model.keras') and 'model.keras' tell of its step alone, on a random batch",
    )


def _answer(request: DiagnoseRequest, fix: bool, progress: Callable[[str], None]) -> DiagnoseResult:
    from tfdyno.jobs.diagnose.diagnose import examined
    from tfdyno.jobs.diagnose.fixes import proven

    found = examined(request, progress=progress)
    if found.failed:
        raise found.failed
    if found.stopped:
        raise KeyboardInterrupt
    result = _result(found, request.workload.reference, request.recipe)
    if not fix:
        return result
    *_, last = proven(request, found, progress=progress)
    return replace(
        result, diagnosis=last.diagnosis, recipe=last.recipe, proofs=last.proofs, left=last.left,
        after=last.after, after_note=last.after_note, tried=True,
    )  # fmt: skip


def _result(found: Examined, reference: str, recipe: Recipe) -> DiagnoseResult:
    return DiagnoseResult(
        diagnosis=found.diagnosis,
        recipe=recipe,
        facts=found.facts,
        environment=found.environment,
        reference=reference,
        base=recipe,
    )
