"""What a tuning knows before its first trial: the start, measured, and the space around it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tfdyno.catalog.gpus import find
from tfdyno.catalog.recipe_rules import recipe_rules
from tfdyno.core.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.measurement import DeviceKind, Environment
from tfdyno.core.search_space import SearchSpace, Value
from tfdyno.core.tuning import Trial
from tfdyno.jobs._bench_run import measured
from tfdyno.jobs._found_cards import found_cards
from tfdyno.jobs._tune_expect import CardEstimates, arm_of, from_trials
from tfdyno.jobs._tune_question import Node, Question
from tfdyno.jobs._tune_space import SpaceFacts, cpu_policy, space_of
from tfdyno.jobs._tune_trial import with_measured
from tfdyno.model.recipe_options import suited_precision
from tfdyno.model.trial_judge import spread_of
from tfdyno.probe.fingerprint import memory_bytes
from tfdyno.probe.host import this_host

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tfdyno.core.hardware import Gpu
    from tfdyno.core.measurement import Measurement
    from tfdyno.core.recipe import Recipe
    from tfdyno.core.tuning import TrialEstimate

HOST_RATIO = 0.9
"""Of the machine's memory, that a run on CPUs may take before it is ended."""
NO_ESTIMATE = (
    "There is no estimate for a CPU: what is expected of a trial comes from lines through the "
    "trials of this study (time = fixed + per sample x batch), where there are enough of them."
)
ONLY_SPEED = (
    "Only samples per second are tuned, not what is learned: a trial that changes the batch of an "
    "update is marked."
)


