"""The arithmetic of a plan."""

from __future__ import annotations

import pytest

from tfdyno.core.recipe.recipe import Recipe
from tfdyno.core.train.train_preview import TrainPreview


def plan(**fields: int) -> TrainPreview:
    return TrainPreview(reference="train.py", title="m", recipe=Recipe(), output="run", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("samples", "batch", "replicas", "asked", "steps"),
    [(1000, 32, 1, 0, 32), (1000, 32, 2, 0, 16), (0, 32, 1, 0, 0), (1000, 0, 1, 0, 0),
     (1000, 32, 1, 5, 5)],
)  # fmt: skip
def test_steps_of_an_epoch_count_the_last_smaller_one(
    samples: int, batch: int, replicas: int, asked: int, steps: int
) -> None:
    one = plan(samples_per_epoch=samples, batch_size=batch, replicas=replicas, steps_asked=asked)
    assert one.steps_per_epoch == steps
    assert one.global_batch_size == batch * replicas
