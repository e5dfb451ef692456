"""The plan of a training in words and as JSON."""

from __future__ import annotations

from dataclasses import replace

from tests.view.answers import estimate

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.train_preview import TrainPreview
from tfdyno.view.train.preview_text import (
    facts,
    headline,
    train_preview_document,
    train_preview_text,
)

ESTIMATE = estimate("l40s", replicas=2)
PLAN = TrainPreview(
    reference="train.py", title="resnet", recipe=Recipe(precision="mixed_bfloat16", accumulation=2),
    reasons={"precision": "Tensor cores of the L40S take it."}, parameter_count=25_600_000,
    trainable_parameter_count=25_500_000, loss="mse", optimizer="adam", replicas=2, batch_size=64,
    samples_per_epoch=12_800, epochs=3, output="runs/a", estimate=ESTIMATE, gpu_name="L40S",
    notes=("Keras warns.",),
)  # fmt: skip


def test_the_first_line_says_what_and_for_how_long() -> None:
    hours = ESTIMATE.step_s.best * 100 * 3 / 3600
    assert 0 < hours < 100
    line = headline(PLAN)
    assert line.startswith("resnet would train for 3 epochs of 100 steps, about ")
    assert line.endswith(" of steps on 2 x L40S.")
    bare = replace(PLAN, estimate=None, samples_per_epoch=0, epochs=1, goes_on=True)
    assert headline(bare) == "resnet would go on for 1 epoch."


def test_the_plan_has_everything_that_was_asked() -> None:
    known = dict(facts(PLAN))
    assert known["model"] == "25,600,000 parameters, 25,500,000 of them trained"
    assert known["trains by"] == "adam on mse"
    assert known["batch"] == "64 on each of 2 replicas, 128 together"
    assert known["data"] == "12,800 samples an epoch"
    assert "samples/s, bound by" in known["step"]
    assert known["memory"] == "5.64 GiB of 47 GiB, fits"
    assert known["output"] == "runs/a"
    unknown = dict(facts(replace(PLAN, samples_per_epoch=0, batch_size=0, estimate=None)))
    assert unknown["data"] == "of unknown length: no end can be foretold"
    assert (unknown["batch"], unknown["step"], unknown["memory"]) == ("not known", "", "")


def test_each_setting_has_its_reason_or_its_meaning() -> None:
    text = train_preview_text(PLAN)
    assert "precision = mixed_bfloat16\n    Tensor cores of the L40S take it." in text
    assert "accumulation = 2 batches\n    Batches for each update of the weights." in text
    assert text.endswith("Nothing was trained or written: this is --dry-run.")
    assert "Recipe: no settings;" in train_preview_text(replace(PLAN, recipe=Recipe()))


def test_the_document_holds_the_plan_and_a_short_estimate() -> None:
    document = train_preview_document(PLAN)
    assert document["dry_run"] is True
    assert (document["steps_per_epoch"], document["global_batch_size"]) == (100, 128)
    assert document["recipe"]["precision"] == "mixed_bfloat16"
    assert document["estimate"]["gpu"] == "l40s"
    assert document["estimate"]["step_s"]["best"] == ESTIMATE.step_s.best
    assert train_preview_document(replace(PLAN, estimate=None))["estimate"] is None
