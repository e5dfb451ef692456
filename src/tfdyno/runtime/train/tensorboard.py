"""Scalars and texts for TensorBoard, which need not be installed to write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tfdyno.core.base.untyped import Value

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
