"""Hardware as data: capacities and rates, never live state or a method that computes time."""

from __future__ import annotations

from typing import Final, Literal

from tfdyno.core.base.dataclass import dataclass

Market = Literal["consumer", "workstation", "datacenter", "laptop", "edge"]
"""What a card is sold for; ``edge``: a board with its GPU, CPU and memory."""
OWNED: Final = "owned"
"""Provider of a card that the user already has: it costs its electricity."""
OwnTerms = Literal["owned", "contract", "reserved"]
"""How the user has a machine that nobody else is offered."""
PriceBasis = Literal["own price", "electricity", "history", "regions", "unknown"]
"""How it is known how far a price ranges."""
CPU_VENDOR = "CPU"
"""What stands in the place of a maker: the processors of a machine count as a card."""
VENDOR = "NVIDIA"
"""Maker of the cards that are estimated, as the catalogue writes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmRates:
    """Operations per clock of one streaming multiprocessor, dense; 0 where the unit is absent.

    Tensor-core rates are those with float32 accumulation, which training uses.
    """

    compute_capability: str
    variant: str
    fp32_per_clock: float
    fp16_vector_per_clock: float
    tf32_tensor_per_clock: float
    fp16_tensor_per_clock: float
    bf16_tensor_per_clock: float
    fp8_tensor_per_clock: float
    int8_tensor_per_clock: float
    fp64_per_clock: float
    cuda_cores: int
    tensor_cores: int
    max_threads: int
    max_blocks: int
    shared_memory_bytes: int
    shared_memory_per_block_bytes: int
    registers: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU, or one MIG slice of it (``slug`` then reads ``a100-sxm4-80gb:3g.40gb``)."""

    slug: str
    name: str
    vendor: str
    market: Market
    architecture: str
    compute_capability: str
    rates: SmRates
    sm_count: int
    boost_hz: float
    tensor_clock_hz: float
    """Clock of the tensor cores; equals ``boost_hz`` where the vendor gives no other."""
    memory_bytes: int
    """The label on the box."""
    usable_memory_bytes: int
    """What the CUDA driver reports as total: measured where known, else the catalogue's rule."""
    usable_memory_source: str
    memory_type: str
    memory_bytes_per_s: float
    l2_bytes: float
    ecc: bool
    tdp_w: float
    pcie_generation: str
    nvlink_bytes_per_s: float
    """Total of both directions; 0 without NVLink."""
    mig_max_instances: int
    first_cuda: str
    release_year: int
    launch_price_usd: float
    """0 where unknown."""
    form_factor: str
    cooling: str
    power_connector: str
    recommended_power_supply_w: float
    continuous_duty: str
    """yes, no or unknown: whether the vendor sells it for operation around the clock."""
    source: str
    notes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An interconnect between GPUs, as ``catalog/data/links.csv`` has it."""

    slug: str
    kind: str
    scope: str
    bus_bytes_per_s: float
    """All-reduce bus bandwidth that the model uses (measured where known)."""
    latency_s: float
    """The latency of one hop of a ring: a small message from one GPU to the next."""
    source: str
    notes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """GPUs of one kind that train together: equal nodes, and what joins the GPUs."""

    gpu: Gpu
    nodes: int
    gpus_per_node: int
    inside: Link | None
    """Joins all GPUs of a node; None where a node has one."""
    bridge: Link | None = None
    """Joins the GPUs of a node two by two, beside ``inside``."""
    network: Link | None = None
    """Joins the nodes; None where there is one, and where it is not known."""
    ports: int = 1
    """Ports of the network on every node; links that are told by the node count as one."""

    def __post_init__(self) -> None:
        """Refuse a cluster that cannot be: no GPU, several in a node that nothing joins."""
        if min(self.nodes, self.gpus_per_node, self.ports) < 1:
            raise ValueError(f"need nodes, GPUs per node and ports >= 1, got {self}")
        if self.gpus_per_node > 1 and self.inside is None and self.bridge is None:
            raise ValueError(f"{self.gpus_per_node} GPUs of a node need a link between them")

    @property
    def replicas(self) -> int:
        """GPUs in all."""
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A machine with GPUs that somebody rents out, or a card that the user owns."""

    slug: str
    """``provider/instance/region/on_demand`` or ``.../spot``; ``owned/GPU`` for a card at hand."""
    provider: str
    instance: str
    region: str
    gpu_slug: str
    gpu_count: int
    gpu_fraction: float
    """1.0, or the share of a card that a virtual GPU gets."""
    vcpus: int
    ram_bytes: float
    usd_per_h: float
    spot: bool
    priced_on: str
    """ISO date or month of the price; a lower bound where ``date_precision`` says so."""
    date_precision: str
    source: str
    nodes: int = 1
    """Machines that train together; ``gpu_count`` is that of all."""
    terms: OwnTerms | Literal["public"] = "public"
    available: int | None = None
    """Such machines that were free on the day of the price, at it or more; None: nobody says."""

    @property
    def way(self) -> str:
        """How it is had: ``spot``, ``on demand``, ``owned``, ``contract``, ``reserved``."""
        if self.terms != "public":
            return self.terms
        return "spot" if self.spot else "on demand"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRange:
    """Between which prices an offer was seen, over its price now; it is no probability."""

    basis: PriceBasis
    low_ratio: float = 1.0
    high_ratio: float = 1.0
    """Both 1 where the price is exact, or nobody knows how it moves: ``basis`` says which."""
    since: str = ""
    """The first day of a history."""
    regions: int = 0
    """Of the provider, which ask these prices for the same machine."""


UNKNOWN_PRICE_RANGE = PriceRange(basis="unknown")
