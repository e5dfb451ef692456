"""TensorFlow Serving's JSON of a model's versions and signatures."""

from __future__ import annotations

from typing import Any

from tfdyno.serving.front.table import (
    TENSORFLOW_TYPES,
    Refused,
    Signature,
    Table,
    TensorSpec,
    Version,
)

METHOD_NAME = "tensorflow/serving/predict"


def status(
    table: Table, name: str, *, version: str | None = None, label: str | None = None
) -> dict[str, Any]:
    """Return what ``GET /v1/models/NAME`` answers: the versions that are there, newest first.

    Raises:
        Refused: 404 for a model or a version that is not.
    """
    numbers = version_numbers(table, name, version=version, label=label)
    fine = {"error_code": "OK", "error_message": ""}
    entries = [{"version": number, "state": "AVAILABLE", "status": fine} for number in numbers]
    return {"model_version_status": entries}


def version_numbers(
    table: Table, name: str, *, version: str | None = None, label: str | None = None
) -> list[str]:
    """Return the versions that a question about the status means, newest first."""
    served = table.models.get(name)
    if served is None:
        raise Refused(404, f"Could not find any versions of model {name}")
    if version is not None or label is not None:
        return [table.find(name, version=version, label=label).number]
    return sorted(served.versions, key=int, reverse=True)


def metadata(version: Version) -> dict[str, Any]:
    """Return what ``GET /v1/models/NAME/metadata`` answers."""
    signatures = {name: _signature(facts) for name, facts in version.signatures.items()}
    return {
        "model_spec": {"name": version.model, "signature_name": "", "version": version.number},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _signature(signature: Signature) -> dict[str, Any]:
    return {
        "inputs": {face.name: _face(face) for face in signature.inputs},
        "outputs": {face.name: _face(face) for face in signature.outputs},
        "method_name": METHOD_NAME,
    }


def _face(face: TensorSpec) -> dict[str, Any]:
    sizes = [{"size": str(-1 if size is None else size), "name": ""} for size in face.shape]
    return {
        "dtype": TENSORFLOW_TYPES[face.dtype],
        "tensor_shape": {"dim": sizes, "unknown_rank": False},
        "name": face.name,
    }
