"""``tfdyno.tune``: the command of that name for Python and notebooks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.lasting import Lasting
from tfdyno.core.choose.workload import Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.recipe_file import Given, given_recipe
from tfdyno.core.train.search_space import read_values
from tfdyno.core.train.tuning import Tuning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.measure.software import Backend
    from tfdyno.jobs.tune.request import TuneRequest

_OPTIONS = (
    "input_shapes", "input_spec", "script_arguments", "fit_number", "python", "allow_unsafe",
)  # fmt: skip
"""Fields of ``Workload`` that decide nothing of a recipe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneResult(Tuning):
    """What came out of a study; ``recipe`` is the answer, a notebook shows text."""

    folder: str

    def text(self, width: int = 80) -> str:
        """Return what the command prints."""
        from tfdyno.view.train.tune_text import tune_text

        return tune_text(self, folder=self.folder, width=width)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.text())}</pre>"


def tune(
    subject: Value,
    *,
    recipe: Given = None,
    backend: Backend | None = None,
    space: Mapping[str, object] | None = None,
    trials: int | None = None,
    runs: int | None = None,
    seconds: float | None = None,
    keep_batch: bool = False,
    output: str | Path | None = None,
    resume: bool = False,
    seed: int = 0,
    progress: bool = True,
    **options: Any,
) -> TuneResult:
    """Find the fastest recipe by measured trials on this machine, and prove it.

    Every run is a fresh process; this one, and its GPU, are left alone. The folder gets what the
    command writes.

    Args:
        subject: A script, ``file.py:function``, ``model.keras`` or task as on the command line, or
            a ``Workload``.
        recipe: To start from: a ``Recipe``, its settings by name, or the path of a TOML file.
        backend: Of Keras: ``jax`` or ``tensorflow``; None: as the code or the variables set it.
        space: Values of settings by name, as ``{"batch_size": [32, 64]}``, or a single one; that of
            the start is tried in any case. Others have usual ones.
        trials: That are run, at most; None: 20.
        runs: Fresh processes of a trial; None: 3.
        seconds: Of steps in a run, at most; None: 20.
        keep_batch: Leave the samples of an update as they are.
        output: Folder of the study; None: ``tfdyno-tuning``.
        resume: Go on with the study in it.
        seed: Of the order of trials.
        progress: Tell every stage on stderr.
        options: Fields of ``Workload``: ``script_arguments``, ``fit_number``, ``python``, …

    Raises:
        UsageError: Optuna is not installed, what is asked has no answer, or the user's code fails.
        ToolError: The start's child process failed.
        KeyboardInterrupt: It was stopped; the trials are kept for ``resume``.
    """
    from tfdyno.cli.backend_options import backend_of
    from tfdyno.cli.progress import progress_line
    from tfdyno.jobs.tune.tune import tune as trials_of
    from tfdyno.jobs.tune.write import written

    start = given_recipe(recipe) or Recipe()
    given = {"trials": trials, "runs": runs, "seconds_s": seconds, "folder": output, "seed": seed}
    workload = _workload(subject, options)
    on, note = backend_of(workload, backend)
    request = _request(
        workload, start, space or {},
        {**given, "keep_batch": keep_batch, "resume": resume, "backend": on},
    )  # fmt: skip
    with progress_line(quiet=not progress, verbose=False) as shown:
        if note:
            shown(Lasting(note))
        *_, last = trials_of(request, progress=shown)
    written(request.folder, last)
    found = {one.name: getattr(last, one.name) for one in fields(Tuning)}
    return TuneResult(**found, folder=str(request.folder))


def _workload(subject: Value, options: Mapping[str, Any]) -> Workload:
    from dataclasses import replace

    from tfdyno.jobs.choose.reference import parse_reference

    for name in options:
        settings.one_of(name, _OPTIONS, "option")
    if isinstance(subject, Workload):
        return replace(subject, **options)
    if isinstance(subject, str | Path):
        return parse_reference(str(subject), **options)
    raise UsageError(f"{type(subject).__name__} cannot be tuned",
                     why="its trials run in fresh processes, with their data",
                     remedy="give a script or 'file.py:function'")  # fmt: skip


def _several(values: object) -> Sequence[object]:
    """Return the values; a single one, text included, by itself."""
    return tuple(values) if isinstance(values, list | tuple | range) else (values,)


def _request(
    workload: Workload,
    start: Recipe,
    space: Mapping[str, object],
    given: Mapping[str, Any],
) -> TuneRequest:
    from tfdyno.jobs.bench.bench import default_data
    from tfdyno.jobs.tune.request import TuneRequest

    read: dict[str, Callable[[Any], object]] = {
        "trials": lambda value: settings.whole(value, "trials"),
        "runs": lambda value: settings.whole(value, "runs", least=2),
        "seconds_s": lambda value: settings.positive(value, "seconds"),
        "folder": Path,
        "seed": lambda value: settings.whole(value, "seed", least=0),
    }
    asked: dict[str, Any] = {
        name: one(given[name]) for name, one in read.items() if given[name] is not None
    }
    return TuneRequest(
        workload=workload,
        recipe=start,
        backend=given["backend"],
        named={name: read_values(name, _several(values), start) for name, values in space.items()},
        data=default_data(workload),
        keep_batch=given["keep_batch"],
        resume=given["resume"],
        **asked,
    )
