"""Export one model to one format or several, each compared with the model. Runs as a child."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.export import ObstacleFact, Signature, TensorInfo, Verification
from tfdyno.core.messages.export import (
    EXPORT,
    Exported,
    ExportMade,
    ExportRefused,
    FormatMade,
    ForTorch,
    ModelFacts,
)
from tfdyno.process.child import Progress, leave, serve
from tfdyno.runtime.base.keras_internals import inner_layers
from tfdyno.runtime.base.software import software, tensorflow_for

if TYPE_CHECKING:
    from pathlib import Path

    from tfdyno.core.base.untyped import Spec
    from tfdyno.core.messages.export import Export, Target
    from tfdyno.runtime.export.data import Data
    from tfdyno.runtime.export.source import Source
    from tfdyno.runtime.export.verify import Runner

ONNX_OPERATIONS = "onnx_operation"
TORCH_ROWS = 2048
"""That are compared on PyTorch: they pass through a file."""


def handle(request: Export, progress: Progress) -> Exported:
    """Load the model, look for obstacles, then write and compare one format after another.

    Raises:
        UsageError: The model, the data or a format does not fit.
    """
    progress("importing TensorFlow")
    tensorflow_for("export")
    import keras

    if keras.backend.backend() != "tensorflow":
        raise UsageError("export runs on Keras' TensorFlow backend",
                         why=f"KERAS_BACKEND is {keras.backend.backend()}")  # fmt: skip
    from tfdyno.runtime.export import (
        check as export_check,
    )
    from tfdyno.runtime.export import (
        data as export_data,
    )
    from tfdyno.runtime.export import (
        huggingface,
    )
    from tfdyno.runtime.export import (
        source as export_source,
    )
    from tfdyno.runtime.export import (
        verify as verify_export,
    )

    formats = [one.format for one in request.targets]
    if "huggingface" in formats:
        huggingface.check_packages()
    progress("reading the data")
    text = request.data
    given = export_data.read(text) if text else None
    progress("loading the model")
    source = export_source.load(request.model, export_data.example(given[0]) if given else None)
    progress("looking for what a format cannot take")
    if obstacles := export_check.check(source, formats, request.refused):
        return Exported(outcome=ExportRefused(title=source.title, obstacles=obstacles))
    if given:
        data = export_data.fitted(given, source.specs, tuple(source.outputs), text)
        verify_export.check_classes(source, data, text, needed=request.needs_classes)
    else:
        data = export_data.random(source.specs, _vocabularies(source))
    made = []
    for one in request.targets:
        found = _made(source, one, data, request, progress)
        if not isinstance(found, FormatMade):
            return Exported(outcome=ExportRefused(title=source.title, obstacles=found))
        made.append(found)
    facts = _facts(source)
    return Exported(outcome=ExportMade(source=facts, made=tuple(made), software=software()))


def _made(
    source: Source,
    one: Target,
    data: Data,
    request: Export,
    progress: Progress,
) -> FormatMade | tuple[ObstacleFact, ...]:
    from tfdyno.runtime.export import huggingface
    from tfdyno.runtime.export import verify as verify_export
    from tfdyno.runtime.export import write as export_write

    kind = one.format
    progress(f"writing {kind}")
    began_s = time.perf_counter()
    details = export_write.write(source, kind, one.path, data)
    seconds_s = time.perf_counter() - began_s
    refused = set(request.refused.get(kind, {}).get(ONNX_OPERATIONS, ()))
    hit = sorted(refused & set(details.get("operations", ()))) if kind == "tensorrt" else []
    if hit:
        return tuple(ObstacleFact(format=kind, kind=ONNX_OPERATIONS, name=name) for name in hit)
    before = verify_export.original(source)
    found: Verification | ForTorch
    kept: ForTorch | None = None
    if kind == "torch":
        found = _keep_for_torch(source, before, data, request.kept)
    else:
        progress(f"comparing {kind}")
        after = verify_export.exported(kind, one.path, source)
        differences, accuracy = verify_export.compare(source, before, after, data)
        found = Verification(
            data=data.words,
            rows=data.rows,
            runner=after.words,
            differences=differences,
            accuracy=accuracy,
            made_floats=bool(details.get("made_floats")),
        )
        if kind == "huggingface":
            found = replace(found, runner_dtypes=verify_export.reader_dtypes(source))
            kept = _keep_for_torch(source, before, data, request.kept)
            huggingface.keep_tokens(source, request.kept)
        elif request.measure:
            progress(f"timing {kind}")
            timed = verify_export.latencies(source, before, after, data)
            found = replace(found, latencies=timed)
    return FormatMade(
        format=kind,
        signature=_signature(source),
        verification=found,
        seconds_s=seconds_s,
        details=export_write.texts_of(details),
        for_transformers=kept,
    )


def _signature(source: Source) -> Signature:
    def infos(specs: Spec) -> tuple[TensorInfo, ...]:
        return tuple(
            TensorInfo(name=s.name, dtype=s.dtype.name,
                       shape=tuple(s.shape) if s.shape.rank is not None else ())
            for s in specs
        )  # fmt: skip

    return Signature(inputs=infos(source.specs), outputs=infos(source.outputs.values()))


def _facts(source: Source) -> ModelFacts:
    from tfdyno.runtime.export.source import compute_dtypes, weights_bytes, weights_sha256

    model = source.model
    return ModelFacts(
        title=source.title,
        parameter_count=int(model.count_params()) if model is not None else 0,
        weights_bytes=weights_bytes(source),
        weights_sha256=weights_sha256(model) if model is not None else "",
        compute_dtypes=compute_dtypes(model) if model is not None else (),
        notes=source.notes,
    )


def _vocabularies(source: Source) -> dict[str, int]:
    """Return how many numbers an input's embedding knows, by input of whole numbers."""
    if source.model is None:
        return {}
    sizes = [
        int(layer.input_dim)
        for layer in inner_layers(source.model)
        if type(layer).__name__ in ("Embedding", "ReversibleEmbedding")
    ]
    least = min(sizes, default=2)
    return {spec.name: least for spec in source.specs if spec.dtype.is_integer}


def _keep_for_torch(source: Source, before: Runner, data: Data, folder: Path) -> ForTorch:
    """Write inputs and outputs for a child whose interpreter need not have TensorFlow."""
    import numpy as np

    from tfdyno.runtime.export.verify import amounts, chunk, fixed_batch, judged

    output, truth = judged(source, data)
    parts = []
    for _, inputs in data.first(TORCH_ROWS).batches(chunk(source)):
        parts.append((inputs, before.run(inputs)))
    rows, outputs = (
        {name: np.concatenate([part[side][name] for part in parts]) for name in parts[0][side]}
        for side in (0, 1)
    )
    np.savez(folder / "inputs.npz", allow_pickle=False, **rows)
    np.savez(folder / "outputs.npz", allow_pickle=False, **outputs)
    np.savez(folder / "truth.npz", classes=truth[: len(next(iter(rows.values())))])
    return ForTorch(
        judged=output,
        amounts=amounts(source, data, output),
        batch=fixed_batch(source),
        data=data.first_words(TORCH_ROWS),
    )


if __name__ == "__main__":
    leave(serve(handle, EXPORT))
