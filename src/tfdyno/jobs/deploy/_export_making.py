"""One export on its way: each format that was made is judged, and what passes is put in place."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from tfdyno.core.base.codec import to_builtins, to_json, write_atomic
from tfdyno.core.base.errors import ToolError
from tfdyno.core.base.units import HOUR_S
from tfdyno.core.deploy.export import (
    ENDINGS,
    RECORD,
    Artefact,
    ExportResult,
    Format,
    Gates,
    Signature,
    Verification,
    failures,
)
from tfdyno.core.messages.export import (
    COMPARE_IN_TRANSFORMERS,
    COMPARE_ON_TORCH,
    CompareOnTorch,
    ExportMade,
    FormatMade,
    ForTorch,
)
from tfdyno.jobs.child.worker import run_child
from tfdyno.jobs.deploy._export_place import digest, put, put_with_record, size_of
from tfdyno.jobs.deploy._export_source import ExportSource
from tfdyno.jobs.holders.guard import Asked, guarded, visible_to
from tfdyno.probe.python.versions import brings
from tfdyno.render.deploy import tensorrt as render_tensorrt

LIMIT_S = 6 * HOUR_S
ENGINE_LIMIT_S = 4 * HOUR_S
"""Ends what hangs for ever; a large engine takes an hour."""
_NO_TF_TRT = (
    "TF-TRT, TensorFlow's own bridge, ended with TensorFlow 2.17: the engine is built from ONNX."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
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
    wait_free: bool = False
    """Whether it waits until nobody else is on the card, where an engine is built on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Making:
    """One export on its way, and where its parts lie."""

    request: ExportRequest
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
        """Return where a format is built."""
        return self.folder / "made" / self._name(kind)

    def place(self, kind: Format) -> Path:
        """Return where it goes."""
        several = len(self.request.formats) > 1
        return self.request.output / self._name(kind) if several else self.request.output

    def _name(self, kind: Format) -> str:
        same = [one for one in self.request.formats if ENDINGS[one] == ENDINGS[kind]]
        stem = kind if len(same) > 1 or not ENDINGS[kind] else "model"
        return f"{stem}{ENDINGS[kind]}"


def artefact(making: Making, made: FormatMade, found: ExportMade) -> Artefact:
    kind, path = made.format, making.built(made.format)
    notes: list[str] = []
    verification = made.verification
    if isinstance(verification, ForTorch):
        verification = _on_torch(making, made, verification)
        notes.append("Times were not measured: it runs in another process.")
    elif made.for_transformers:
        verification, told = _in_transformers(making, made, verification, made.for_transformers)
        notes += told
    if kind == "tensorrt":
        notes += _engine(making, path, made.signature)
    not_passed = failures(kind, making.request.gates, verification, found.source.compute_dtypes)
    return Artefact(
        format=kind,
        path=str(making.place(kind)),
        kept=not not_passed,
        size_bytes=size_of(path),
        sha256=digest(path),
        signature=made.signature,
        verification=verification,
        failures=not_passed,
        seconds_s=made.seconds_s,
        notes=tuple(notes),
        details=made.details,
    )


def _compare_request(making: Making, made: FormatMade, known: ForTorch) -> CompareOnTorch:
    return CompareOnTorch(
        folder=making.built(made.format),
        kept=making.folder,
        inputs=tuple(one.name for one in made.signature.inputs),
        outputs=tuple(one.name for one in made.signature.outputs),
        known=known,
    )


def _on_torch(making: Making, made: FormatMade, known: ForTorch) -> Verification:
    return run_child(
        COMPARE_ON_TORCH,
        _compare_request(making, made, known),
        progress=making.progress,
        timeout_s=LIMIT_S,
        python=making.torch_python,
        env={"KERAS_BACKEND": "torch"},
        doing=f"loading {making.request.model} on PyTorch",
        output=making.output,
    )


def _in_transformers(
    making: Making, made: FormatMade, found: Verification, known: ForTorch
) -> tuple[Verification, list[str]]:
    """Add what transformers makes of the folder, where it is installed; with notes."""
    notes = ["Times were not measured: it is for another server."]
    lacking = [one for one in ("transformers", "torch") if not brings(making.torch_python, one)]
    if lacking:
        told = "KerasHub alone read it again: this interpreter has no transformers with PyTorch."
        return found, [told, *notes]
    other = run_child(
        COMPARE_IN_TRANSFORMERS,
        _compare_request(making, made, known),
        progress=making.progress,
        timeout_s=LIMIT_S,
        python=making.torch_python,
        doing=f"loading {making.request.model} in transformers",
        output=making.output,
    )
    both = (*found.differences, *other.differences)
    runner = f"{found.runner}; {other.runner}"
    return replace(found, differences=both, runner=runner), notes


def _engine(making: Making, folder: Path, signature: Signature) -> list[str]:
    """Write scripts beside the ONNX file, and the engine where it can be built, with notes."""
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
    asked = Asked(visible=visible_to({}), waits=making.request.wait_free)
    with guarded(asked, tell=making.progress) as room:
        making.progress("building the TensorRT engine")
        _build(script)
    built = f"{render_tensorrt.PLAN} was built here; its outputs were compared as ONNX only."
    return [*room.notes, built, _NO_TF_TRT]


def _build(script: Path) -> None:
    """Run the script that builds the engine, on the card; raises ``ToolError``."""
    try:
        done = subprocess.run(["sh", str(script)], capture_output=True, text=True,
                              timeout=ENGINE_LIMIT_S, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ToolError(f"trtexec did not end in {ENGINE_LIMIT_S / HOUR_S:g} h") from None
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise ToolError("trtexec did not build the engine", why=lines[-1] if lines else "")


def put_in_place(making: Making, result: ExportResult) -> None:
    """Rename what passed; of several formats the folder as a whole."""
    request = making.request
    passed = [one for one in result.artefacts if one.kept]
    if not passed:
        return
    if len(request.formats) == 1:
        built, place = making.built(passed[0].format), request.output
        if built.is_dir():
            _record(built / RECORD, result)
            put(built, place)
        else:
            put_with_record(built, place, to_builtins(result), folder=making.folder)
        return
    for one in result.artefacts:
        if not one.kept:
            _remove(making.built(one.format))
    _record(making.folder / "made" / RECORD, result)
    put(making.folder / "made", request.output)


def _record(path: Path, result: ExportResult) -> None:
    write_atomic(path, to_json(result, indent=2) + b"\n")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
