"""``tfdyno bench``: measure a workload by the protocol, alone or two recipes in turns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from tfdyno.cli.answer import Answer
from tfdyno.cli.backend_options import backend_of
from tfdyno.cli.command import TEXT, command, flag, group, many, option
from tfdyno.cli.options import (
    HTML,
    LANG,
    RECIPE,
    SET,
    WAIT_FREE,
    Filled,
    NewFile,
    OneOf,
    Positive,
    Telling,
    Whole,
    check_writable,
    recipe_from,
)
from tfdyno.cli.progress import progress_line
from tfdyno.cli.workload_options import CodeOptions, WorkloadOptions, workload_from
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.base.language import Language
from tfdyno.core.base.lasting import Lasting
from tfdyno.core.measure.measurement import DataMode, Protocol
from tfdyno.core.recipe.recipe import from_settings, typed
from tfdyno.core.train.jax_plan import BACKENDS, backend_named, check_backend
from tfdyno.words.base.language import ENGLISH, answering, say, spoken

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.measure.measurement import Comparison, Measurement, Summary
    from tfdyno.core.measure.measurement_document import MeasurementReport as Side
    from tfdyno.core.measure.software import Backend
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.jobs.bench.bench import BenchRequest

_AS_SETTINGS = ("batch_size", "precision", "execution")
"""Options that are settings of the recipe with a name of their own."""


_WORDS = "tfdyno.words"


class _Bench(click.Command):
    """Remembers what was typed, to repeat it in a container; ``--serve`` is another command."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Hand over to the load test, which has options of its own, where ``--serve`` stands."""
        own = args[: args.index("--")] if "--" in args else args
        if any(word == "--serve" or word.startswith("--serve=") for word in own):
            from tfdyno.cli.measure.bench_serve import bench_serve

            asks = "--help" in own or "-h" in own  # also where the address is still to come
            words = ["--help"] if asks else args
            return bench_serve.make_context(info_name, words, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words as any command does."""
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options(WorkloadOptions):
    data: DataMode | None = option(
        type=OneOf("data", get_args(DataMode)), help="Default: own; synthetic for a model alone."
    )
    recipe: Path | None = RECIPE
    changes: tuple[str, ...] = SET
    against: tuple[str, ...] = many(
        type=TEXT, metavar="KEY=VALUE",
        help="Measure in turns with the same run that has this setting; many. backend=jax: with "
        "the same run on JAX.",
    )  # fmt: skip
    backend: str | None = option(
        type=OneOf("backend", BACKENDS),
        help="Of Keras.  [default: the other than that of --against, else as the code or "
        "KERAS_BACKEND sets it, else tensorflow]",
    )
    batch_size: int | None = option(type=Whole("batch size"), help="Samples per replica.")
    precision: str | None = option(
        type=OneOf("precision", settings.PRECISIONS), help="As a setting."
    )
    execution: str | None = option(
        type=OneOf("execution", ("auto", "xla", "graph")), help="The same."
    )
    mode: str = option(
        type=OneOf("mode", settings.MODES), default="train", show_default=True,
        help="The train step, or the forward pass.",
    )  # fmt: skip
    epochs: int | None = option(type=Whole("epochs"), help="Train whole epochs in every run.")
    target: str | None = option(
        type=Filled(), metavar="METRIC=VALUE",
        help="Train until accuracy=0.9, --epochs at most; tells the time it took.",
    )  # fmt: skip
    runs: int | None = option(
        type=Whole("runs"), help="Fresh processes.  [default: 5, to 20 while noisy]"
    )
    max_runs: int | None = option(type=Whole("runs"), help="More, while the interval is wide.")
    seconds: float | None = option(
        type=Positive("seconds"), metavar="S", help="Of steps in a run, at most.  [default: 60]"
    )
    output: str | None = option(type=Filled(), metavar="DIR", help="Folder of the results.")
    resume: bool = flag(help="Go on with the same bench where it stopped.")
    label: str | None = option(type=Filled(), metavar="TEXT", help="Name it in the results.")
    export: Path | None = option(
        type=NewFile(), metavar="FILE", help="Write FILE.json, FILE.csv or FILE.md."
    )
    wait_free: bool = WAIT_FREE
    html: Path | None = HTML
    lang: Language | None = LANG
    container: bool = flag(help="Print the command for a pinned image instead.")
    tf: str | None = option(type=Filled(), metavar="X.Y", help="TensorFlow of that image.")
    serve: str | None = option(
        type=TEXT, metavar="URL",
        help="Load-test a served model instead; its options: --serve --help.",
    )  # fmt: skip
    code: CodeOptions = group(CodeOptions)
    told: Telling = group(Telling)


@command(_Options, cls=_Bench)
def bench(options: _Options) -> Answer:
    """Measure a training run fairly, or two recipes in turns.

    WORKLOAD is script.py, file.py:function, file.py:train_step with --input-spec, model.keras,
    keras:ResNet50 or a standard task, task:resnet18-cifar10. Arguments of a script follow after --.

    Every run is a fresh process; compiling and warming up are left out; the answer is the median
    step with its 95 % interval. Every run is kept at once, in --output or your data folder.
    """
    from tfdyno.core.measure.measurement_document import document_of
    from tfdyno.jobs.bench.bench import bench as measure
    from tfdyno.jobs.bench.bench import check, default_folder
    from tfdyno.view.bench.export import check_ending
    from tfdyno.view.bench.page import bench_page
    from tfdyno.view.bench.text import report_text

    request, note = _request(options)
    check(request)
    if options.container:
        if "jax" in (request.backend, request.against_backend):
            raise UsageError("--container does not go with JAX", why="the image holds TensorFlow",
                             remedy="leave --container out")  # fmt: skip
        return _container(options)
    if options.tf:
        raise UsageError("--tf goes with --container", remedy="add --container or leave it out")
    if options.export:
        check_ending(options.export)
    check_writable(options.export, options.html)
    with progress_line(quiet=options.told.quiet, verbose=options.told.verbose) as progress:
        if note:
            progress(Lasting(note))
        measured = measure(request, progress=progress)
    sides, comparison = _told(measured)
    folder = str(request.folder or default_folder())
    return Answer(
        files=(
            (options.export, partial(_exported, options.export, measured)),
            (options.html, partial(bench_page, sides, comparison, kept_in=folder)),
        ),
        document=partial(document_of, sides, comparison),
        text=partial(report_text, sides, comparison, kept_in=folder),
    )


def _request(options: _Options) -> tuple[BenchRequest, str]:
    """Return what is asked, and what is to be told of the backend that was found."""
    from tfdyno.jobs.bench.bench import BenchRequest, default_data

    workload = workload_from(options, options.code, mode=options.mode)
    recipe = _recipe(options)
    changes = dict(typed(options.against))
    named = str(changes.pop("backend", ""))
    other = check_backend(named, ()) if named else ""
    backend, note = _backend(options.backend, other, workload)
    against, against_backend = None, backend
    if options.against:
        against_backend = backend_named(other) if other else backend
        against = from_settings(changes, _comparable(recipe, backend, against_backend))
    request = BenchRequest(
        workload=workload,
        recipe=recipe,
        against=against,
        backend=backend,
        against_backend=against_backend,
        protocol=_protocol(options, options.data or default_data(workload)),
        folder=Path(options.output) if options.output else None,
        resume=options.resume,
        label=options.label or "",
        wait_free=options.wait_free,
    )
    return request, note


def _backend(asked: str | None, other: str, workload: Workload) -> tuple[Backend, str]:
    """Return the backend of the first side, and what is to be told of it.

    Args:
        asked: As typed; None: no option names one.
        other: That of the other side, where that names one.
        workload: Whose code may name one.

    Raises:
        UsageError: The code names one that is not measured.
    """
    if other and not asked:
        return ("tensorflow" if other == "jax" else "jax"), ""
    return backend_of(workload, asked)


def _comparable(recipe: Recipe, backend: Backend, other: Backend) -> Recipe:
    """Return the recipe for the other side: on JAX the execution of TensorFlow says nothing."""
    if other != backend and other == "jax" and recipe.execution == "graph":
        return replace(recipe, execution="auto")
    return recipe


def _recipe(options: _Options) -> Recipe:
    """Merge the file's settings, those of ``--set`` over them, and options with names of their own.

    Raises:
        UsageError: A setting is not possible, or given twice in different ways.
    """
    changes: dict[str, object] = dict(typed(options.changes))
    for name in _AS_SETTINGS:
        value = getattr(options, name)
        if value is None:
            continue
        if str(changes.get(name, value)) != str(value):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} {value} and --set {name}={changes[name]} contradict",
                             remedy="give one of them")  # fmt: skip
        changes[name] = value
    return recipe_from(options.recipe, changes)


def _protocol(options: _Options, data: DataMode) -> Protocol:
    base = Protocol()
    least = options.runs or base.least_runs
    most = options.max_runs or (options.runs or base.most_runs)
    if options.max_runs and not options.runs:
        least = min(least, most)
    metric, value = _target(options.target) if options.target else ("", 0.0)
    return Protocol(
        data=data,
        epochs=options.epochs or 0,
        least_runs=least,
        most_runs=most,
        most_s=options.seconds or base.most_s,
        target_metric=metric,
        target_value=value,
    )


def _target(text: str) -> tuple[str, float]:
    """Read ``accuracy=0.9``: the metric and its value; raises ``UsageError``."""
    metric, equals, value = text.partition("=")
    if not equals or not metric.strip():
        raise UsageError(f"the target '{text}' cannot be read", remedy="write accuracy=0.9")
    return metric.strip(), settings.number(value.strip(), metric.strip())


def _told(measured: tuple[Any, ...]) -> tuple[list[Side], Comparison | None]:
    from tfdyno.core.measure.measurement_document import MeasurementReport as Side
    from tfdyno.model.measure.comparison import compare
    from tfdyno.model.measure.steady_part import run_medians_s
    from tfdyno.model.measure.summary import summary

    told = []
    for one in measured:
        found = summary(one)
        medians_s = run_medians_s(one.runs)
        told.append(Side(measurement=one, summary=found, medians_s=medians_s, **_costs(one, found)))
    return told, compare(*measured) if len(measured) == 2 else None


def _costs(one: Measurement, found: Summary) -> dict[str, Any]:
    """Return what the measured speed costs where the card is priced: as fields of ``Side``."""
    from tfdyno.core.base.codec import to_builtins
    from tfdyno.jobs.bench.compare import priced
    from tfdyno.words.bench.comparison import price_words

    offers = priced(one, found).offers
    return {
        "price_performance": tuple(map(to_builtins, offers)),
        "costs": tuple(
            price_words(one.task, o.offer, o.machines, o.samples_per_usd, o.usd_per_epoch)
            for o in offers
        ),
    }


def _exported(path: Path | None, measured: tuple[Any, ...]) -> bytes:
    """Return the file; what programs read of it is English, whoever reads the rest."""
    from tfdyno.view.bench.export import exported

    assert path
    with answering(spoken() if path.suffix.lower() == ".md" else ENGLISH):
        return exported(path, *_told(measured))


def _container(options: _Options) -> Answer:
    """Return the command that repeats the bench in a pinned image; nothing is started."""
    from tfdyno.jobs.bench.container import container
    from tfdyno.view.base.text import wrapped

    words = _without_container(click.get_current_context().meta[_WORDS])
    # All cards go in: visible_devices, repeated inside, counts them as it does outside.
    found = container(words, tensorflow=options.tf or "")
    what = say("TensorFlow {release} in {image}:", release=found.tensorflow, image=found.image)
    lines = (what, "", found.command, "", say("With Podman:"), "", found.podman_command, "")
    return Answer(
        document=lambda: found,
        text=lambda width, **_: "\n".join(
            [*lines, *(wrapped(note, width=width) for note in found.notes)]
        ),
    )


def _without_container(words: list[str]) -> list[str]:
    """Return what was typed, without ``--container`` and ``--tf``; a script's own words stay."""
    own = words[: words.index("--")] if "--" in words else words
    kept, skip = [], False
    for word in own:
        if not skip and word not in ("--container", "--tf") and not word.startswith("--tf="):
            kept.append(word)
        skip = word == "--tf" and not skip
    return [*kept, *words[len(own) :]]
