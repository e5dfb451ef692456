"""Children that export a model, and that compare what PyTorch makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tfdyno.core.deploy.export import (
    Format,
    ModelKind,
    ObstacleFact,
    RefusedNames,
    Signature,
    Verification,
)
from tfdyno.core.measure.software import Software
from tfdyno.core.messages.child import Child


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceModel:
    """A model, and what is to stand around it."""

    reference: str
    kind: ModelKind
    path: str = ""
    """Of the file or folder; empty for a model by name."""
    signature: tuple[str, ...] = ()
    preprocess: str = ""
    postprocess: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A format, and where it goes."""

    format: Format
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Export a model to one format after another, each compared with the model."""

    model: SourceModel
    targets: tuple[Target, ...]
    data: str
    """``FILE.npz`` or ``file.py:function``; empty: seeded random inputs."""
    refused: RefusedNames
    needs_classes: bool
    """Whether a gate asks for the accuracy."""
    measure: bool
    """Whether calls are timed."""
    kept: Path
    """Folder of the inputs and outputs that the child with PyTorch compares with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForTorch:
    """What the child with TensorFlow tells that with PyTorch."""

    judged: str
    """The output that classes are known for; empty: none."""
    amounts: tuple[str, ...]
    """Outputs that name no class."""
    batch: int
    """Rows that the model takes; 0: any."""
    data: str
    """Where the rows come from, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatMade:
    """One format, written and compared."""

    format: Format
    signature: Signature
    verification: Verification | ForTorch
    seconds_s: float
    details: dict[str, object]
    for_transformers: ForTorch | None = None
    """What a folder of Hugging Face is compared on once more; None: another format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What is known of the model once it is loaded."""

    title: str
    parameter_count: int
    weights_bytes: int
    weights_sha256: str
    compute_dtypes: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportMade:
    """All formats of a model."""

    source: ModelFacts
    made: tuple[FormatMade, ...]
    software: Software


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRefused:
    """What stands in the way."""

    title: str
    obstacles: tuple[ObstacleFact, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export came to."""

    outcome: ExportMade | ExportRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOnTorch:
    """Run the kept inputs through a ``.keras`` file, or a folder of Hugging Face, on PyTorch."""

    folder: Path
    """Of the export."""
    kept: Path
    inputs: tuple[str, ...]
    """Names in the order in which the model takes them."""
    outputs: tuple[str, ...]
    known: ForTorch


TOKENS_FILE = "tokens.json"
"""Beside the kept inputs: a text, and the numbers that the model's own tokenizer makes of it."""
EXPORT = Child(module="tfdyno.runtime.export.child", request=Export, result=Exported)
COMPARE_ON_TORCH = Child(
    module="tfdyno.runtime.export.torch", request=CompareOnTorch, result=Verification
)
COMPARE_IN_TRANSFORMERS = Child(
    module="tfdyno.runtime.export.transformers", request=CompareOnTorch, result=Verification
)
