"""What a tuning knows before its first trial: the start, measured, and the space around it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tfdyno.catalog.assumptions import recipe_rules
from tfdyno.catalog.gpus import find
from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.measure.measurement import Environment
from tfdyno.core.train.search_space import SearchSpace, Value
from tfdyno.core.train.tuning import Trial
from tfdyno.jobs.bench.run import measured
from tfdyno.jobs.choose.predict import StepSettings, predictor_for
from tfdyno.jobs.holders.found_cards import count_cards
from tfdyno.jobs.tune._cache import data_bytes, room_bytes
from tfdyno.jobs.tune._expect import CardEstimates, from_trials, on_backend
from tfdyno.jobs.tune._losses import NO_ROOM, why_uncompared
from tfdyno.jobs.tune._place import HOST_RATIO, limit_here
from tfdyno.jobs.tune._runs import RunFailed
from tfdyno.jobs.tune._space import SpaceFacts, cpu_policy, left_out, space_of
from tfdyno.jobs.tune._trial import with_measured
from tfdyno.jobs.tune.request import Node, TuneRequest
from tfdyno.model.choose.recipe_options import suited_precision
from tfdyno.model.measure.trial_judge import spread_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.measure.measurement import BenchTask, Measured, Measurement
    from tfdyno.core.measure.software import DeviceKind
    from tfdyno.core.messages.bench import MeasureHere
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.train.tuning import TrialEstimate
    from tfdyno.jobs.tune._place import Places

NO_ESTIMATE = (
    "There is no estimate for a CPU: what is expected of a trial comes from lines through the "
    "trials of this study (time = fixed + per sample x batch), where there are enough of them."
)
ONLY_SPEED = (
    "Only samples per second are tuned, not what is learned: a trial that changes the batch of an "
    "update is marked."
)

UNCOMPILED = (
    "There is no estimate: the script runs JAX without a compiled step, and the estimate is of a "
    "compiled one."
)
ONE_OF_SEVERAL = (
    "Trials ran on one of {count} GPUs. On JAX train shares each batch among all that it sees: "
    "visible_devices = 0 shows it one."
)

_UNUSED_GPU = "JAX computes on the CPU, though"
"""How the child begins that tells of GPUs that JAX leaves unused."""


@dataclass(slots=True, kw_only=True)
class StartInspection:
    """The workload under the start, its device, and what follows for the trials."""

    start: Trial
    space: SearchSpace
    environment: Environment
    title: str = ""
    batch_size: int = 0
    """Samples of each replica, under the start; 0: not known."""
    replicas: int = 1
    update_samples: int = 0
    samples_per_epoch: int = 0
    is_loop: bool = False
    uncompared: str = ""
    """Why losses cannot be compared; empty: they can."""
    estimates: CardEstimates | None = None
    limit_bytes: float = 0.0
    """The limit of memory, on a CPU."""
    said: tuple[str, ...] = ()

    @property
    def device(self) -> DeviceKind:
        """The kind of device on which it was measured."""
        return self.environment.device

    @property
    def own_values(self) -> dict[str, Value]:
        """The place of the start in the space."""
        return {name: values[0] for name, values in self.space.choices.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the answer is to be read with."""
        found = self.estimates.notes if self.estimates else ()
        return tuple(dict.fromkeys((*self.said, *found)))

    def expected(
        self, recipe: Recipe, batch_size: int, trials: Sequence[Trial]
    ) -> TrialEstimate | None:
        """Return what is expected of a recipe; None: nothing is known."""
        if not batch_size:
            return None
        if self.estimates:
            return self.estimates.of(recipe, batch_size, self.replicas)
        least_ratio = spread_of(trials).log_ratio
        return from_trials(
            recipe, batch_size, trials, replicas=self.replicas, limit_bytes=self.limit_bytes,
            least_ratio=least_ratio,
        )  # fmt: skip


