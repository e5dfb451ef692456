"""How fast a data set is read before and after its conversion, on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.deploy.dataset import ReadSpeed
from tfdyno.core.messages.data import COMPARE_READING, CompareReading
from tfdyno.jobs.child.worker import run_child
from tfdyno.model.measure.comparison import compare_rates

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno.core.deploy.dataset import Dataset

PAIRS = 8
"""The fewest pairs of turns."""
BATCH_SIZE = 32
IMAGE_SIZE = (256, 256)
"""Defaults of ``keras.utils.image_dataset_from_directory``."""
LIMIT_S = 900.0
"""The time for imports, the list of a large folder, and the turns, which take up to a minute."""


def read_speed(
    source: Path,
    folder: Path,
    dataset: Dataset,
    *,
    python: str,
    progress: Callable[[str], None],
) -> ReadSpeed:
    """Read original and converted data in turns in one process.

    Args:
        source: The original.
        folder: Of the converted data set.
        dataset: Its manifest.
        python: Interpreter that has TensorFlow.
        progress: Called with a line at every stage.

    Raises:
        UsageError: There is no TensorFlow.
        ToolError: One of them cannot be read.
    """
    settings = dataset.settings
    image_size = (settings.image_size or IMAGE_SIZE) if settings.kind == "images" else None
    found = run_child(
        COMPARE_READING,
        CompareReading(
            source=source,
            folder=folder,
            settings=settings,
            features=dataset.features,
            classes=dataset.classes,
            batch_size=BATCH_SIZE,
            image_size=image_size,
            pairs=PAIRS,
        ),
        progress=progress,
        timeout_s=LIMIT_S,
        python=python,
        doing="reading both in turns",
    )
    return ReadSpeed(
        before_per_s=found.before_per_s,
        after_per_s=found.after_per_s,
        comparison=compare_rates(found.before_per_s, found.after_per_s),
        before_pipeline=found.before_pipeline,
        batch_size=BATCH_SIZE,
        image_size=image_size,
        whole_epochs=found.whole_epochs,
    )
