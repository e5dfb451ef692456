"""Say what holds a training back: a child looks at its steps, rules judge what it saw."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.bottleneck import StepDiagnosis
from tfdyno.core.codec import from_builtins
from tfdyno.core.composition import check_composition, refuse_trainer_settings
from tfdyno.core.errors import UsageError
from tfdyno.core.measurement import Environment
from tfdyno.core.recipe import Recipe
from tfdyno.core.step_facts import StepFacts
from tfdyno.core.workload import Workload
from tfdyno.jobs._free_cards import check_room
from tfdyno.jobs._recipe_env import environment_of, recipe_environment, request_of
from tfdyno.jobs._worker import run_child, silent
from tfdyno.jobs.trace import interpreter

if TYPE_CHECKING:
    from collections.abc import Callable

CHILD = "tfdyno.runtime.diagnose"
START_LIMIT_S = 3600.0
"""For imports, the user's code up to its training and the first step, compiled."""
LOOK_LIMIT_S = 600.0
"""For all that is looked at beside the user's own steps; this only ends what hangs for ever."""
MOST_S = 3600.0
"""For steps that were asked for by their number."""
STOP_GRACE_S = 20.0
"""After Ctrl-C, for the child to hand over what it has seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is looked at, and for how long."""

    workload: Workload
    recipe: Recipe = field(default_factory=Recipe)
    steps: int = 0
    """Of the user's own that are looked at; 0: as time allows."""
    seconds_s: float = 0.0
    """For which they are looked at, and measured in each run that proves a fix; 0: as long as
    they take to be told apart."""
    folder: Path | None = None
    """Of the results that fixes are proven by; None: the user's own."""
    resume: bool = False
    """Take what is measured of the fixes already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What was seen, where, and what follows from it."""

    facts: StepFacts
    diagnosis: StepDiagnosis
    environment: Environment | None = None
    stopped: bool = False
    """Whether the end was asked for while it looked: the facts are those until then."""


def diagnose(
    question: Question,
    *,
    progress: Callable[[str], None] = silent,
    output: Callable[[str], None] = silent,
) -> StepDiagnosis:
    """Where a steady step's time goes, what causes it, what to change and what that should gain.

    Args:
        question: The workload and the recipe that it is run with.
        progress: Called with a line at every stage.
        output: Called with every line that the user's code prints.

    Raises:
        UsageError: The workload, its data or the recipe is wrong, or the user's code fails.
        ToolError: A child crashed, or a card is full.
    """
    return examined(question, progress=progress, output=output).diagnosis


def examined(
    question: Question,
    *,
    progress: Callable[[str], None] = silent,
    output: Callable[[str], None] = silent,
) -> Examined:
    """The same with all that was seen; raises as ``diagnose`` does."""
    check(question)
    python = interpreter(question.workload)
    variables = recipe_environment(question.recipe)
    visible = variables.get("CUDA_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES"))
    check_room(visible)
    doing = f"diagnosing {question.workload.reference}"
    request = request_of(question.workload, recipe=question.recipe)
    outcome = run_child(
        CHILD,
        request | {"limits": limits_of(question)},
        progress=progress,
        timeout_s=START_LIMIT_S + LOOK_LIMIT_S + (question.seconds_s or MOST_S),
        python=python,
        env=variables,
        doing=doing,
        hide_gpu=False,
        output=output,
        stop_grace_s=STOP_GRACE_S,
    )
    progress("judging what was seen")
    return judged(outcome, variables, doing)


def limits_of(question: Question) -> dict[str, float]:
    """How long the child looks at the user's own steps; what is not said is its own choice."""
    limits: dict[str, float] = {}
    if question.seconds_s:
        limits |= {"own_s": question.seconds_s, "most_s": question.seconds_s}
    if question.steps:  # enough with so many, however soon
        limits |= {"own_s": 0.0, "most_s": question.seconds_s or MOST_S,
                   "least_steps": question.steps}  # fmt: skip
    return limits


def judged(outcome: dict[str, Any], variables: dict[str, str], doing: str) -> Examined:
    """Read what the child hands over (``facts``, ``software``, ``stopped``) and judge it.

    Raises:
        UsageError: A fact has a wrong type or an unknown name.
    """
    from tfdyno.rules import bottleneck

    facts = from_builtins(outcome["facts"], StepFacts, where=f"the result of {doing}")
    software = outcome.get("software")
    return Examined(
        facts=facts,
        diagnosis=bottleneck.diagnose(facts),
        environment=environment_of(software, variables) if software else None,
        stopped=bool(outcome.get("stopped")),
    )


def check(question: Question) -> None:
    """Refuse a question that has no answer, before any work; raises ``UsageError``."""
    if question.workload.mode != "train":
        what = f"{question.workload.reference} is not trained"
        raise UsageError(what, why="the steps of a training are looked at",
                         remedy="leave --mode out")  # fmt: skip
    refuse_trainer_settings(question.recipe)
    check_composition(question.recipe)
