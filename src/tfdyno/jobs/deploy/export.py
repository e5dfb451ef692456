"""Export a model to one format or several; what passes its gates is put in place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.core.base.clock import now
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.export import (
    ENDINGS,
    EXACT,
    LEAST_CLEAR_TOP1_RATIO,
    MAX_DIFFERENCE,
    Artefact,
    ExportResult,
    Format,
    Gates,
    Lineage,
)
from tfdyno.core.messages.export import (
    EXPORT,
    Export,
    ExportMade,
    ExportRefused,
    SourceModel,
    Target,
)
from tfdyno.jobs.child.recipe_env import environment_of
from tfdyno.jobs.child.worker import run_child, silent
from tfdyno.jobs.choose.trace import interpreter_named
from tfdyno.jobs.deploy._export_making import (
    LIMIT_S,
    ExportRequest,
    Making,
    artefact,
    put_in_place,
)
from tfdyno.jobs.deploy._export_place import check_place, stage
from tfdyno.jobs.deploy._export_source import ExportSource, export_source
from tfdyno.probe.machine.revision import revision
from tfdyno.probe.python.versions import brings
from tfdyno.rules import export as rules

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ExportRequest", "check", "export"]

_BACKEND = {"KERAS_BACKEND": "tensorflow"}


def check(request: ExportRequest) -> ExportSource:
    """Refuse what cannot be, before any work.

    Raises:
        UsageError: There is no such model, the place is taken, or an option lacks what it needs.
    """
    source = export_source(request.model)
    if request.gates.max_accuracy_drop_ratio is not None and not request.data:
        raise UsageError("--max-accuracy-drop needs rows with their classes",
                         remedy="give --data FILE.npz with x and y")  # fmt: skip
    if request.data and ":" not in request.data and not request.data.endswith(".npz"):
        raise UsageError(f"--data {request.data} is no data that can be read",
                         remedy="give FILE.npz or file.py:function")  # fmt: skip
    if request.data.endswith(".npz") and not Path(request.data).is_file():
        raise UsageError(f"there is no file {request.data}")
    if len(request.formats) == 1:
        _check_ending(request.formats[0], request.output)
    is_folder = len(request.formats) > 1 or not ENDINGS[request.formats[0]]
    check_place(request.output, force=request.force, needed=_read(request, source),
                is_folder=is_folder)  # fmt: skip
    return source


def export(
    request: ExportRequest,
    *,
    progress: Callable[[str], None] = silent,
    output: Callable[[str], None] = silent,
) -> ExportResult:
    """Export, compare, and put in place what passes its gates.

    Args:
        request: What is exported.
        progress: Called with every stage.
        output: Called with every line that the user's code prints.

    Raises:
        UsageError: Something does not fit; nothing is left behind.
        ToolError: A converter or a child failed; nothing is left behind.
    """
    source = check(request)
    python = interpreter_named(request.python)
    torch_python = python
    if "torch" in request.formats:
        python, torch_python = _pythons(python)
    with stage(request.output) as folder:
        (folder / "made").mkdir()
        making = Making(request=request, source=source, folder=folder, python=python,
                         torch_python=torch_python, progress=progress, output=output)  # fmt: skip
        found = _child(making)
        artefacts = tuple(artefact(making, one, found) for one in found.made)
        result = _result(making, found, artefacts)
        put_in_place(making, result)
    return result


def _read(request: ExportRequest, source: ExportSource) -> tuple[Path, ...]:
    """Return files and folders that the export reads, as far as they are named."""
    processing = (request.preprocess, request.postprocess)
    named = (source.path or source.reference, request.data, *processing)
    places = (Path(one if Path(one).exists() else one.partition(":")[0]) for one in named if one)
    return tuple(one for one in places if one.exists())


def _check_ending(kind: Format, path: Path) -> None:
    ending = ENDINGS[kind]
    if ending and path.suffix != ending:
        raise UsageError(f"{path} does not end in {ending}", why=f"{kind} is one file",
                         remedy=f"name it {path.with_suffix(ending)}")  # fmt: skip
    if not ending and path.suffix in (".keras", ".onnx", ".tflite"):
        raise UsageError(f"{path} names a file", why=f"{kind} is a folder",
                         remedy=f"name it {path.with_suffix('')}")  # fmt: skip


def _pythons(python: str) -> tuple[str, str]:
    """Return interpreters for TensorFlow and for PyTorch: the one named needs the second.

    Raises:
        UsageError: It has no PyTorch or no Keras.
    """
    missing = [name for name in ("torch", "keras") if not brings(python, name)]
    if missing:
        wanted = "PyTorch" if missing[0] == "torch" else "Keras"
        raise UsageError(
            f"export to torch needs {wanted}",
            why=f"{python} has none",
            remedy="name an interpreter that has PyTorch and Keras with --python; or export to "
            "onnx, which needs no PyTorch",
        )
    return (python if brings(python, "tensorflow") else sys.executable), python


def _child(making: Making) -> ExportMade:
    request, source = making.request, making.source
    found = run_child(
        EXPORT,
        Export(
            model=SourceModel(
                reference=source.reference,
                kind=source.kind,
                path=source.path,
                signature=request.signature,
                preprocess=request.preprocess,
                postprocess=request.postprocess,
            ),
            targets=tuple(Target(format=kind, path=making.built(kind)) for kind in request.formats),
            data=request.data,
            refused=rules.refused(),
            needs_classes=request.gates.max_accuracy_drop_ratio is not None,
            measure=request.measure,
            kept=making.folder,
        ),
        progress=making.progress,
        timeout_s=LIMIT_S,
        python=making.python,
        env=_BACKEND,
        doing=f"exporting {request.model}",
        output=making.output,
    ).outcome
    if isinstance(found, ExportRefused):
        raise _refusal(found)
    return found


def _refusal(found: ExportRefused) -> UsageError:
    """Return all obstacles in one sentence, what to do about the first, and its format."""
    met = rules.obstacles(found.obstacles)
    kinds = ", ".join(dict.fromkeys(one.format for one in met))
    told = list(dict.fromkeys(rules.sentence(one) for one in met))
    more = f" (and {len(told) - 3} more)" if len(told) > 3 else ""
    return UsageError(
        f"{found.title} cannot be exported to {kinds}",
        why="; ".join(told[:3]) + more,
        remedy=met[0].remedy,
    )


def _notes(gates: Gates, artefacts: tuple[Artefact, ...]) -> list[str]:
    """Return what a reader has to know of the gates and of what they judged by."""
    notes = []
    rounded = [one.format for one in artefacts if one.format not in EXACT]
    if rounded and not gates.given:
        notes.append(
            f"Without a gate {' and '.join(rounded)} may differ by anything that is finite, if "
            f"{100 * LEAST_CLEAR_TOP1_RATIO:.0f} % of the rows with a clear class keep it: rounded "
            f"weights cannot hold the {MAX_DIFFERENCE:g} of other formats. Give --max-difference "
            "or, with --data, --max-accuracy-drop."
        )
    judged = [one.verification.accuracy for one in artefacts if one.verification.accuracy]
    if judged and judged[0].is_chance:
        first = judged[0]
        notes.append(
            f"The model itself is right in {100 * first.before_ratio:.1f} % of the rows by "
            f"{first.output}, no better than naming the commonest class "
            f"({100 * first.commonest_ratio:.1f} %): see whether the classes are those of this "
            "output and these rows."
        )
    return notes


def _result(making: Making, found: ExportMade, artefacts: tuple[Artefact, ...]) -> ExportResult:
    request, facts = making.request, found.source
    notes = [*facts.notes, *_notes(request.gates, artefacts)]
    if not request.data:
        notes.append("Compared on seeded random inputs: give --data to judge it on your own.")
    source = Lineage(
        reference=making.source.reference,
        kind=making.source.kind,
        sha256=making.source.sha256,
        preprocess=request.preprocess,
        postprocess=request.postprocess,
        title=facts.title,
        weights_sha256=facts.weights_sha256,
        parameter_count=facts.parameter_count,
        weights_bytes=facts.weights_bytes,
        compute_dtypes=facts.compute_dtypes,
    )
    return ExportResult(
        source=source,
        artefacts=artefacts,
        gates=request.gates,
        environment=environment_of(found.software, _BACKEND),
        created_at=now(),
        tfdyno=revision(),
        notes=tuple(notes),
    )
