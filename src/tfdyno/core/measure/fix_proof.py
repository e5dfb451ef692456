"""A fix that was tried: both sides measured in turns, their losses compared, kept or not."""

from __future__ import annotations

from dataclasses import dataclass, field

from tfdyno.core.measure.bottleneck import StepDiagnosis
from tfdyno.core.measure.measurement import Verdict
from tfdyno.core.recipe.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Whether two trainings with the same seed learned the same."""

    agrees: bool
    difference_ratio: float
    """The largest between two losses of the same epoch, over the larger of them."""
    tolerance_ratio: float
    """Up to which they count as the same."""
    why: str
    """Where the tolerance comes from, in words."""
    unchanged_ratio: float | None = None
    """By how much the unchanged run differs from itself; None: it was not run twice."""
    steps: int = 0
    """The steps of each of the two, over all epochs."""
    values: int = 0
    """Losses that were compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixProof:
    """What came out of one fix."""

    cause: str
    """The cause of the finding whose fix it is."""
    settings: dict[str, str] = field(default_factory=dict)
    verdict: Verdict | None = None
    """None: it could not be measured."""
    ratio: float = 0.0
    """Throughput with the fix over that without; 0: it was not measured."""
    interval: tuple[float, float] = (0.0, 0.0)
    confidence_ratio: float = 0.0
    runs: int = 0
    """Fresh processes of each side."""
    before_s: float = 0.0
    """Median step without the fix."""
    after_s: float = 0.0
    agreement: Agreement | None = None
    """None: it was not looked at, because the fix is not faster or could not be measured."""
    kept: bool = False
    reason: str
    """One sentence: why it is kept, or why not."""
    measurements: tuple[str, ...] = ()
    """IDs of both sides in the folder of results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvenDiagnosis:
    """A diagnosis with what its fixes gained, as far as they were tried."""

    diagnosis: StepDiagnosis
    """Findings have ``proven_gain`` where a fix was measured."""
    recipe: Recipe
    """The base with every fix that was kept."""
    proofs: tuple[FixProof, ...] = ()
    """The proofs in the order in which they were tried."""
    left: tuple[str, ...] = ()
    """Causes whose fixes are still to be tried."""
    after: StepDiagnosis | None = None
    """A second look, at the steps with all that was kept; None: nothing was, or it failed."""
    after_note: str = ""
    """Why there is no second look, where one was due."""
