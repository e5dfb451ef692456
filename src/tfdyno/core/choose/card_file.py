"""What one sweep of a card found: seconds of its kernels, by which software and in which state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tfdyno.core.choose.program import Kernel

FORMAT = 1
CPU = "cpu"
"""Name of the processors of a machine among its cards."""
Grade = Literal["as it should", "slower", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptKernel:
    """One kernel with what it takes."""

    kernel: Kernel
    """The kernel as a traced step would have it; its quantities are fixed ones."""
    execution: Literal["xla", "graph"]
    tf32: bool
    """Whether its float32 product was allowed to run in TF32."""
    kernel_s: float
    """The time of an undisturbed launch, the call from the host taken off."""
    spread_ratio: float
    """How far windows without a disturbance lie from each other, in log(time)."""
    windows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """What the host and the way to the card take; 0.0: not measured."""

    call_s: float = 0.0
    """A call of a compiled function that does nothing."""
    to_card_bytes_per_s: float = 0.0
    from_card_bytes_per_s: float = 0.0
    kernel_without_graphs_s: float = 0.0
    """The smallest kernel in a long chain, where no CUDA graph holds it."""
    exchange_bytes_per_s: float = 0.0
    """Bus bandwidth of an all-reduce among the cards of the machine."""
    beside_step_s: float = 0.0
    """What Keras' ``fit`` takes beside each train step, where nothing hides it: on CPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The state of a card before and while it was swept; None and empty: it did not tell."""

    memory_bytes: int | None = None
    clock_hz: float | None = None
    """Median of its graphics clock under load."""
    clock_limit_hz: float | None = None
    power_w: float | None = None
    """Median under load."""
    power_limit_w: float | None = None
    default_power_limit_w: float | None = None
    throttle: tuple[str, ...] = ()
    """What held its clocks down in a tenth of the readings or more."""
    pcie_generation: int | None = None
    pcie_width: int | None = None
    """Lanes under load."""
    pcie_width_limit: int | None = None
    ecc: bool | None = None
    uncorrected_errors: int | None = None
    slice_name: str = ""
    """The MIG slice; empty: the card is whole."""
    other_processes: int | None = None
    other_cpu_ratio: float | None = None
    """The share of all processors that other processes used meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFile:
    """One sweep; what it holds was measured, whatever ended it."""

    format: int = FORMAT
    card: str
    """Slug of the catalogue, or ``cpu``."""
    name: str
    """The card's name as its driver, or the system, calls it."""
    framework: Literal["tensorflow", "jax"]
    version: str
    """The version of the framework."""
    generation: str
    """The generation of the software (``catalog.generations``)."""
    driver: str = ""
    made_on: str
    """ISO date."""
    sweep_s: float
    kernels: tuple[SweptKernel, ...]
    pace: Pace = field(default_factory=Pace)
    condition: Condition = field(default_factory=Condition)
    processors: int = 0
    """That the sweep could use."""
    left_out: tuple[str, ...] = ()
    """What was not measured."""
    ended_by: str = ""
    """Why it ended early; empty: it did not."""

    @property
    def software(self) -> str:
        """As people write it: ``TensorFlow 2.21.0``."""
        return f"{'JAX' if self.framework == 'jax' else 'TensorFlow'} {self.version}"

    def words(self, *, same_software: bool = True) -> str:
        """Return one clause on the sweep behind an answer.

        Args:
            same_software: Whether the answer is for the generation of software that was swept.
        """
        what = "these processors" if self.card == CPU else "this card"
        part = "" if same_software else ", its silicon alone: the answer is for other software"
        return f"the sweep of {what} of {self.made_on} ({self.software}){part}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Kernels of one kind beside what is expected of them."""

    what: str
    kernels: int
    speed_ratio: float
    """Expected time over measured time, the median: 1, as fast as expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a sweep says of the card itself."""

    grade: Grade
    compared: tuple[Compared, ...]
    reasons: tuple[str, ...]
    """Why it is slower, or may be at other times, likeliest first."""
