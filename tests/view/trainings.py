"""A training as the views are given it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tfdyno.core.doctor.finding import Evidence, Finding, FixStep
from tfdyno.core.measure.measurement import Environment, Telemetry
from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.training import Applied, TrainOutcome
from tfdyno.view.train.document import TrainReport

ENVIRONMENT = Environment(
    device="cpu", tensorflow="2.21.0", keras="3.15.1", python="3.11.7", tfdyno="0.1.0",
    system="Linux 6.1", host="box", cpu="Some CPU", cpu_count=2, memory_bytes=8 << 30,
)  # fmt: skip
OUTCOME = TrainOutcome(
    history={"accuracy": [0.5, 0.75], "loss": [1.25, 0.5], "val_loss": [1.5, 0.625]},
    epochs=2, steps=80, updates=20, skipped_updates=1, seconds_s=12.5, samples_per_s=204.8,
    replica_count=2, global_batch_size=32, seed=7, parameter_count=4810,
    peak_memory_bytes=700 << 20, checkpoints=("run/checkpoints/step-000000080.json",),
    model_path="run/model.keras",
    applied=(Applied(name="execution", asked="xla", reported="xla"),),
    notes=("The dataset was batched anew.",),
)  # fmt: skip
NAN = Finding(
    cause="train.nan_loss", verdict="proven", severity="error",
    summary="The loss is not a number.", why="An activation overflowed.",
    evidence=(Evidence(text="dense_1 has inf", source="step 41"),),
    fix=(FixStep(text="Lower the learning rate."), FixStep(command="tfdyno train x")),
)  # fmt: skip


def told(**fields: Any) -> TrainReport:
    """A finished training; fields of the outcome may be replaced."""
    names = {"resume_command", "reference"}
    own = {name: fields.pop(name) for name in names & set(fields)}
    return replace(
        TrainReport(
            outcome=replace(OUTCOME, **fields), output="run", reference="code/train.py",
            recipe=Recipe(execution="xla", seed=7), environment=ENVIRONMENT, telemetry=Telemetry(),
        ),
        **own,
    )  # fmt: skip
