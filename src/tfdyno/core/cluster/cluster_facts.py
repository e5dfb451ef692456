"""What several nodes that are to train together tell of themselves, and what lies between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tfdyno.core.doctor.finding import Finding

PairPath = str
"""A path as ``nvidia-smi topo`` writes it: ``NV12``, ``PIX``, ``PXB``, ``PHB``, ``NODE``, ``SYS``.
"""
PortKind = Literal["own", "any"]
"""The port that TensorFlow listens on, or one that the system chose, as NCCL's are."""
InterfaceKind = Literal["loopback", "bridge", "virtual", "wire"]
Exchange = Literal["nodes", "cards"]
"""Between all nodes, or between the cards of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCard:
    """A card that the process of a node may use; empty and None mean not known."""

    index: int
    name: str = ""
    slug: str = ""
    """Its row of the catalogue."""
    compute_capability: str = ""
    bus: str = ""
    """PCI address."""
    memory_bytes: int = 0
    numa_node: int = -1
    """-1: the machine has one, or does not tell."""
    ecc: bool | None = None
    mig: bool | None = None
    uncorrected_errors: int | None = None
    power_limit_w: float = 0.0
    power_default_w: float = 0.0
    throttle: tuple[str, ...] = ()
    active_nvlinks: int = 0
    inactive_nvlinks: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPair:
    """How two cards of a node reach each other."""

    first: int
    second: int
    path: PairPath = ""
    peer: str = ""
    """``OK``, else why there is no peer access, as ``nvidia-smi topo -p2p`` writes it (``GNS``,
    ``CNS``, ``TNS``, ``DR``); empty: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """A network interface of a node."""

    name: str
    addresses: tuple[str, ...] = ()
    is_up: bool = True
    kind: InterfaceKind = "wire"
    """``bridge``: of containers on this machine alone; ``virtual``: has no device behind it."""
    bytes_per_s: float = 0.0
    """The speed of the line as its driver tells it; 0: it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumaNode:
    """Processors that are near to one part of the memory."""

    number: int
    cpus: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFacts:
    """The folder of the run as a node sees it."""

    path: str
    filesystem: str = ""
    """``nfs4``, ``lustre``, ``ext4``; empty: not known."""
    options: str = ""
    """The options of its mount."""
    free_bytes: int = -1
    """-1: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """One node as its own process sees it."""

    rank: int
    host: str
    address: str
    """``host:port`` by which the others call it."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of what has to be the same everywhere; what is not installed is missing."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables of NCCL, CUDA, TensorFlow and XLA."""
    cards: tuple[NodeCard, ...] = ()
    pairs: tuple[CardPair, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    resolved: tuple[str, ...] = ()
    """IP addresses that the host of ``address`` has on this node."""
    infiniband_bytes_per_s: float = 0.0
    """The speed of all active ports together; 0: there is none."""
    cpus: tuple[int, ...] = ()
    """That the process may use."""
    numa_nodes: tuple[NumaNode, ...] = ()
    shared_memory_bytes: int = -1
    """Size of ``/dev/shm``; -1: there is none, or it is not known."""
    shared_memory_free_bytes: int = -1
    locked_memory_limit_bytes: int = -1
    """``ulimit -l``; -1: no limit, or not known. Likewise the next two."""
    open_files_limit: int = -1
    memory_limit_bytes: int = -1
    """The memory limit of the container."""
    folder: FolderFacts = FolderFacts(path="")
    notes: tuple[str, ...] = ()
    """What could not be looked at, and why."""

    @property
    def name(self) -> str:
        """What it is called in messages: ``worker 1 (node-b)``."""
        return f"worker {self.rank} ({self.host})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """How far the clock of a node is ahead of worker 0's."""

    rank: int
    offset_s: float
    uncertainty_s: float
    """The true offset lies within this of ``offset_s``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An attempt of one node to reach a port of another."""

    caller: int
    callee: int
    port: PortKind = "own"
    connect_s: float | None = None
    """None: it failed."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedView:
    """When a node has seen what another one did in the folder; None: not within the limit."""

    writer: int
    reader: int
    seen_s: float | None = None
    """A new file, since its writer was done with it."""
    replaced_s: float | None = None
    """Another file in its place, as a checkpoint's marker is written."""
    appended_s: float | None = None
    """What was added to its end, as logs are written."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSpeed:
    """How fast a node writes to the folder, and reads there what another one wrote."""

    rank: int
    size_bytes: int
    write_bytes_per_s: float | None = None
    read_bytes_per_s: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRate:
    """What one node sends to the next over one connection, while all of them do."""

    sender: int
    receiver: int
    bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTimes:
    """Repeated all-reduces of one size."""

    size_bytes: int
    times_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduce:
    """All-reduces that TensorFlow ran over all replicas of a group."""

    between: Exchange
    rank: int = 0
    """Where ``between`` is ``cards``: of the node."""
    implementation: str = ""
    """``RING`` or ``NCCL``."""
    replicas: int = 0
    sizes: tuple[SizeTimes, ...] = ()
    is_right: bool = True
    """Whether the sums were the right ones."""
    error: str = ""
    """Why there is no measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """All nodes that came, and what was measured between them."""

    size: int
    """Nodes that there have to be."""
    nodes: tuple[NodeFacts, ...]
    wanted_cards: int = 0
    """The cards of each node, as the plan says; 0: it says nothing."""
    missed: str = ""
    """Why they did not all meet; empty: they did."""
    clocks: tuple[ClockReading, ...] = ()
    calls: tuple[Call, ...] = ()
    views: tuple[SharedView, ...] = ()
    speeds: tuple[FolderSpeed, ...] = ()
    links: tuple[LinkRate, ...] = ()
    all_reduces: tuple[AllReduce, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """An all-reduce as it was measured, beside what it should reach."""

    between: Exchange
    rank: int
    implementation: str
    replicas: int
    size_bytes: int
    """The largest that was measured."""
    bus_bytes_per_s: float
    """Median: 2 (n - 1) / n of the size over the time, comparable over any n."""
    low_bytes_per_s: float
    high_bytes_per_s: float
    """90 % of repeats lie between."""
    small_s: float
    """Median time of the smallest size."""
    expected_bytes_per_s: float | None
    """None: nothing is known to compare with."""
    expected_from: str
    """What the expectation rests on, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReport:
    """The answer: whether these nodes can train together, and what is wrong."""

    facts: ClusterFacts
    findings: tuple[Finding, ...]
    """The worst first."""
    bandwidths: tuple[Bandwidth, ...] = ()
    fine: tuple[str, ...] = ()
    """What was looked at and is in order."""

    @property
    def exit_code(self) -> int:
        """1 where a finding is an error."""
        return int(any(one.severity == "error" for one in self.findings))
