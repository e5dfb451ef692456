"""Export a model to one format or several; what passes its gates is put in place."""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tfdyno.core.codec import from_builtins, to_json, write_atomic
from tfdyno.core.errors import ToolError, UsageError
from tfdyno.core.export import (
    ENDINGS,
    EXACT,
    MAX_DIFFERENCE,
    RECORD,
    Artefact,
    ExportResult,
    Format,
    Gates,
    Lineage,
    Signature,
    Verification,
    failures,
)
from tfdyno.engines import render_tensorrt
from tfdyno.jobs._export_place import check_place, digest, put, size_of, stage
from tfdyno.jobs._export_source import ExportSource, export_source
from tfdyno.jobs._recipe_env import environment_of
from tfdyno.jobs._worker import run_child, silent
from tfdyno.jobs.trace import interpreter_named
from tfdyno.probe.revision import revision
from tfdyno.rules import export as rules

CHILD, TORCH_CHILD = "tfdyno.runtime.export_model", "tfdyno.runtime.export_torch"
LIMIT_S = 6 * 3600.0
ENGINE_LIMIT_S = 4 * 3600.0
"""Ends what hangs for ever; a large engine takes an hour."""
_BACKEND = {"KERAS_BACKEND": "tensorflow"}
_NO_TF_TRT = (
    "TF-TRT, TensorFlow's own bridge, ended with TensorFlow 2.17: the engine is built from ONNX."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportQuestion:
    """What is exported, how it is judged, and where it goes."""

    model: str
    formats: tuple[Format, ...]
    output: Path
    data: str = ""
    """``FILE.npz`` or ``file.py:function``; empty: seeded random inputs."""
    gates: Gates = field(default_factory=Gates)
    preprocess: str = ""
    postprocess: str = ""
    signature: tuple[str, ...] = ()
    python: str = ""
    force: bool = False
    measure: bool = True
    """Whether calls are timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Making:
    question: ExportQuestion
    source: ExportSource
    folder: Path
    """Hidden, beside the output."""
    python: str
    """That runs TensorFlow."""
    torch_python: str
    progress: Callable[[str], None]
    output: Callable[[str], None]
    notes: list[str] = field(default_factory=list)

    def built(self, kind: Format) -> Path:
        """Where a format is built."""
        return self.folder / "made" / self._name(kind)

    def place(self, kind: Format) -> Path:
        """Where it goes."""
        several = len(self.question.formats) > 1
        return self.question.output / self._name(kind) if several else self.question.output

    def _name(self, kind: Format) -> str:
        same = [one for one in self.question.formats if ENDINGS[one] == ENDINGS[kind]]
        stem = kind if len(same) > 1 or not ENDINGS[kind] else "model"
        return f"{stem}{ENDINGS[kind]}"


def check(question: ExportQuestion) -> ExportSource:
    """Refuse what cannot be, before any work.

    Raises:
        UsageError: There is no such model, the place is taken, or an option lacks what it needs.
    """
    source = export_source(question.model)
    if question.gates.max_accuracy_drop_ratio is not None and not question.data:
        raise UsageError("--max-accuracy-drop needs rows with their classes",
                         remedy="give --data FILE.npz with x and y")  # fmt: skip
    if question.data and ":" not in question.data and not question.data.endswith(".npz"):
        raise UsageError(f"--data {question.data} is no data that can be read",
                         remedy="give FILE.npz or file.py:function")  # fmt: skip
    if question.data.endswith(".npz") and not Path(question.data).is_file():
        raise UsageError(f"there is no file {question.data}")
    if len(question.formats) == 1:
        _check_ending(question.formats[0], question.output)
    is_folder = len(question.formats) > 1 or not ENDINGS[question.formats[0]]
    check_place(question.output, force=question.force, needed=_read(question, source),
                is_folder=is_folder)  # fmt: skip
    return source


def export(
    question: ExportQuestion,
    *,
    progress: Callable[[str], None] = silent,
    output: Callable[[str], None] = silent,
) -> ExportResult:
    """Export, compare, and put in place what passes its gates.

    Args:
        question: What is exported.
        progress: Called with every stage.
        output: Called with every line that the user's code prints.

    Raises:
        UsageError: Something does not fit; nothing is left behind.
        ToolError: A converter or a child failed; nothing is left behind.
    """
    source = check(question)
    python = interpreter_named(question.python)
    torch_python = python
    if "torch" in question.formats:
        python, torch_python = _pythons(python)
    with stage(question.output) as folder:
        (folder / "made").mkdir()
        making = _Making(question=question, source=source, folder=folder, python=python,
                         torch_python=torch_python, progress=progress, output=output)  # fmt: skip
        found = _child(making)
        artefacts = tuple(_artefact(making, one, found) for one in found["made"])
        result = _result(making, found, artefacts)
        _put_in_place(making, result)
    return result


def _read(question: ExportQuestion, source: ExportSource) -> tuple[Path, ...]:
    """Files and folders that the export reads, as far as they are named."""
    processing = (question.preprocess, question.postprocess)
    named = (source.path or source.reference, question.data, *processing)
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
    """Interpreters for TensorFlow and for PyTorch: the one that is named needs the second.

    Raises:
        UsageError: It has no PyTorch or no Keras.
    """
    missing = [name for name in ("torch", "keras") if not _has(python, name)]
    if missing:
        wanted = "PyTorch" if missing[0] == "torch" else "Keras"
        raise UsageError(
            f"export to torch needs {wanted}",
            why=f"{python} has none",
            remedy="name an interpreter that has PyTorch and Keras with --python; or export to "
            "onnx, which needs no PyTorch",
        )
    return (python if _has(python, "tensorflow") else sys.executable), python


def _has(python: str, package: str) -> bool:
    if python == sys.executable:
        return importlib.util.find_spec(package) is not None
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({package!r}) is None)"
    done = subprocess.run([python, "-c", code], capture_output=True, timeout=60, check=False)
    return done.returncode == 0


def _child(making: _Making) -> dict[str, Any]:
    question = making.question
    request = {
        "reference": making.source.reference,
        "kind": making.source.kind,
        "path": making.source.path,
        "formats": [
            {"format": kind, "target": str(making.built(kind))} for kind in question.formats
        ],
        "data": question.data,
        "signature": list(question.signature),
        "preprocess": question.preprocess,
        "postprocess": question.postprocess,
        "refused": rules.refused(),
        "measure": question.measure,
        "kept": str(making.folder),
    }
    found = run_child(
        CHILD,
        request,
        progress=making.progress,
        timeout_s=LIMIT_S,
        python=making.python,
        env=_BACKEND,
        doing=f"exporting {question.model}",
        output=making.output,
    )
    if found["obstacles"]:
        raise _refusal(found)
    return found


def _refusal(found: dict[str, Any]) -> UsageError:
    """All obstacles in one sentence, what to do about the first, and its format."""
    met = rules.obstacles(found["obstacles"])
    kinds = ", ".join(dict.fromkeys(one.format for one in met))
    told = list(dict.fromkeys(rules.sentence(one) for one in met))
    more = f" (and {len(told) - 3} more)" if len(told) > 3 else ""
    return UsageError(
        f"{found['title']} cannot be exported to {kinds}",
        why="; ".join(told[:3]) + more,
        remedy=met[0].remedy,
    )


def _artefact(making: _Making, made: dict[str, Any], found: dict[str, Any]) -> Artefact:
    kind: Format = made["format"]
    path = making.built(kind)
    signature = from_builtins(made["signature"], Signature, where="the child's signature")
    notes: list[str] = []
    if kind == "torch":
        made = made | {"verification": _on_torch(making, made, path)}
        notes.append("Times were not measured: it runs in another process.")
    verification = from_builtins(made["verification"], Verification, where="the child's result")
    if kind == "tensorrt":
        notes += _engine(making, path, signature)
    details = {key: value for key, value in made["details"].items() if key != "judged"}
    not_passed = failures(
        kind, making.question.gates, verification, tuple(found["source"]["compute_dtypes"])
    )
    if making.question.gates.max_accuracy_drop_ratio is not None and verification.accuracy is None:
        raise UsageError("--max-accuracy-drop needs classes that fit an output",
                         why=f"{making.question.data} has none",
                         remedy="give y with one class for each row")  # fmt: skip
    return Artefact(
        format=kind,
        path=str(making.place(kind)),
        kept=not not_passed,
        size_bytes=size_of(path),
        sha256=digest(path),
        signature=signature,
        verification=verification,
        failures=not_passed,
        seconds_s=made["seconds_s"],
        notes=tuple(notes),
        details=details,
    )


def _on_torch(making: _Making, made: dict[str, Any], folder: Path) -> dict[str, Any]:
    signature = made["signature"]
    found = run_child(
        TORCH_CHILD,
        {
            "folder": str(folder),
            "kept": str(making.folder),
            "order": [one["name"] for one in signature["inputs"]],
            "outputs": [one["name"] for one in signature["outputs"]],
            "judged": made["details"]["judged"],
        },
        progress=making.progress,
        timeout_s=LIMIT_S,
        python=making.torch_python,
        env={"KERAS_BACKEND": "torch"},
        doing=f"loading {making.question.model} on PyTorch",
        output=making.output,
    )
    return {"data": made["data"], **found, "latencies": []}


def _engine(making: _Making, folder: Path, signature: Signature) -> list[str]:
    """The scripts beside the ONNX file, and the engine where it can be built; what to know."""
    script = folder / render_tensorrt.SHELL
    script.write_text(render_tensorrt.shell_script(signature), encoding="utf-8")
    script.chmod(0o755)
    code = render_tensorrt.python_script(signature)
    (folder / render_tensorrt.PYTHON).write_text(code, encoding="utf-8")
    trtexec, smi = shutil.which("trtexec"), shutil.which("nvidia-smi")
    if not trtexec or not smi:
        missing = "trtexec" if smi else "no NVIDIA GPU"
        found = "no NVIDIA GPU was found here" if not smi else f"{missing} was not found here"
        return [f"No engine was built: {found}. Where both are: sh {render_tensorrt.SHELL}.",
                _NO_TF_TRT]  # fmt: skip
    making.progress("building the TensorRT engine")
    try:
        done = subprocess.run(["sh", str(script)], capture_output=True, text=True,
                              timeout=ENGINE_LIMIT_S, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ToolError(f"trtexec did not end in {ENGINE_LIMIT_S / 3600:g} h") from None
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise ToolError("trtexec did not build the engine", why=lines[-1] if lines else "")
    return [f"{render_tensorrt.PLAN} was built here; its outputs were compared as ONNX only.",
            _NO_TF_TRT]  # fmt: skip


def _result(
    making: _Making, found: dict[str, Any], artefacts: tuple[Artefact, ...]
) -> ExportResult:
    question, facts = making.question, found["source"]
    notes = list(facts.pop("notes"))
    ungated = [one.format for one in artefacts if one.format not in EXACT]
    if ungated and question.gates.max_difference is None:
        notes.append(
            f"No difference fails {' and '.join(ungated)} unless --max-difference says which: "
            f"rounded weights cannot hold the {MAX_DIFFERENCE:g} of other formats."
        )
    if not question.data:
        notes.append("Compared on seeded random inputs: give --data to judge it on your own.")
    source = Lineage(
        reference=making.source.reference,
        kind=making.source.kind,
        sha256=making.source.sha256,
        preprocess=question.preprocess,
        postprocess=question.postprocess,
        title=facts["title"],
        weights_sha256=facts["weights_sha256"],
        parameter_count=facts["parameter_count"],
        weights_bytes=facts["weights_bytes"],
        compute_dtypes=tuple(facts["compute_dtypes"]),
    )
    now = datetime.datetime.now(tz=datetime.UTC)
    return ExportResult(
        source=source,
        artefacts=artefacts,
        gates=question.gates,
        environment=environment_of(found["software"], _BACKEND),
        created_at=now.isoformat(timespec="seconds"),
        tfdyno=revision(),
        notes=tuple(notes),
    )


def _put_in_place(making: _Making, result: ExportResult) -> None:
    """Rename what passed; of several formats the folder as a whole."""
    question = making.question
    passed = [one for one in result.artefacts if one.kept]
    if not passed:
        return
    if len(question.formats) == 1:
        built, place = making.built(passed[0].format), question.output
        if built.is_dir():
            _record(built / RECORD, result)
            put(built, place)
            return
        beside = place.with_name(f"{place.name}.{RECORD}")
        _record(making.folder / RECORD, result)
        put(built, place)
        put(making.folder / RECORD, beside)
        return
    for one in result.artefacts:
        if not one.kept:
            _remove(making.built(one.format))
    _record(making.folder / "made" / RECORD, result)
    put(making.folder / "made", question.output)


def _record(path: Path, result: ExportResult) -> None:
    write_atomic(path, to_json(result, indent=2) + b"\n")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
