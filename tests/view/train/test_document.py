"""A training as JSON."""

from __future__ import annotations

import json
import math

from tests.view.trainings import NAN, told

from tfdyno.core.base.codec import to_json
from tfdyno.view.train.document import train_document


def test_the_contract_is_kept() -> None:
    document = train_document(told())
    assert document["history"] == {
        "accuracy": [0.5, 0.75], "loss": [1.25, 0.5], "val_loss": [1.5, 0.625],
    }  # fmt: skip
    assert (document["output"], document["model"]) == ("run", "run/model.keras")
    assert list(document["checkpoints"]) == ["run/checkpoints/step-000000080.json"]
    assert (document["recipe"]["execution"], document["seed"]) == ("xla", 7)
    counts = ("steps", "updates", "skipped_updates", "epochs", "stopped", "resume_command")
    assert [document[name] for name in counts] == [80, 20, 1, 2, "", ""]
    assert {"applied", "findings", "notes", "environment", "telemetry"} <= set(document)
    assert "software" not in document


def test_what_is_no_number_becomes_null() -> None:
    document = train_document(told(history={"loss": [0.5, math.nan]}, findings=(NAN,)))
    read = json.loads(to_json(document))
    assert read["history"]["loss"] == [0.5, None]
    assert read["findings"][0]["severity"] == "error"