def look_of(
    request: TuneRequest,
    known: SearchSpace | None,
    unfit: Trial | None,
    node: Node,
    measure: Callable[[Node], tuple[Measurement, ...]],
    places: Places,
    progress: Callable[[str], None],
) -> StartInspection:
    """Measure the start, or take what is kept of it, and settle the space.

    Args:
        request: What is tuned.
        known: The space of a study that goes on; None: it begins.
        unfit: The start of such a study, where it did not fit.
        node: That measures it.
        measure: Measures the start on it.
        places: Takes where that was.
        progress: Called with a line at every stage.

    Raises:
        UsageError: The start cannot be measured, or does not fit and its batch is not known.
        ToolError: Its child crashed.
    """
    draft = Trial(number=0, recipe=request.recipe, ran=True, where=node.name)
    if unfit:
        return _without_room(request, known, unfit, places.of(node), progress)
    try:
        (found,) = measure(node)
    except RunFailed as failed:
        if not failed.is_memory:
            raise failed.error from None
        reason = str(failed.error)
        start = Trial(
            number=0, recipe=draft.recipe, ran=True, status="not_fit", reason=reason,
            batch_size=request.recipe.batch_size, where=draft.where,
        )  # fmt: skip
        return _without_room(request, known, start, places.of(node), progress)
    environment, task = found.environment, found.task
    places.told(node, environment)
    gpu = _card(environment)
    limit_bytes = _limit_bytes(request, environment)
    facts = SpaceFacts(
        batch_size=task.batch_size,
        execution=task.execution,
        policy=task.policy,
        suited_policy=_suited(gpu, environment, task.policy),
        samples_per_epoch=task.samples_per_epoch,
        replicas=task.replica_count,
        own_input=not request.data.startswith("synthetic"),
        has_pipeline=task.has_pipeline,
        backend=request.backend,
        data_bytes=data_bytes(task.inputs, task.samples_per_epoch),
        room_bytes=room_bytes(is_here=not node.name, limit_bytes=limit_bytes),
        is_loop=task.is_loop and request.workload.kind != "step_function",
        accumulation=request.recipe.accumulation,
        keep_batch=request.keep_batch,
    )
    # JAX's step is estimated as XLA compiles it
    uncompiled = request.backend == "jax" and task.execution != "xla" and gpu is not None
    return StartInspection(
        start=with_measured(draft, found),
        space=known or space_of(request.named, request.recipe, facts),
        environment=environment,
        title=task.title,
        batch_size=task.batch_size,
        replicas=task.replica_count,
        update_samples=task.samples_per_step * request.recipe.accumulation,
        samples_per_epoch=task.samples_per_epoch,
        is_loop=task.is_loop,
        uncompared=why_uncompared(request.workload, task, request.backend),
        estimates=_estimates(request, None if uncompiled else gpu, task.batch_size, progress),
        limit_bytes=limit_bytes,
        said=(
            ONLY_SPEED,
            *left_out(facts),
            *_of_jax(task, environment),
            *([UNCOMPILED] if uncompiled else _unexpected(gpu, environment)),
        ),
    )


def this_machine(request: TuneRequest) -> Node:
    """Run here, in fresh processes; on CPUs with a limit of memory.

    Raises:
        UsageError: Such a limit is asked for where there is a card.
    """
    on_cpu = not count_cards()
    if not on_cpu and request.memory_limit_bytes:
        of_card = "memory_fraction=0.5" if request.backend == "jax" else "memory_limit_bytes=8GiB"
        raise UsageError("--memory-limit is for a machine without a GPU",
                         remedy=f"limit the card by --set {of_card}")  # fmt: skip
    may_be_on_cpu = on_cpu or request.backend == "jax"  # which may have no GPU beside cards
    limit_bytes = limit_here(request.memory_limit_bytes, on_cpu=may_be_on_cpu)

    def run(asked: MeasureHere, progress: Callable[[str], None]) -> Measured:
        return measured(replace(asked, limit_bytes=limit_bytes), progress, keeps_programs=True)

    return Node(run=run)


