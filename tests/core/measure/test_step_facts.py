"""What a child saw of a training's steps arrives as it was."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.measure.step_facts import (
    OPERATION_CLASSES,
    HostFacts,
    InputFacts,
    OperationFacts,
    RetraceFacts,
    StageFacts,
    StepFacts,
)

TABLE = Path("src/tfdyno/profile/data/operation_classes.csv")


def test_facts_survive_the_way_through_json() -> None:
    stage = StageFacts(title="map(decode)", kind="map", place="train.py:41", own_s=0.01)
    facts = StepFacts(
        title="train.py",
        device="cpu",
        source="run",
        step_s=(0.011, 0.012),
        input=InputFacts(batch_s=(0.01,), stages=(stage,)),
        retraces=(RetraceFacts(function="step", traces=3, calls=9, seconds_s=0.5),),
        operations=OperationFacts(class_s={"gemm": 0.001}, count_per_step=12.0, busy_s=0.002),
        host=HostFacts(cpus=2, usable_cpus=1.5),
        devices={"CPU:0": 12},
    )
    sent = json.loads(json.dumps(asdict(facts)))
    assert from_builtins(sent, StepFacts, where="the test") == facts


def test_every_class_that_the_facts_know_is_that_of_some_operation_of_the_table() -> None:
    with TABLE.open() as file:
        classes = {row["class"] for row in csv.DictReader(file)}
    assert set(OPERATION_CLASSES) - classes == {"other"}
