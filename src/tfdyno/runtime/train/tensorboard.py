"""A training told to TensorBoard, which need not be installed: scalars, texts, norms of layers."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.recipe.recipe import flat
from tfdyno.runtime.recipe.strategy import is_chief
from tfdyno.runtime.train.norms import Norms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfdyno.core.base.untyped import Model, Value
    from tfdyno.core.recipe.recipe import Recipe
    from tfdyno.core.train.training import RunSettings

FOLDER = "tensorboard"
"""The folder in the folder of a run."""
TRAIN, VALIDATION = "train", "validation"
_SCALAR, _TENSOR = 1, 2
"""``DataClass`` of tensorflow/core/framework/summary.proto."""


class Board:
    """Event files under ``train`` and ``validation`` of a folder, as Keras' own callback has them.

    A run that goes on writes another file beside the old ones: TensorBoard shows them as one.
    """

    def __init__(self, folder: Path) -> None:
        """Prepare; a file is made when there is something to write."""
        self.folder = folder
        self._writers: dict[str, Any] = {}

    def texts(self, settings: Mapping[str, object], title: str = "hyperparameters") -> None:
        """Write settings as a table in Markdown."""
        rows = [f"| {_cell(name)} | {_cell(value)} |" for name, value in settings.items()]
        table = "\n".join(["| setting | value |", "| --- | --- |", *rows])
        self._write(TRAIN, title, tf.constant(table), 0, "text", _TENSOR)

    def scalars(self, values: Mapping[str, float], step: int, split: str = TRAIN) -> None:
        """Write numbers of a step, and have them on disk."""
        for name, value in values.items():
            number = tf.constant(float(value), tf.float32)
            self._write(split, name, number, step, "scalars", _SCALAR)
        if values:
            self._writer(split).flush()

    def epoch(
        self,
        epoch: int,
        logs: Mapping[str, float],
        *,
        learning_rate: float | None = None,
        samples_per_s: float = 0.0,
    ) -> None:
        """Write what an epoch came to, under the names of Keras' own callback.

        Args:
            epoch: Counted from 0.
            logs: Metrics; ``val_loss`` becomes ``epoch_loss`` of the validation, so that
                TensorBoard draws the two as one figure.
            learning_rate: At its end; None: not known.
            samples_per_s: Of the training; 0.0: not known.
        """
        own = {f"epoch_{k}": v for k, v in logs.items() if not k.startswith("val_")}
        if learning_rate is not None:
            own["epoch_learning_rate"] = learning_rate
        if samples_per_s:
            own["epoch_samples_per_s"] = samples_per_s
        self.scalars(own, epoch)
        held = {f"epoch_{k[4:]}": v for k, v in logs.items() if k.startswith("val_")}
        self.scalars(held, epoch, VALIDATION)

    def close(self) -> None:
        """Have everything on disk."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    def _writer(self, split: str) -> Value:
        if split not in self._writers:
            self._writers[split] = tf.summary.create_file_writer(str(self.folder / split))
        return self._writers[split]

    def _write(
        self, split: str, tag: str, value: Value, step: int, plugin: str, kind: int
    ) -> None:  # fmt: skip
        metadata = tf.compat.v1.SummaryMetadata(
            plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name=plugin)
        )
        metadata.data_class = kind
        with self._writer(split).as_default():
            tf.summary.write(tag, value, step=step, metadata=metadata)


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


class TrainBoard:
    """Writes what ``settings`` ask for; nothing where they ask for nothing."""

    def __init__(self, settings: RunSettings) -> None:
        """Prepare; only the chief writes."""
        wanted = settings.output and (settings.tensorboard or settings.norms_steps)
        self._every = settings.norms_steps if settings.output else 0
        self._board = Board(Path(settings.output) / FOLDER) if wanted and is_chief() else None

    def begin(self, recipe: Recipe) -> None:
        """Write the settings of the run."""
        if self._board:
            self._board.texts(flat(recipe))

    def watching(
        self, model: Model, run: Callable[[Any], Any], steps_done: Callable[[], int]
    ) -> Callable[[Any], Any]:  # fmt: skip
        """Return the train function, with norms each so many steps where they are asked for."""
        if not self._every:
            return run
        write = self._board.scalars if self._board else None
        return Norms(model, write, every=self._every, steps_done=steps_done).watching(run)

    def epoch_end(
        self, epoch: int, logs: dict[str, Any], model: Model, samples_per_s: float
    ) -> None:  # fmt: skip
        """Write what an epoch came to."""
        if self._board is None:
            return
        rate = None
        with contextlib.suppress(TypeError, ValueError):
            rate = float(model.optimizer.learning_rate.numpy())
        numbers = {name: float(value) for name, value in logs.items() if _is_number(value)}
        self._board.epoch(epoch, numbers, learning_rate=rate, samples_per_s=samples_per_s)

    def close(self) -> None:
        """Have everything on disk."""
        if self._board:
            self._board.close()


def _is_number(value: object) -> bool:
    with contextlib.suppress(TypeError, ValueError):
        float(value)  # type: ignore[arg-type]
        return True
    return False