def _without_room(
    request: TuneRequest,
    known: SearchSpace | None,
    start: Trial,
    environment: Environment,
    progress: Callable[[str], None],
) -> StartInspection:
    """Return the space of smaller batches, where the start's own does not fit.

    What the model is compiled to and its precision come from a trace, which needs no room; where it
    cannot be traced they are not tuned.
    """
    batch_size = request.recipe.batch_size
    if not batch_size:
        raise UsageError(
            f"{request.workload.reference} cannot be tuned", why=start.reason.rstrip("."),
            remedy="name its batch with --set batch_size=N: smaller ones are tried then",
        )  # fmt: skip
    gpu = _card(environment)
    said, title, execution, policy, suited = [ONLY_SPEED], "", "", "", ""
    try:
        recipe = request.recipe
        traced = predictor_for(
            on_backend(request.workload, request.backend),
            StepSettings(precision=recipe.precision,
                         execution=recipe.execution if recipe.execution != "auto" else ""),
            batch_size=batch_size, progress=progress,
        )  # fmt: skip
        trace = traced.traced.trace
        title, execution, policy = trace.title, traced.execution_for(1), trace.policy
        suited = _suited(gpu, environment, policy)
    except TfdynoError as error:
        said.append(f"Execution and precision are not tuned: {error}")
        gpu = None
    facts = SpaceFacts(
        batch_size=batch_size, execution=execution, policy=policy, suited_policy=suited,
        fits=False, own_input=False, accumulation=request.recipe.accumulation,
        keep_batch=request.keep_batch, backend=request.backend,
    )  # fmt: skip
    return StartInspection(
        start=start,
        space=known or space_of(request.named, request.recipe, facts),
        environment=environment,
        title=title,
        batch_size=batch_size,
        update_samples=batch_size * request.recipe.accumulation,
        uncompared=why_uncompared(request.workload, backend=request.backend) or NO_ROOM,
        estimates=_estimates(request, gpu, batch_size, progress),
        limit_bytes=_limit_bytes(request, environment),
        said=(*said, *left_out(facts)),
    )


def _limit_bytes(request: TuneRequest, environment: Environment) -> float:
    """Return the memory limit of a run on a CPU; 0 on a card."""
    limit = request.memory_limit_bytes or HOST_RATIO * environment.memory_bytes
    return limit if environment.device == "cpu" else 0.0


def _estimates(
    request: TuneRequest, gpu: Gpu | None, batch_size: int, progress: Callable[[str], None]
) -> CardEstimates | None:
    if gpu is None:
        return None
    return CardEstimates(
        workload=request.workload, backend=request.backend, gpu=gpu,
        limit_bytes=request.recipe.memory_limit_bytes, batch_size=batch_size, progress=progress,
    )  # fmt: skip


def _of_jax(task: BenchTask, environment: Environment) -> tuple[str, ...]:
    """Return what is to be known of the devices that JAX has; empty on TensorFlow."""
    if task.backend != "jax":
        return ()
    unused = [note for note in task.notes if note.startswith(_UNUSED_GPU)]
    count = len(environment.cards)
    several = [ONE_OF_SEVERAL.format(count=count)] if count > 1 else []
    return (*unused, *several)


def _unexpected(gpu: Gpu | None, environment: Environment) -> tuple[str, ...]:
    """Return what is said where there is no estimate."""
    if gpu is not None:
        return ()
    return (NO_ESTIMATE if environment.device == "cpu" else _unknown_card(environment),)


def _card(environment: Environment) -> Gpu | None:
    """Return the row of the card that the start ran on; None: a CPU, or no row."""
    slug = environment.cards[0].slug if environment.cards else ""
    try:
        return find(slug) if slug else None
    except UsageError:
        return None


def _unknown_card(environment: Environment) -> str:
    name = environment.cards[0].name if environment.cards else "the GPU"
    return f"There is no estimate for {name}: it is not in the catalogue."


def suited_to(gpu: Gpu) -> str:
    """Return the Keras policy that a card is made for."""
    rules = recipe_rules()
    return suited_precision(
        float(gpu.compute_capability),
        first_float16=rules.first_mixed_float16_capability,
        first_bfloat16=rules.first_mixed_bfloat16_capability,
    )


def _suited(gpu: Gpu | None, environment: Environment, policy: str) -> str:
    if gpu is not None:
        return suited_to(gpu)
    return cpu_policy() if environment.device == "cpu" else policy
