"""What an input pipeline gives by itself, as it was measured, and how much of a GPU that feeds."""

from __future__ import annotations

from typing import Literal

from tfdyno.core.base.dataclass import dataclass
from tfdyno.core.base.interval import Interval
from tfdyno.core.measure.measurement import Environment
from tfdyno.core.measure.step_facts import StageFacts

FeedKind = Literal["dataset", "arrays", "generator", "pydataset", "other"]
RoundKind = Literal["warm", "cold", "first"]
"""Files as the rounds before left them; files that the system had just forgotten; the pass that
fills a ``cache()``."""
CpuKind = Literal["thread", "core", "unknown"]
"""What a CPU of the machine is: one of several hardware threads of a core, a core, or a virtual
one whose host does not tell."""
Pace = Literal["cpu", "thread", "python", "disk", "waiting"]
"""What sets the pace: all CPUs; stages that run in one thread; Python, which holds one lock; the
disk; or none of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRound:
    """A stretch of batches, from one to another, with nothing behind the pipeline."""

    kind: RoundKind
    cpus: float
    """That the process could use in this round."""
    seconds_s: float
    batches: int
    samples: int
    cpu_s: float
    """CPU seconds of the process and of those that it started."""
    other_cpu_s: float = 0.0
    """CPU seconds that everything else took of the same CPUs."""
    delay_s: float = 0.0
    """Seconds that its threads could have worked and waited for a CPU, added up; 0.0: they did not,
    or the system does not tell."""
    read_bytes: int = 0
    """Bytes read from files, wherever they lay."""
    disk_bytes: int = 0
    """The part of it that came from the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFacts:
    """The very files of a pipeline, read from one end to the other by one thread."""

    files: int
    total_bytes: int
    """The bytes of all files; of a sample of them where there are very many, scaled up."""
    read_files: int
    read_bytes: int
    """That were read for the two times; the files are chosen over the whole data."""
    cold_s: float
    """The time of reading them after the system was asked to forget them."""
    warm_s: float
    """The time of reading them at once again."""
    disk_bytes: int
    """That came from the disk while they were cold; much less than ``read_bytes``: the system did
    not forget them, or does not tell."""
    file_system: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """One measurement of an input pipeline; all rounds are kept, figures are computed on read."""

    reference: str
    """The workload as typed, or the folder."""
    title: str
    kind: FeedKind
    batch_size: int
    """Samples in a batch, over all replicas."""
    batch_bytes: int
    samples_per_epoch: int = 0
    """0: not known."""
    start_s: float = 0.0
    """The time from a new iterator to its first batch."""
    rounds: tuple[FeedRound, ...]
    looks: tuple[tuple[StageFacts, ...], ...] = ()
    """Its stages, sources first, with their times: once for each look."""
    disk: DiskFacts | None = None
    """None: no files are known, or they were not read."""
    cpu_kind: CpuKind = "unknown"
    workers: int = 0
    """The workers of a PyDataset."""
    uses_processes: bool = False
    """Whether those are processes; threads share one Python lock."""
    is_cached: bool = False
    environment: Environment | None = None
    measured_on: str = ""
    """ISO date."""
    stopped: bool = False
    """Whether the end was asked for: the rounds are those until then."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPoint:
    """Samples per second with so many CPUs and nothing else on them."""

    cpus: float
    rate_per_s: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedLaw:
    """What a pipeline gives with any number of CPUs like those it was measured on."""

    points: tuple[FeedPoint, ...]
    """Fewest CPUs first; their rates never fall."""
    sample_cpu_s: Interval
    """CPU seconds of one sample."""
    serial_per_s: Interval | None = None
    """Samples per second of the stages that share one thread: no more with any number of CPUs."""
    serial_stages: tuple[str, ...] = ()
    """What they are, the longest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRate:
    """One stage with what it takes and gives, per sample and per second of the running pipeline."""

    facts: StageFacts
    """The facts of the look in the middle."""
    sample_s: Interval
    """Thread seconds of one sample in this stage alone, waiting for a disk included."""
    share_ratio: float
    """The share of the thread seconds of all stages."""
    elements_per_s: float
    output_bytes_per_s: float
    most_per_s: float | None
    """Samples per second that its threads could give if they did nothing else, their waiting for a
    CPU taken off; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedNeed:
    """What a card needs of a pipeline."""

    gpu: str
    gpu_name: str
    batch_size: int
    step_s: Interval
    """Predicted, without waiting for data."""
    needed_per_s: Interval
    """Samples."""
    fed_ratio: float
    """The share of that need that the measured machine gives."""
    cpus: tuple[float | None, float | None, float | None]
    """Fewest, best and most that feed it; None: no number of CPUs does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feeding:
    """What the CPUs of an offer give its GPUs."""

    vcpus: int
    rate_per_s: Interval
    """Samples that they make ready."""
    needed_per_s: Interval
    """That the GPUs take when they never wait."""
    fed_ratio: float
    """The first over the second, by the best estimates; above 1: the GPUs never wait."""
    thread_stages: tuple[str, ...] = ()
    """Stages in one thread that hold the rate where it is, however many CPUs there are."""

    @property
    def is_short(self) -> bool:
        """Whether the GPUs wait for data."""
        return self.fed_ratio < 1.0
