"""A data set in sharded TFRecord files: what it holds, what it was made of, how fast it is read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tfdyno.core.measure.measurement import Comparison

FORMAT_VERSION = 1
"""The version of the folder's format; another one is refused."""
MANIFEST, READER = "dataset.json", "read_dataset.py"
"""The files in the folder of a finished data set, beside its shards."""
JOURNAL, LOCK = ".conversion.jsonl", ".conversion.lock"
"""The files in the folder while it is written."""
PART = ".part"
"""Ends the name of a file that is not whole yet."""
Kind = Literal["images", "csv"]
COMPRESSIONS = ("none", "gzip")
Role = Literal["image", "pixels", "column", "label", "class", "path"]
"""``image``: an encoded file; ``pixels``: uint8 values in order; ``class``: a label that is an
index into the classes."""
DType = Literal["string", "int64", "float32"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """One value of every record."""

    name: str
    dtype: DType
    """The type as it is stored: pixels are a string of bytes."""
    role: Role
    shape: tuple[int, ...] = ()
    """The shape of pixels: height, width, channels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One file of records."""

    file: str
    records: int
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A part of the source that cannot be read and was left out."""

    where: str
    """The path below the source, or ``line 17``."""
    why: str
    shard: str = ""
    """File that it would be in; empty: it was left out before records were dealt to shards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A shard that is finished, with what was left out of it: a line of the journal."""

    shard: Shard
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a data set is made of."""

    path: str
    sha256: str
    """The digest of the list of its files with their sizes and times of change, not of their
    content."""
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertSettings:
    """What decides the bytes of a data set beside its source."""

    kind: Kind
    shards: int
    compression: str = "none"
    shuffle_seed: int | None = None
    """The seed of the order of the records; None: that of the source."""
    image_size: tuple[int, int] | None = None
    """Height and width that images are resized to; None: kept as they are encoded."""
    label: str = ""
    """Column of a CSV; empty: none."""
    delimiter: str = ","


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The first line of the journal: what a conversion goes on with, or not."""

    format_version: int = FORMAT_VERSION
    source_sha256: str
    settings: ConvertSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """What ``dataset.json`` says. No times: the same source and settings give the same bytes."""

    format_version: int = FORMAT_VERSION
    tfdyno: str
    """The version that wrote it."""
    records: int
    features: tuple[Feature, ...]
    classes: tuple[str, ...] = ()
    """The classes by the index that the label has."""
    shards: tuple[Shard, ...]
    source: Source
    settings: ConvertSettings
    skipped: tuple[Skipped, ...] = ()

    @property
    def size_bytes(self) -> int:
        """The bytes of all shards."""
        return sum(one.size_bytes for one in self.shards)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSpeed:
    """Both sides read in turns by the same process, as batches ready for training."""

    before_per_s: tuple[float, ...]
    """Records per second of each turn of the original."""
    after_per_s: tuple[float, ...]
    comparison: Comparison
    """``ratio`` above 1: the converted data is read faster."""
    before_pipeline: str
    """The call that read the original."""
    batch_size: int
    image_size: tuple[int, int] | None = None
    whole_epochs: bool
    """Whether a turn is one or more whole epochs; else a stretch in the middle of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """What came out of a conversion."""

    folder: Path
    dataset: Dataset
    kept_shards: int
    """Finished before this command."""
    seconds_s: float
    """The time of writing; 0: all was there."""
    speed: ReadSpeed | None = None
    not_measured: str = ""
    """Why there is no ``speed``."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedShard:
    """A shard that is not what the manifest says."""

    file: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What came out of reading a data set again."""

    shards: int
    records: int
    size_bytes: int
    damaged: tuple[DamagedShard, ...] = ()
    source_changed: bool | None = None
    """None: it was not compared with its source."""
