"""What a training brought, gathered for the terminal and for JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tfdyno.core.base.codec import to_builtins
from tfdyno.core.measure.measurement import Environment, Telemetry
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import TrainOutcome

_OWN = ("history", "checkpoints", "software", "model_path", "steps", "updates")
"""Fields of the outcome that stand elsewhere in the document, or first in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainReport:
    """A training as it is told."""

    outcome: TrainOutcome
    output: str
    """The folder of the run."""
    reference: str
    """The workload, as typed."""
    recipe: Recipe
    environment: Environment
    telemetry: Telemetry
    resume_command: str = ""
    """Empty: there is nothing to go on with."""


def train_document(told: TrainReport) -> dict[str, Any]:
    """Write the answer as JSON has it; numbers that are not finite become null when written."""
    outcome = told.outcome
    fields = to_builtins(outcome)
    return {
        "history": fields["history"],
        "output": told.output,
        "checkpoints": fields["checkpoints"],
        "model": fields["model_path"],
        "workload": told.reference,
        "recipe": to_builtins(told.recipe),
        "recipe_id": told.recipe.id,
        "seed": told.recipe.seed if outcome.seed is None else outcome.seed,
        "steps": outcome.steps,
        "updates": outcome.updates,
        **{name: value for name, value in fields.items() if name not in (*_OWN, "seed")},
        "resume_command": told.resume_command,
        "environment": to_builtins(told.environment),
        "telemetry": to_builtins(told.telemetry),
    }
