"""Say what holds a training back: a child looks at its steps, rules judge what it saw."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import TfdynoError, UsageError
from tfdyno.core.choose.workload import Workload
from tfdyno.core.measure.bottleneck import StepDiagnosis
from tfdyno.core.measure.measurement import CardTelemetry, Environment
from tfdyno.core.measure.memory_outlook import MemoryOutlook
from tfdyno.core.measure.software import Backend
from tfdyno.core.measure.step_facts import StepFacts
from tfdyno.core.messages.diagnose import LOOK, Limits, LookAtSteps, SeenSteps
from tfdyno.core.recipe.composition import check_composition, refuse_trainer_settings
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.recipe.retreat import told_of
from tfdyno.core.train.jax_plan import JaxPlan, check_recipe
from tfdyno.jobs.child.recipe_env import environment_of, recipe_environment
from tfdyno.jobs.child.worker import nobody, run_child, silent
from tfdyno.jobs.choose.trace import interpreter
from tfdyno.jobs.compiled.keeping import Compiling, with_programs
from tfdyno.jobs.diagnose._recorded import card_facts
from tfdyno.jobs.holders.card_rates import card_rates, sweep_words
from tfdyno.jobs.holders.found_cards import count_cards
from tfdyno.jobs.holders.guard import Asked, guarded, visible_to
from tfdyno.jobs.retreat.dumps import without_programs
from tfdyno.jobs.retreat.retreating import Trial, Work, retreating
from tfdyno.jobs.train.jax_run import check_script, jax_environment
from tfdyno.model.memory.growth import FEWEST_POINTS, STEADY_RATIO
from tfdyno.model.memory.outlook import outlooks
from tfdyno.probe.cards import cards
from tfdyno.probe.telemetry.telemetry import Sampler
from tfdyno.words.base.language import say, say_later
from tfdyno.words.diagnose.told import stage_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfdyno.core.measure.measurement import Telemetry
    from tfdyno.core.measure.step_facts import CardFacts
    from tfdyno.core.messages.diagnose import SteadySpan

START_LIMIT_S = 3600.0
"""The time for imports, the user's code up to its training and the first step, compiled."""
LOOK_LIMIT_S = 600.0
"""The time for all that is looked at beside the user's own steps; this only ends what hangs for
ever."""
MOST_S = 3600.0
"""The longest time for steps that were asked for by their number."""
MEMORY_LEAST_S, MEMORY_MOST_S, MEMORY_STEPS = 8.0, 30.0, 60
"""How long memory is looked at: at least, and until its slope is sure; steps at least."""
STOP_GRACE_S = 20.0
"""The time after Ctrl-C for the child to hand over what it has seen."""
LEAST_POINTS = 3
"""The fewest points: with fewer, a clock that is lowered for a moment would be lowered for most of
the time."""
UNREAD = say_later(
    "What the card itself did could not be read through NVML: neither a lowered clock nor other "
    "processes on it would be told."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseRequest:
    """What is looked at, and for how long."""

    workload: Workload
    recipe: Recipe = field(default_factory=Recipe)
    steps: int = 0
    """The steps of the user's own that are looked at; 0: as time allows."""
    seconds_s: float = 0.0
    """The time for which they are looked at, and measured in each run that proves a fix; 0: as long
    as they take to be told apart."""
    folder: Path | None = None
    """The folder of the results that fixes are proven by; None: the user's own."""
    resume: bool = False
    """Take what is measured of the fixes already."""
    memory_alone: bool = False
    """Whether memory grows, and nothing else."""
    wait_free: bool = False
    """Whether it waits until nobody else is on the cards."""
    backend: Backend = "tensorflow"
    """Of Keras."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What was seen, where, and what follows from it."""

    facts: StepFacts
    diagnosis: StepDiagnosis
    environment: Environment | None = None
    stopped: bool = False
    """Whether the end was asked for while it looked: the facts are those until then."""
    growth: tuple[MemoryOutlook, ...] = ()
    """Where memory alone was asked for: how it moves, and when it is full."""
    failed: TfdynoError | None = None
    """What ended the training while it looked: the facts are those until then."""


def diagnose(
    request: DiagnoseRequest,
    *,
    progress: Callable[[str], None] = silent,
    output: Callable[[str], None] = silent,
) -> StepDiagnosis:
    """Say where a steady step's time goes, what causes it, what to change and what that gains.

    Args:
        request: The workload and the recipe that it is run with.
        progress: Called with a line at every stage.
        output: Called with every line that the user's code prints.

    Raises:
        UsageError: The workload, its data or the recipe is wrong, or the user's code fails.
        ToolError: A child crashed, or a card is full.
        KeyboardInterrupt: The end was asked for.
    """
    found = examined(request, progress=progress, output=output)
    if found.failed:
        raise found.failed
    if found.stopped:
        raise KeyboardInterrupt
    return found.diagnosis


def examined(
    request: DiagnoseRequest,
    *,
    progress: Callable[[str], None] = silent,
    output: Callable[[str], None] = silent,
) -> Examined:
    """Return the same with all that was seen.

    Raises:
        UsageError, ToolError: As ``diagnose``, but for a training that fails in its steady steps:
            ``failed`` has it then.
        KeyboardInterrupt: The end was asked for before there were steady steps; later it is
            ``stopped``.
    """
    check(request)
    python = interpreter(request.workload)

    def attempt(trial: Trial) -> Examined:
        return _examined(request, trial, python, progress, output)

    work = Work(subject=request.workload.reference, recipe=request.recipe, tell=output)
    found, retreats = retreating(attempt, work)
    if request.memory_alone and not (found.stopped or found.failed):
        _refuse_few_steps(request, found.facts)
    notes = (*found.facts.notes, *filter(None, [told_of(retreats)]))
    return replace(found, facts=replace(found.facts, notes=notes, retreats=retreats))


def _examined(
    request: DiagnoseRequest,
    trial: Trial,
    python: str,
    progress: Callable[[str], None],
    output: Callable[[str], None],
) -> Examined:
    """Make one try, under the steps back that were taken."""
    on_jax = request.backend == "jax"
    own = recipe_environment(trial.recipe)
    own |= jax_environment(JaxPlan(), trial.recipe) if on_jax else {}
    variables = trial.variables(own)
    visible = visible_to(variables)
    steps = LookAtSteps(
        workload=request.workload,
        recipe=trial.recipe,
        limits=limits_of(request),
        cards=card_rates(trial.recipe, visible),
        backend=request.backend,
        seen_gpus=count_cards(visible=visible) if on_jax else 0,
    )
    asked = Asked(visible=visible, recipe=trial.recipe, workload=request.workload,
                  waits=request.wait_free, on_jax=on_jax)  # fmt: skip
    compiling = Compiling(
        workload=request.workload,
        recipe=trial.recipe,
        framework=request.backend,
        python=python,
        variables=variables,
        doing="diagnose",
    )
    with guarded(asked, tell=progress) as room:
        sampler = None if request.memory_alone else card_sampler(visible)

        def look(programs: Mapping[str, str], heard: Callable[[str], None]) -> SeenSteps:
            return run_child(
                LOOK,
                steps,
                progress=lambda line: heard(stage_words(line)),
                timeout_s=START_LIMIT_S + LOOK_LIMIT_S + (request.seconds_s or MOST_S),
                python=python,
                env={**variables, **room.variables, **programs},
                doing=f"diagnosing {request.workload.reference}",
                hide_gpu=False,
                output=without_programs(output),
                started=sampler.watch if sampler else nobody,
                stop_grace_s=STOP_GRACE_S,
            )

        with sampler or nullcontext():
            # What JAX finds compiled already would hide what its steps compile again.
            seen = look({}, progress) if on_jax else with_programs(compiling, look, progress)[0]
    if not seen.facts:
        stop = KeyboardInterrupt()
        stop.add_note(f"{seen.seen}: too few to say anything of a steady one.")
        raise stop
    progress(say("judging what was seen"))
    seen = replace(seen, facts=replace(seen.facts, notes=(*room.notes, *seen.facts.notes)))
    found = judged(seen, variables, memory_alone=request.memory_alone, sampler=sampler)
    if found.failed:
        room.blame(found.failed)
    if words := sweep_words(visible):
        told = replace(found.diagnosis, notes=(*found.diagnosis.notes, words))
        found = replace(found, diagnosis=told)
    return found


def _refuse_few_steps(request: DiagnoseRequest, facts: StepFacts) -> None:
    """A training that ends by itself may be too short for a slope; what grows by name is told."""
    if facts.memory or facts.growth or (facts.fits and facts.fits.is_told):
        return
    what = f"{request.workload.reference} ran too few steps to tell whether its memory grows"
    raise UsageError(what, why=f"{facts.steps_seen} were seen, the first ones to warm up",
                     remedy="look at more with --steps 60, or give it more data")  # fmt: skip


def limits_of(request: DiagnoseRequest) -> Limits:
    """Return how long the child looks at the user's own steps."""
    limits, seconds_s = Limits(), request.seconds_s
    if request.memory_alone:
        limits = replace(
            limits,
            memory_alone=True,
            until_sure=not (request.steps or seconds_s),
            own_s=MEMORY_LEAST_S,
            most_s=MEMORY_MOST_S,
            least_steps=MEMORY_STEPS,
            fits_s=seconds_s or limits.fits_s,
        )
    if seconds_s:
        limits = replace(limits, own_s=seconds_s, most_s=seconds_s)
    if request.steps:  # enough with so many, however soon
        most_s = seconds_s or MOST_S
        limits = replace(limits, own_s=0.0, most_s=most_s, least_steps=request.steps)
    return limits


def judged(
    seen: SeenSteps,
    variables: dict[str, str],
    *,
    memory_alone: bool = False,
    sampler: Sampler | None = None,
) -> Examined:
    """Add to what the child saw what its cards did meanwhile, and judge it.

    Args:
        seen: What it hands over, with facts.
        variables: Those that were set for it.
        memory_alone: Whether memory grows, and nothing else.
        sampler: That watched its cards; None: there were none, or NVML did not tell of them.
    """
    from tfdyno.rules import bottleneck

    facts = seen.facts
    assert facts
    environment = environment_of(seen.software, variables) if seen.software else None
    if environment and not memory_alone:
        facts = with_cards(facts, seen.steady, sampler, environment)
    judge = bottleneck.diagnose_growth if memory_alone else bottleneck.diagnose
    diagnosis = judge(facts)
    told = replace(facts, growth=bottleneck.leaking(facts))  # as the findings tell it
    return Examined(
        facts=facts,
        diagnosis=diagnosis,
        growth=outlooks(told, diagnosis.step_s) if memory_alone else (),
        environment=environment,
        stopped=bool(seen.stopped),
        failed=seen.failed.error if seen.failed else None,
    )


def check(request: DiagnoseRequest) -> None:
    """Refuse a question that has no answer, before any work; raises ``UsageError``."""
    if request.workload.mode != "train":
        what = f"{request.workload.reference} is not trained"
        raise UsageError(what, why="the steps of a training are looked at",
                         remedy="leave --mode out")  # fmt: skip
    fewest = math.ceil(FEWEST_POINTS / (1 - STEADY_RATIO))
    if request.memory_alone and 0 < request.steps < fewest:
        what = f"{request.steps} steps are too few to tell whether memory grows"
        raise UsageError(what, why="half of them are left out until it is steady",
                         remedy=f"look at {fewest} or more")  # fmt: skip
    refuse_trainer_settings(request.recipe)
    check_composition(request.recipe)
    if request.backend == "jax":
        _check_jax(request.workload, request.recipe)


def _check_jax(workload: Workload, recipe: Recipe) -> None:
    """Refuse what Keras on JAX cannot run, or what means nothing there."""
    check_recipe(recipe)
    check_script(workload)
    if workload.kind in ("step_function", "task"):
        what = f"{workload.reference} is of TensorFlow, and JAX cannot run it"
        why = "on JAX the steps of model.fit are looked at"
        remedy = "name a script that calls fit, or leave --backend jax out"
        raise UsageError(what, why=why, remedy=remedy)


def card_sampler(visible: str | None) -> Sampler | None:
    """Watch the cards that a child may use; None where there are none, or NVML is mute.

    Args:
        visible: ``CUDA_VISIBLE_DEVICES`` of the child; None: all cards.
    """
    with cards.opened() as nvml:
        return Sampler(visible=visible) if nvml and cards.handles(nvml, visible) else None


def with_cards(
    facts: StepFacts,
    steady: SteadySpan | None,
    sampler: Sampler | None,
    environment: Environment,
) -> StepFacts:
    """Return the facts of a look with what its cards did in its steady steps.

    Args:
        facts: What the child saw.
        steady: When and on which cards they ran, as it tells.
        sampler: That watched it; None: there was nothing to watch.
        environment: Where it ran.
    """
    if not steady or not steady.cards:
        return facts
    told = sampler.telemetry(steady.began_s, steady.ended_s) if sampler else None
    if told and len(told.at_s) < LEAST_POINTS:
        return facts
    read = _read(told, steady.cards, environment) if told else ()
    if not read:
        return replace(facts, notes=(*facts.notes, say(UNREAD)))
    return replace(facts, cards=read)


def _read(
    told: Telemetry, used: tuple[int, ...], environment: Environment
) -> tuple[CardFacts, ...]:
    """Return those of the cards used that told anything of themselves.

    A card that is divided tells of all its slices together, the neighbours' too: none then.
    """
    if any(one.mig for one in environment.cards):
        return ()
    found = card_facts([(told, range(len(told.at_s)))], environment)
    mute = [one == CardTelemetry(index=one.index) for one in told.cards]
    return tuple(found[each] for each in used if each < len(found) and not mute[each])
