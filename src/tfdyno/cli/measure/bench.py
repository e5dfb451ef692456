"""``tfdyno bench``: measure a workload by the protocol, alone or two recipes in turns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

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
    NewFile,
    OneOf,
    Positive,
    Whole,
    check_writable,
    recipe_from,
    workload_from,
)
from tfdyno.cli.progress import progress_line
from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.measurement import DataMode, Protocol
from tfdyno.core.recipe.recipe import from_settings, typed

if TYPE_CHECKING:
    from tfdyno.core.measure.measurement import Comparison, Measurement, Summary
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.jobs.bench.bench import BenchRequest
    from tfdyno.view.bench.document import Told

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


@click.command(cls=_Bench)
@WORKLOAD
@click.option(
    "--data", type=OneOf("data", get_args(DataMode)),
    help="Default: own; synthetic for a model alone.",
)  # fmt: skip
@RECIPE
@SET
@click.option(
    "--against", multiple=True, metavar="KEY=VALUE",
    help="Measure in turns with the same run that has this setting; many.",
)  # fmt: skip
@click.option("--batch-size", type=Whole("batch size"), help="Samples per replica.")
@click.option("--precision", type=OneOf("precision", settings.PRECISIONS), help="As a setting.")
@click.option("--execution", type=OneOf("execution", ("auto", "xla", "graph")), help="The same.")
@click.option(
    "--mode", type=OneOf("mode", settings.MODES), default="train", show_default=True,
    help="The train step, or the forward pass.",
)  # fmt: skip
@click.option("--epochs", type=Whole("epochs"), help="Train whole epochs in every run.")
@click.option(
    "--target", type=Filled(), metavar="METRIC=VALUE",
    help="Train until accuracy=0.9, --epochs at most; tells the time it took.",
)  # fmt: skip
@click.option(
    "--runs", type=Whole("runs"), help="Fresh processes.  [default: 5, to 20 while noisy]"
)
@click.option("--max-runs", type=Whole("runs"), help="More, while the interval is wide.")
@click.option(
    "--seconds", type=Positive("seconds"), metavar="S",
    help="Of steps in a run, at most.  [default: 60]",
)  # fmt: skip
@click.option("--output", type=Filled(), metavar="DIR", help="Folder of the results.")
@click.option("--resume", is_flag=True, help="Go on with the same bench where it stopped.")
@click.option("--label", type=Filled(), metavar="TEXT", help="Name it in the results.")
@click.option(
    "--export", type=NewFile(), metavar="FILE", help="Write FILE.json, FILE.csv or FILE.md."
)
@WAIT_FREE
@HTML
@click.option("--container", is_flag=True, help="Print the command for a pinned image instead.")
@click.option("--tf", type=Filled(), metavar="X.Y", help="TensorFlow of that image.")
@click.option(
    "--serve", metavar="URL", expose_value=False,
    help="Load-test a served model instead; its options: --serve --help.",
)  # fmt: skip
@CODE
@TOLD
def bench(**given: Any) -> None:
    """Measure a training run fairly, or two recipes in turns.

    WORKLOAD is script.py, file.py:function, file.py:train_step with --input-spec, model.keras,
    keras:ResNet50 or a standard task, task:resnet18-cifar10. Arguments of a script follow after --.

    Every run is a fresh process; compiling and warming up are left out; the answer is the median
    step with its 95 % interval. Every run is kept at once, in --output or your data folder.
    """
    from tfdyno.jobs.bench.bench import bench as measure
    from tfdyno.jobs.bench.bench import check, default_folder

    question = _question(given)
    check(question)
    if given["container"]:
        _print_container(given)
        return
    if given["tf"]:
        raise UsageError("--tf goes with --container", remedy="add --container or leave it out")
    if given["export"]:
        _check_export(given["export"])
    if given["html"]:
        check_writable(given["html"])
    with progress_line(quiet=given["quiet"], verbose=given["verbose"]) as progress:
        measured = measure(question, progress=progress)
    told, comparison = _told(measured)
    if given["export"]:
        _export(given["export"], told, comparison)
    if given["html"]:
        _write_page(given["html"], told, comparison, str(question.folder or default_folder()))
    _print(told, comparison, given, str(question.folder or default_folder()))


def _question(given: dict[str, Any]) -> BenchRequest:
    from tfdyno.jobs.bench.bench import BenchRequest, default_data

    workload = workload_from({**given, "precision": ""}, mode=given["mode"])
    recipe = _recipe(given)
    against = from_settings(typed(given["against"]), recipe) if given["against"] else None
    return BenchRequest(
        workload=workload,
        recipe=recipe,
        against=against,
        protocol=_protocol(given, given["data"] or default_data(workload)),
        folder=Path(given["output"]) if given["output"] else None,
        resume=given["resume"],
        label=given["label"] or "",
        wait_free=given["wait_free"],
    )


def _recipe(given: dict[str, Any]) -> Recipe:
    """The file's settings, those of ``--set`` over them, and the options with names of their own.

    Raises:
        UsageError: A setting is not possible, or given twice in different ways.
    """
    changes: dict[str, object] = dict(typed(given["changes"]))
    for name in _AS_SETTINGS:
        value = given[name]
        if value is None:
            continue
        if str(changes.get(name, value)) != str(value):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} {value} and --set {name}={changes[name]} contradict",
                             remedy="give one of them")  # fmt: skip
        changes[name] = value
    return recipe_from(given["recipe"], changes)


def _protocol(given: dict[str, Any], data: DataMode) -> Protocol:
    base = Protocol()
    least = given["runs"] or base.least_runs
    most = given["max_runs"] or (given["runs"] or base.most_runs)
    if given["max_runs"] and not given["runs"]:
        least = min(least, most)
    metric, value = _target(given["target"]) if given["target"] else ("", 0.0)
    return Protocol(
        data=data,
        epochs=given["epochs"] or 0,
        least_runs=least,
        most_runs=most,
        most_s=given["seconds"] or base.most_s,
        target_metric=metric,
        target_value=value,
    )


def _target(text: str) -> tuple[str, float]:
    """``accuracy=0.9``: the metric and its value; raises ``UsageError``."""
    metric, equals, value = text.partition("=")
    if not equals or not metric.strip():
        raise UsageError(f"the target '{text}' cannot be read", remedy="write accuracy=0.9")
    return metric.strip(), settings.number(value.strip(), metric.strip())


def _check_export(path: Path) -> None:
    from tfdyno.view.bench.export import check_ending

    check_ending(path)
    check_writable(path)


def _told(measured: tuple[Any, ...]) -> tuple[list[Told], Comparison | None]:
    from tfdyno.model.measure.comparison import compare
    from tfdyno.model.measure.steady_part import run_medians_s
    from tfdyno.model.measure.summary import summary
    from tfdyno.view.bench.document import Told

    told = []
    for one in measured:
        found = summary(one)
        medians_s = run_medians_s(one.runs)
        told.append(Told(measurement=one, summary=found, medians_s=medians_s, **_costs(one, found)))
    return told, compare(*measured) if len(measured) == 2 else None


def _costs(one: Measurement, found: Summary) -> dict[str, Any]:
    """What the measured speed costs where the card is priced: as fields of ``Told``."""
    from tfdyno.core.base.codec import to_builtins
    from tfdyno.jobs.bench.compare import priced
    from tfdyno.view.bench.compare_words import price_words

    offers = priced(one, found).offers
    return {
        "price_performance": tuple(map(to_builtins, offers)),
        "costs": tuple(
            price_words(one.task, o.offer, o.machines, o.samples_per_usd, o.usd_per_epoch)
            for o in offers
        ),
    }


def _export(path: Path, told: list[Told], comparison: Comparison | None) -> None:
    from tfdyno.core.base.codec import write_atomic
    from tfdyno.view.bench.export import exported

    write_atomic(path, exported(path, told, comparison))


def _write_page(path: Path, told: list[Told], comparison: Comparison | None, folder: str) -> None:
    from tfdyno.core.base.codec import write_atomic
    from tfdyno.view.bench.page import bench_page

    write_atomic(path, bench_page(told, comparison, kept_in=folder).encode())


def _print(
    told: list[Told], comparison: Comparison | None, given: dict[str, Any], folder: str
) -> None:
    if given["as_json"]:
        from tfdyno.view.bench.export import json_text

        click.echo(json_text(told, comparison), nl=False)
        return
    from tfdyno.view.base.text import colour_wanted, terminal_width
    from tfdyno.view.bench.text import report_text

    width, colour = terminal_width(), colour_wanted()
    click.echo(report_text(told, comparison, kept_in=folder, width=width, colour=colour))


def _print_container(given: dict[str, Any]) -> None:
    """The command that repeats the bench in a pinned image; nothing is started."""
    from tfdyno.core.base.codec import to_json
    from tfdyno.jobs.bench.container import container
    from tfdyno.view.base.text import terminal_width, wrapped

    words = _without_container(click.get_current_context().meta[_WORDS])
    # All cards go in: visible_devices, repeated inside, counts them as it does outside.
    found = container(words, tensorflow=given["tf"] or "")
    if given["as_json"]:
        click.echo(to_json(found, indent=2).decode())
        return
    width = terminal_width()
    head = f"TensorFlow {found.tensorflow} in {found.image}:"
    notes = [wrapped(note, width=width) for note in found.notes]
    click.echo("\n".join([head, "", found.command, "", "With Podman:", "", found.podman_command,
                          "", *notes]))  # fmt: skip


def _without_container(words: list[str]) -> list[str]:
    """What was typed, without ``--container`` and ``--tf``; a script's own words stay."""
    own = words[: words.index("--")] if "--" in words else words
    kept, skip = [], False
    for word in own:
        if not skip and word not in ("--container", "--tf") and not word.startswith("--tf="):
            kept.append(word)
        skip = word == "--tf" and not skip
    return [*kept, *words[len(own) :]]
