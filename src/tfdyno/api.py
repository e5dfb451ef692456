"""The Python API: the jobs of the command line under the same names, with nouns as results."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tfdyno.core.base import settings
from tfdyno.core.base.errors import UsageError
from tfdyno.core.choose.advice import Advice, Scenario
from tfdyno.core.choose.estimate import Estimate
from tfdyno.core.choose.hardware import Gpu
from tfdyno.core.choose.program import Program
from tfdyno.core.choose.workload import FineTune, Mode, Trace, Workload
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import TrainOutcome
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import Traced
from tfdyno.jobs.choose.trace import trace as _trace

if TYPE_CHECKING:
    from tfdyno.core.base.settings import Route
    from tfdyno.core.base.untyped import Dataset, Model, Value

Subject = Any
"""What may be estimated: a reference as on the command line, a workload, a trace, a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateResult(Sequence[Estimate]):
    """Estimates in the order asked; a notebook shows them as a table."""

    estimates: tuple[Estimate, ...]
    trace: Trace
    batch_source: str
    notes: tuple[str, ...]

    def __getitem__(self, index: Value) -> Value:
        """Return one estimate, or some."""
        return self.estimates[index]

    def __len__(self) -> int:
        """Return how many cards and numbers of replicas there are."""
        return len(self.estimates)

    def _repr_html_(self) -> str:
        from tfdyno.catalog.gpus import find
        from tfdyno.view.notebook import estimates_html

        names = {one.gpu: find(one.gpu).name for one in self.estimates}
        return estimates_html(self.estimates, self.trace, names)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceResult(Advice):
    """The advice with all that its report needs; a notebook shows answer, picks and ranking."""

    trace: Trace
    program: Program
    gpus: dict[str, Gpu]

    def html(self) -> str:
        """Return the report page, self-contained."""
        from tfdyno.view.choose.html import render_report

        return render_report(advice=self, trace=self.trace, program=self.program, gpus=self.gpus)

    def _repr_html_(self) -> str:
        from tfdyno.view.notebook import advice_html

        return advice_html(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainResult(TrainOutcome):
    """What a training brought: ``history`` as Keras has it; a notebook shows the last metrics."""

    recipe: Recipe

    def _repr_html_(self) -> str:
        from html import escape

        from tfdyno.view.train.text import metrics_words

        end = f"stopped by {self.stopped}" if self.stopped else "trained"
        said = "".join(f"<p>{escape(line)}</p>" for line in self.notes)
        metrics = escape(metrics_words(self))
        return f"<p><strong>{escape(end)}: {metrics}</strong></p>{said}"


def trace(subject: Value, *, mode: Mode = "train", precision: str = "", **options: Any) -> Traced:
    """Trace one step: a reference as on the command line, a workload, or a compiled Keras model.

    A model goes to a ``.keras`` file, which lasts as long as this process, and is read by a child;
    classes that the child cannot import need ``file.py:function`` instead.

    Args:
        subject: ``train.py``, ``file.py:function``, ``keras:ResNet50``, ``task:lstm``,
            ``keras_hub:gpt2_base_en``, a ``Workload`` or a model.
        mode: train or infer.
        precision: Keras policy to force; empty: the model's own.
        options: Fields of ``Workload``: ``input_shapes``, ``script_arguments``, ``python``, …; of a
            preset ``fine_tune``, a ``FineTune``.

    Raises:
        UsageError: The subject cannot be traced as asked.
        ToolError: The child process failed.
    """
    _known(mode=mode, precision=precision)
    if isinstance(subject, Workload):
        return _trace(subject)
    if isinstance(subject, str):
        asked = {"fine_tune": FineTune(), **options}
        return _trace(parse_reference(subject, mode=mode, precision=precision, **asked))
    if not hasattr(subject, "save") or not hasattr(subject, "layers"):
        raise UsageError(
            f"{type(subject).__name__} is neither a reference nor a Keras model",
            remedy="give 'file.py:function' or a compiled keras.Model",
        )
    path = Path(tempfile.mkdtemp(dir=_models().name)) / f"{subject.name}.keras"
    subject.save(path)
    return _trace(parse_reference(str(path), mode=mode, precision=precision, **options))


def estimate(
    subject: Subject,
    *,
    gpu: str | Gpu | Sequence[str | Gpu],
    batch_size: int | None = None,
    precision: str = "",
    execution: str = "",
    replicas: int | Sequence[int] = 1,
    link: str = "",
    mode: Mode = "train",
    route: Route = "auto",
    explain: bool = False,
) -> EstimateResult:
    """Predict time and memory of one step; see ``tfdyno estimate --help`` for the settings.

    ``explain`` fills ``Estimate.explanation``: the kernels behind the time with their formulas.

    Raises:
        UsageError: A setting is wrong or contradicts another.
        ToolError: A child process failed.
    """
    from tfdyno.jobs.choose.estimate import EstimateRequest
    from tfdyno.jobs.choose.estimate import estimate as answer_of

    _known(mode=mode, precision=precision, execution=execution, route=route)
    counts = replicas if isinstance(replicas, Sequence) else (replicas,)
    answer = answer_of(
        EstimateRequest(
            workload=_subject(subject, mode, precision),
            gpus=_gpus(gpu),
            batch_size=_whole(batch_size, "batch_size"),
            precision=precision,
            execution=execution,
            replicas=tuple(settings.whole(one, "replicas") for one in counts),
            link=link,
            route=route,
            explain=explain,
        )
    )
    return EstimateResult(
        estimates=answer.estimates,
        trace=answer.trace,
        batch_source=answer.batch_source,
        notes=answer.notes,
    )


def advise(
    subject: Subject,
    *,
    batch_size: int | None = None,
    precision: str = "",
    execution: str = "",
    steps: int | None = None,
    epochs: int | None = None,
    samples: int | None = None,
    deadline_h: float | None = None,
    budget_usd: float | None = None,
    scenario: Scenario = "research",
    gpu: str | Gpu | Sequence[str | Gpu] = (),
    provider: Sequence[str] = (),
    owned: str | Gpu | Sequence[str | Gpu] = (),
    spot: bool | None = None,
    route: Route = "auto",
    feed: str | Path | None = None,
    all_fits: bool = False,
) -> AdviceResult:
    """Rank cards and offers for a run; see ``tfdyno advise --help`` for the settings.

    ``feed`` is a file of ``tfdyno data bench … --output``: an offer's vCPUs may hold its GPUs back.
    ``all_fits`` adds up every call of ``fit`` in a script.

    Raises:
        UsageError: A setting is wrong or contradicts another.
        ToolError: The trace failed.
    """
    from tfdyno.jobs.choose.advise import INFERENCE, Request
    from tfdyno.jobs.choose.advise import advise as answer_of
    from tfdyno.jobs.choose.market import Conditions
    from tfdyno.jobs.data.bench import read_feed

    _known(scenario=scenario, precision=precision, execution=execution, route=route)
    mode: Mode = "infer" if scenario in INFERENCE else "train"
    outcome = answer_of(
        Request(
            workload=_subject(subject, mode, precision),
            conditions=Conditions(
                gpus=_gpus(gpu) if gpu else (),
                owned=_gpus(owned) if owned else (),
                providers=(provider,) if isinstance(provider, str) else tuple(provider),
                spot=spot,
                scenario=scenario,
            ),
            batch_size=_whole(batch_size, "batch_size"),
            precision=precision,
            execution=execution,
            steps=_whole(steps, "steps", most=settings.MOST_STEPS),
            epochs=_whole(epochs, "epochs"),
            samples=_whole(samples, "samples"),
            deadline_h=_positive(deadline_h, "deadline_h"),
            budget_usd=_positive(budget_usd, "budget_usd"),
            route=route,
            feed=read_feed(Path(feed)) if feed else None,
            all_fits=all_fits,
        )
    )
    found = {field.name: getattr(outcome.advice, field.name) for field in fields(Advice)}
    return AdviceResult(**found, trace=outcome.trace, program=outcome.program, gpus=outcome.gpus)


def fit(
    model: Model,
    data: Dataset,
    *,
    recipe: Recipe | Mapping[str, object] | str | Path | None = None,
    output: str | Path | None = None,
    resume: bool = False,
    checkpoint_every: int | str | None = None,
    keep: int = 3,
    tensorboard: bool = False,
    norms: int = 0,
    progress: bool = True,
    **options: Any,
) -> TrainResult:
    """Train a compiled Keras model in this process, as its ``fit`` does, under a recipe.

    On one device the numbers are those of ``fit``. A model that was built in the scope of a
    MirroredStrategy takes XLA, accumulation and the rest too. Settings that need a fresh process
    (threads, memory, another precision or strategy) are refused by name: ``tfdyno train`` has one.
    Afterwards Keras' own ``fit`` works as before; what the recipe set on the optimizer
    (accumulation, ema, clip_norm, loss_scale) stays there.

    Ctrl-C and SIGTERM end the training after a step and a checkpoint, and ``stopped`` says so; a
    second Ctrl-C raises KeyboardInterrupt.

    Args:
        model: Compiled; on TensorFlow.
        data: (x, y) or (x, y, sample_weight), a ``tf.data.Dataset``, a PyDataset, a generator.
        recipe: A ``Recipe``, its settings by name, or the path of a TOML file.
        output: Folder for checkpoints and the trained model; None: nothing is written.
        resume: Go on with the run in ``output``, if there is one.
        checkpoint_every: Steps, or a time as "10min"; None: 5 min. Each epoch ends with one too.
        keep: So many of the newest checkpoints stay.
        tensorboard: Write logs for TensorBoard to ``output``.
        norms: Norms of gradients and activations each so many steps, for TensorBoard; 0: none.
        progress: Show a bar on a terminal, and lines elsewhere, on stderr; ``verbose=0`` of Keras
            means False.
        options: Other arguments of ``model.fit``: epochs, validation_data, callbacks, …

    Raises:
        UsageError: The model is not compiled, or data, recipe and arguments do not go together.
        ToolError: A checkpoint cannot be written, or TensorFlow did not take a setting.
    """
    from tfdyno.cli.train.train_progress import train_progress
    from tfdyno.runtime.train.fit import fit as run
    from tfdyno.runtime.train.fit import read_settings

    asked = read_settings(
        output=output,
        resume=resume,
        checkpoint_every=checkpoint_every,
        keep=keep,
        tensorboard=tensorboard,
        norms=norms,
    )
    quiet = not progress or options.get("verbose") == 0
    with train_progress(quiet=quiet, verbose=False) as shown:
        outcome, taken = run(
            model, data, recipe=recipe, settings=asked, options=options, progress=shown.progress
        )
    found = {field.name: getattr(outcome, field.name) for field in fields(TrainOutcome)}
    return TrainResult(**found, recipe=taken)


@cache
def _models() -> tempfile.TemporaryDirectory[str]:
    """Keep models of this process in a folder that is gone when it ends."""
    return tempfile.TemporaryDirectory(prefix="tfdyno-models-")


_NAMES = {
    "mode": settings.MODES,
    "precision": settings.PRECISIONS,
    "execution": settings.EXECUTIONS,
    "route": settings.ROUTES,
    "scenario": get_args(Scenario),
}


def _known(**named: str) -> None:
    """Refuse a name that a setting does not have, with the nearest; empty: not given."""
    for setting, value in named.items():
        if value:
            settings.one_of(value, _NAMES[setting], setting)


def _whole(value: int | None, what: str, *, most: int = settings.MOST_IN_A_RUN) -> int:
    return 0 if value is None else settings.whole(value, what, most=most)


def _positive(value: float | None, what: str) -> float:
    return 0.0 if value is None else settings.positive(value, what)


def _subject(subject: Subject, mode: Mode, precision: str) -> Workload | Traced:
    if isinstance(subject, str):
        return parse_reference(subject, mode=mode, precision=precision, fine_tune=FineTune())
    if isinstance(subject, Workload | Traced):
        return subject
    return trace(subject, mode=mode)


def _gpus(named: str | Gpu | Sequence[str | Gpu]) -> tuple[Gpu, ...]:
    from tfdyno.jobs.machine.card_files import cards_named

    if isinstance(named, str):
        return cards_named(named)
    several = named if isinstance(named, Sequence) else (named,)
    return tuple(gpu for one in several for gpu in (_gpus(one) if isinstance(one, str) else (one,)))
