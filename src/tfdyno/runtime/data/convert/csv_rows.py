"""Rows of a CSV file as records, read at the places where they were found."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from tfdyno.core.base.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.deploy.dataset import Feature
    from tfdyno.core.messages.data import ShardPlan

LONGEST_FIELD = 2**27
Make = Callable[[str], tf.train.Feature]


class Rows:
    """Rows of a file by their offsets."""

    def __init__(
        self,
        source: Path,
        *,
        offsets: Path,
        delimiter: str,
        features: Sequence[Feature],
        classes: Sequence[str],
    ) -> None:
        """Take the file, the places of its rows in the order of the records, and its columns."""
        self.source, self.offsets, self.delimiter = source, offsets, delimiter
        index = {name: place for place, name in enumerate(classes)}
        self.makers = [(one.name, _maker(one, index)) for one in features]

    def records(self, shard: ShardPlan, _bad: object) -> Iterator[bytes]:
        """Read the records of a shard.

        Raises:
            UsageError: A row is not what it was when the file was looked through, or it cannot be
                read.
        """
        csv.field_size_limit(LONGEST_FIELD)
        places, (start, stop) = array("Q"), shard.rows
        with self.offsets.open("rb") as file:
            file.seek(start * places.itemsize)
            places.fromfile(file, stop - start)
        try:
            with self.source.open("rb") as file:
                rows = csv.reader(_lines(file), delimiter=self.delimiter, strict=True)
                for place in places:
                    if file.tell() != place:
                        file.seek(place)
                    yield self._record(rows)
        except OSError as error:
            why = error.strerror or str(error)
            raise UsageError(f"cannot read {self.source}", why=why) from None

    def _record(self, rows: Iterator[list[str]]) -> bytes:
        try:
            row = next(rows)
            feature = {
                name: make(cell) for (name, make), cell in zip(self.makers, row, strict=True)
            }
        except (StopIteration, ValueError, KeyError, csv.Error):
            raise UsageError(
                f"{self.source} has changed while it was converted",
                remedy="convert into a new folder when nothing writes to it",
            ) from None
        example = tf.train.Example(features=tf.train.Features(feature=feature))
        return bytes(example.SerializeToString(deterministic=True))


def _lines(file: Value) -> Iterator[str]:
    while raw := file.readline():
        yield raw.decode()


def _maker(feature: Feature, index: dict[str, int]) -> Make:
    if feature.role == "class":
        return lambda cell: _whole(index[cell])
    if feature.dtype == "int64":
        return lambda cell: _whole(int(cell))
    if feature.dtype == "float32":
        return lambda cell: _number(float(cell) if cell.strip() else math.nan)
    return lambda cell: tf.train.Feature(bytes_list=tf.train.BytesList(value=[cell.encode()]))


def _whole(value: int) -> tf.train.Feature:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _number(value: float) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
