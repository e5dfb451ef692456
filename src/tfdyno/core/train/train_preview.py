"""What a training would do: what ``--dry-run`` tells before anything is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tfdyno.core.choose.estimate import Estimate
from tfdyno.core.recipe.recipe import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainPreview:
    """A plan; 0 means that something is not known."""

    reference: str
    """The workload, as typed."""
    title: str
    """The model's own name."""
    recipe: Recipe
    reasons: dict[str, str] = field(default_factory=dict)
    """Why a setting of the recipe is there, by its flat name."""
    parameter_count: int = 0
    trainable_parameter_count: int = 0
    loss: str = ""
    optimizer: str = ""
    replicas: int = 1
    batch_size: int = 0
    """Samples of each replica."""
    samples_per_epoch: int = 0
    steps_asked: int = 0
    """The steps of an epoch, where they were asked for."""
    epochs: int = 1
    output: str
    goes_on: bool = False
    """Whether a run that is there already is continued."""
    estimate: Estimate | None = None
    gpu_name: str = ""
    notes: tuple[str, ...] = ()

    @property
    def global_batch_size(self) -> int:
        """Samples of a step over all replicas."""
        return self.batch_size * self.replicas

    @property
    def steps_per_epoch(self) -> int:
        """Steps of an epoch, the last of which may be smaller."""
        if self.steps_asked:
            return self.steps_asked
        size = self.global_batch_size
        return math.ceil(self.samples_per_epoch / size) if size else 0
