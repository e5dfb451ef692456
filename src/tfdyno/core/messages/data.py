"""The children that measure an input pipeline, and that convert a data set."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tfdyno.core.choose.workload import Workload
from tfdyno.core.deploy.dataset import ConvertSettings, Feature
from tfdyno.core.measure.feed import Feed
from tfdyno.core.measure.software import Software
from tfdyno.core.messages.child import Child, Nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long what of a pipeline is measured."""

    rounds: int = 5
    """The rounds with each number of CPUs."""
    seconds_s: float = 1.0
    """The time of a round."""
    first_pass_s: float = 30.0
    """The longest time of the pass that fills a cache."""
    looks: int = 5
    """The number of looks at the stages."""
    look_s: float = 0.8
    """The time of one look, its start included."""
    cold: bool = True
    """Whether the system may be asked to forget the files, so that they come from the disk."""
    fewer_cpus: bool = True
    """Whether to measure with fewer CPUs too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureData:
    """Measure the input pipeline of a workload by itself."""

    workload: Workload
    batch_size: int = 0
    """Over all replicas; 0: as the data has it."""
    plan: Plan = Plan()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredData:
    """What was measured, without environment and date."""

    feed: Feed
    software: Software


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardPlan:
    """One shard that is to be written."""

    file: str
    images: tuple[tuple[str, int, int], ...] = ()
    """Of images: path below the source, label and size in bytes of each record."""
    rows: tuple[int, int] = (0, 0)
    """Of a CSV: places among its offsets, from the first of them to before the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteShards:
    """Write shards one after the other; one counts when its line is in the journal."""

    source: Path
    folder: Path
    """Of the shards."""
    journal: Path
    settings: ConvertSettings
    features: tuple[Feature, ...]
    classes: tuple[str, ...] = ()
    offsets: Path | None = None
    """Of a CSV: a file of uint64, the places of its rows in the order of the records."""
    skip_bad: bool = False
    shards: tuple[ShardPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareReading:
    """Read a data set before and after its conversion, in turns."""

    source: Path
    folder: Path
    """Of the converted data set."""
    settings: ConvertSettings
    features: tuple[Feature, ...]
    classes: tuple[str, ...] = ()
    batch_size: int
    image_size: tuple[int, int] | None
    """Of images: height and width, on both sides."""
    pairs: int
    """Of turns, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRates:
    """Records per second of each turn."""

    before_per_s: tuple[float, ...]
    after_per_s: tuple[float, ...]
    before_pipeline: str
    """The call that read the original."""
    whole_epochs: bool


DATA = Child(module="tfdyno.runtime.data.child", request=MeasureData, result=MeasuredData)
WRITE_SHARDS = Child(
    module="tfdyno.runtime.data.convert.child", request=WriteShards, result=Nothing
)
COMPARE_READING = Child(
    module="tfdyno.runtime.data.convert.measure", request=CompareReading, result=ReadRates
)
