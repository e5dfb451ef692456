"""What the front serves: models, versions and signatures, as the supervisor's table names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tfdyno.core.messages.serve import ModelFacts, SignatureFacts, Tensor

DATATYPES = {
    "bool": "BOOL", "float16": "FP16", "float32": "FP32", "float64": "FP64",
    "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
    "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
    "string": "BYTES",
}  # fmt: skip
"""Names of dtypes in TensorFlow and in the KServe protocol, version 2."""
TENSORFLOW_TYPES = {
    "bool": "DT_BOOL", "float16": "DT_HALF", "float32": "DT_FLOAT", "float64": "DT_DOUBLE",
    "int8": "DT_INT8", "int16": "DT_INT16", "int32": "DT_INT32", "int64": "DT_INT64",
    "uint8": "DT_UINT8", "uint16": "DT_UINT16", "uint32": "DT_UINT32", "uint64": "DT_UINT64",
    "string": "DT_STRING",
}  # fmt: skip
LONGEST_TEXT = 600
"""The longest text of an error, in characters: what a client sent is told, not sent back whole."""
_TEXT = {"bytes", "object", "str", "bytes_", "object_"}


class Refused(Exception):  # noqa: N818  (an answer, not a fault)
    """A request that gets an error instead of an answer.

    Attributes:
        code: HTTP status.
        text: One sentence for the client.
        retry_after_s: Whole seconds after which another attempt makes sense; 0 says nothing.
    """

    def __init__(self, code: int, text: str, *, retry_after_s: int = 0) -> None:
        super().__init__(text)
        self.code, self.text, self.retry_after_s = code, text[:LONGEST_TEXT], retry_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """One input or output of a signature; ``None`` in the shape stands for any size."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]

    @property
    def datatype(self) -> str:
        """The dtype's name in the KServe protocol."""
        return DATATYPES[self.dtype]

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype of arrays; strings are objects (bytes)."""
        return np.dtype(object if self.dtype == "string" else self.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What one call takes and gives.

    Attributes:
        model: The name under which the model process serves it.
        rows: Whether requests can join: the first dimension of all tensors is the batch, and what
            tried the model found that no row depends on those beside it.
        call_s: What a call for one sample took before any client asked; 0.0: not known.
    """

    model: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    rows: bool
    call_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of a model in a running model process, known by its address."""

    model: str
    number: str
    address: str
    signatures: Mapping[str, Signature]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A model: its versions by number, which one is meant without a number, and names for some."""

    default: str
    versions: Mapping[str, Version]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All that is served now."""

    models: Mapping[str, Served]

    def find(self, name: str, *, version: str | None = None, label: str | None = None) -> Version:
        """Return the version that a request means.

        Raises:
            Refused: 404 in the words of TensorFlow Serving; 503 for a model between versions.
        """
        served = self.models.get(name)
        if served is None:
            if not self.models:
                raise Refused(503, "No model is ready", retry_after_s=1)
            raise Refused(404, f"Servable not found for request: Latest({name})")
        if label is not None:
            if label not in served.labels:
                raise Refused(404, f"Unrecognized servable version label: {label}")
            version = served.labels[label]
        number = served.default if version is None else str(int(version))
        if number in served.versions:
            return served.versions[number]
        if version is None:
            raise Refused(503, f"No version of {name} is ready", retry_after_s=1)
        raise Refused(404, f"Servable not found for request: Specific({name}, {number})")


def signature_of(version: Version, name: str | None) -> Signature:
    """Return the signature called ``name``; without a name serving_default, or the only one.

    Raises:
        Refused: 400 where there is none of that name.
    """
    wanted = name or "serving_default"
    if wanted in version.signatures:
        return version.signatures[wanted]
    if not name and len(version.signatures) == 1:
        return next(iter(version.signatures.values()))
    known = ", ".join(sorted(version.signatures))
    text = f'Serving signature name: "{wanted}" not found in signature def; there is {known}'
    raise Refused(400, text)


def read_table(models: Mapping[str, ModelFacts]) -> Table:
    """Read the models of the supervisor's command ``serve``."""
    return Table(models={name: _served(name, facts) for name, facts in models.items()})


def _served(name: str, facts: ModelFacts) -> Served:
    versions = {
        number: Version(
            model=name,
            number=number,
            address=entry.address,
            signatures={key: read_signature(one) for key, one in entry.signatures.items()},
        )
        for number, entry in facts.versions.items()
    }
    return Served(default=facts.default, versions=versions, labels=facts.labels)


def read_signature(facts: SignatureFacts) -> Signature:
    """Read one signature of such a table."""
    inputs, outputs = (tuple(map(_face, side)) for side in (facts.inputs, facts.outputs))
    is_open = all(face.shape and face.shape[0] is None for face in inputs + outputs)
    return Signature(
        model=facts.triton_model,
        inputs=inputs,
        outputs=outputs,
        rows=is_open and facts.batched,
        call_s=facts.call_s,
    )


def _face(facts: Tensor) -> TensorSpec:
    dtype = "string" if facts.dtype in _TEXT else facts.dtype
    shape = tuple(None if size in (None, -1) else size for size in facts.shape or ())
    return TensorSpec(name=facts.name, dtype=dtype, shape=shape)