@dataclass(slots=True, kw_only=True)
class Look:
    """The workload under the start, its device, and what follows for the trials."""

    start: Trial
    space: SearchSpace
    nodes: tuple[Node, ...]
    title: str = ""
    device: DeviceKind | None = None
    environment: Environment | None = None
    batch_size: int = 0
    """Per replica, under the start; 0: not known."""
    replicas: int = 1
    update_samples: int = 0
    samples_per_epoch: int = 0
    estimates: CardEstimates | None = None
    limit_bytes: float = 0.0
    """Of memory, on a CPU."""
    said: tuple[str, ...] = ()

    @property
    def own_values(self) -> dict[str, Value]:
        """The place of the start in the space."""
        return {name: values[0] for name, values in self.space.choices.items()}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the answer is to be read with."""
        found = self.estimates.notes if self.estimates else ()
        return tuple(dict.fromkeys((*self.said, *found)))

    def arm(self, recipe: Recipe) -> str:
        """All settings but the batch."""
        return arm_of(recipe)

    def expected(
        self, recipe: Recipe, batch_size: int, trials: Sequence[Trial]
    ) -> TrialEstimate | None:
        """What is expected of a recipe; None: nothing is known."""
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
    question: Question,
    known: SearchSpace | None,
    nodes: Sequence[Node],
    measure: Callable[[Node], tuple[Measurement, ...]],
    progress: Callable[[str], None],
) -> Look:
    """Measure the start, or take what is kept of it, and settle the space.

    Args:
        question: What is tuned.
        known: The space of a study that goes on; None: it begins.
        nodes: That measure; none: this machine.
        measure: Measures the start on one of them.
        progress: Called with a line at every stage.

    Raises:
        UsageError: The start cannot be measured, or does not fit and its batch is not known.
        ToolError: Its child crashed.
    """
    taken = tuple(nodes) or (this_machine(question),)
    draft = Trial(number=0, recipe=question.recipe, ran=True, where=taken[0].name)
    try:
        (found,) = measure(taken[0])
    except ToolError as error:
        if "ran out of memory" not in str(error):
            raise
        return _without_room(question, known, taken, draft, error)
    task = found.task
    environment = found.environment
    start = with_measured(draft, found)
    gpu = _card(environment)
    said, estimates = [ONLY_SPEED], None
    if gpu is None:
        said.append(NO_ESTIMATE if environment.device == "cpu" else _unknown_card(environment))
    else:
        estimates = CardEstimates(
            workload=question.workload, gpu=gpu, limit_bytes=question.recipe.memory_limit_bytes,
            batch_size=task.batch_size, progress=progress,
        )  # fmt: skip
    most = _most_fitting(estimates, question.recipe, task.batch_size, task.replica_count)
    facts = SpaceFacts(
        batch_size=task.batch_size,
        execution=task.execution,
        policy=task.policy,
        suited_policy=_suited(gpu, environment, task.policy),
        is_cpu=environment.device == "cpu",
        most_batch_size=most,
        samples_per_epoch=task.samples_per_epoch,
        replicas=task.replica_count,
        own_input=not question.data.startswith("synthetic"),
        keep_batch=question.keep_batch,
    )
    limit = question.memory_limit_bytes or HOST_RATIO * environment.memory_bytes
    return Look(
        start=start,
        space=known or space_of(question.named, question.recipe, facts),
        nodes=taken,
        title=task.title,
        device=environment.device,
        environment=environment,
        batch_size=task.batch_size,
        replicas=task.replica_count,
        update_samples=task.samples_per_step * question.recipe.accumulation,
        samples_per_epoch=task.samples_per_epoch,
        estimates=estimates,
        limit_bytes=limit if environment.device == "cpu" else 0.0,
        said=tuple(said),
    )


def this_machine(question: Question) -> Node:
    """Runs here, in fresh processes; on CPUs with a limit of memory.

    Raises:
        UsageError: Such a limit is asked for where there is a card.
    """
    try:
        on_cpu = not found_cards()
    except UsageError:  # a card that the catalogue does not have is one
        on_cpu = False
    if not on_cpu and question.memory_limit_bytes:
        raise UsageError("--memory-limit is for a machine without a GPU",
                         remedy="limit the card by --set memory_limit_bytes=8GiB")  # fmt: skip
    return Node(run=partial(measured, memory_limit_bytes=limit_here(question, on_cpu=on_cpu)))


def limit_here(question: Question, *, on_cpu: bool) -> int:
    """Resident memory that a run may take here: as asked, else most of what there is.

    0 on a card, whose own memory TensorFlow limits.
    """
    if not on_cpu:
        return 0
    return question.memory_limit_bytes or int(HOST_RATIO * memory_bytes(this_host()))


def _without_room(
    question: Question,
    known: SearchSpace | None,
    nodes: tuple[Node, ...],
    draft: Trial,
    error: ToolError,
) -> Look:
    """The space of smaller batches, where the start's own does not fit."""
    batch_size = question.recipe.batch_size
    if not batch_size:
        raise UsageError(
            f"{question.workload.reference} cannot be tuned", why=str(error),
            remedy="name its batch with --set batch_size=N: smaller ones are tried then",
        ) from None  # fmt: skip
    facts = SpaceFacts(
        batch_size=batch_size, execution="graph", policy="", suited_policy="", is_cpu=True,
        fits=False, own_input=False, keep_batch=question.keep_batch,
    )  # fmt: skip
    start = Trial(
        number=0, recipe=draft.recipe, ran=True, status="not_fit", reason=str(error),
        batch_size=batch_size, where=draft.where,
    )  # fmt: skip
    space = known or space_of(question.named, question.recipe, facts)
    return Look(
        start=start, space=space, nodes=nodes, batch_size=batch_size,
        update_samples=batch_size * question.recipe.accumulation, said=(ONLY_SPEED,),
    )  # fmt: skip


def _card(environment: Environment) -> Gpu | None:
    """The row of the card that the start ran on; None: a CPU, or no row."""
    slug = environment.cards[0].slug if environment.cards else ""
    try:
        return find(slug) if slug else None
    except UsageError:
        return None


def _unknown_card(environment: Environment) -> str:
    name = environment.cards[0].name if environment.cards else "the GPU"
    return f"There is no estimate for {name}: it is not in the catalogue."


def suited_to(gpu: Gpu) -> str:
    """The Keras policy that a card is made for."""
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


def _most_fitting(
    estimates: CardEstimates | None, start: Recipe, batch_size: int, replicas: int
) -> int:
    """The largest batch that the estimate lets fit; 0: not known."""
    if estimates is None or not batch_size:
        return 0
    try:
        found = estimates.own(start).estimate(estimates.gpu, replicas=replicas)
    except (TfdynoError, ValueError):
        return 0
    return found.max_batch_size or 0
