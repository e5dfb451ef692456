"""Trace a workload: one real step as StableHLO, from the cache or from a child process."""

from __future__ import annotations

import functools
import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tfdyno.catalog.generations import lowering_of, newest, software, software_from
from tfdyno.core.base.codec import from_json, learned, to_json
from tfdyno.core.base.errors import Failure, UsageError
from tfdyno.core.base.version import PACKAGE
from tfdyno.core.choose.estimate import Estimate
from tfdyno.core.choose.generation import Software
from tfdyno.core.choose.program import Program
from tfdyno.core.choose.workload import Trace, Workload
from tfdyno.core.messages.trace import (
    BRIDGE,
    COUNT,
    FUSED_STEPS,
    FUSES,
    FUSES_WIDE,
    TRACE,
    BridgeStep,
    CountStep,
    QuickPrograms,
    TraceStep,
)
from tfdyno.core.messages.wire import fields_of
from tfdyno.jobs.child.worker import run_child, silent
from tfdyno.probe.python.versions import brings, version
from tfdyno.store.cache import default_cache, sha256_of
from tfdyno.store.dependencies import Dependencies, dependencies, hold

if TYPE_CHECKING:
    from tfdyno.core.choose.program import Lowering
    from tfdyno.core.choose.workload import Workload
    from tfdyno.core.messages.child import Answer, Asked, Child
    from tfdyno.core.messages.trace import StepTraced

TIMEOUT_S = 600.0  # a script that has not reached fit by then is stopped
OLDEST_PYTHON = (3, 10)  # that the modules which run the user's code can be read by
_PROGRAMS = tuple(one.name for one in fields(QuickPrograms))
CODE = (
    "runtime/**/*.py",
    "kernels/**/*.py",
    "process/*.py",
    "core/choose/memory_map.py",
    "core/choose/program.py",
    "core/choose/workload.py",
    "core/base/interval.py",
    "model/memory/bfc.py",
)
TENSORFLOW = ("tensorflow", "tensorflow-cpu")
_LINE = re.compile(r"\.py:\d|\blines? \d")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A trace, its quick programs, and where its StableHLO lies."""

    trace: Trace
    program: Program
    """The program as XLA runs it."""
    per_op: Program
    """The program of a framework that runs one operation after another, one for each layer."""
    stablehlo_path: Path
    widened: Program | None = None
    """The program for cards without bfloat16, where XLA computes in float32; None: the step has
    none."""
    per_op_widened: Program | None = None
    per_primitive: Program | None = None
    """The program of Keras 3 on TensorFlow: one operation after another, of which layers are made;
    None for software before it."""
    per_primitive_widened: Program | None = None
    fused_attention: Program | None = None
    """The program under JAX on cards where cuDNN fuses attention; None: nothing is fused."""
    wide_attention: Program | None = None
    """The same on cards whose cuDNN takes wider heads; None: as ``fused_attention``."""
    software: Software = field(default_factory=newest)
    """Release that the programs are of and that estimates are for."""
    estimates: dict[object, Estimate] | None = field(default=None, compare=False, repr=False)
    """Estimates of this trace by what was asked, where it is kept between questions."""

    def fused_on(self, capability: float) -> Program | None:
        """Return the program of NVIDIA's cards whose cuDNN fuses its attention; None: theirs not.

        Args:
            capability: Their compute capability.
        """
        if capability < FUSES:
            return None
        return (self.wide_attention if capability >= FUSES_WIDE else None) or self.fused_attention

    def stablehlo_on(self, capability: float) -> Path:
        """Return where the step of that program lies, or the plain one where there is none."""
        found = self.fused_on(capability)
        name = next((one for one in FUSED_STEPS if found and getattr(self, one) is found), "")
        return self.stablehlo_path.with_name(f"{name}.mlirbc") if name else self.stablehlo_path


def trace(
    workload: Workload,
    *,
    batch_size: int | None = None,
    progress: Callable[[str], None] = silent,
    fresh: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> Traced:
    """Trace one step of ``workload`` on this machine's CPU, without memory for its weights.

    Args:
        workload: What to trace.
        batch_size: Trace exactly this batch; None: the marker batch that serves all.
        progress: Called with a line at every stage.
        fresh: Trace again even if the cache has it.
        timeout_s: Limit for the user's code and the trace together.

    Raises:
        UsageError: The workload is wrong: no such function, no ``fit``, a model that cannot be
            built, a batch below 1.
        ToolError: The child crashed, hung or ran out of memory.
    """
    if batch_size is not None and (not math.isfinite(batch_size) or batch_size < 1):
        raise UsageError(f"a batch of {batch_size} is not possible", remedy="give at least 1")
    python = interpreter(workload)
    size = None if batch_size is None else int(batch_size)
    software = software_for(workload, python)
    lowering = lowering_of(software)
    folder = default_cache().entry(
        "trace",
        _key(workload, size, python, lowering),
        lambda place: _make(workload, size, place, python, progress, timeout_s, lowering),
        fresh=fresh,
        current=_current,
    )
    return _read(folder, software)


def kept_trace(workload: Workload, *, batch_size: int | None = None) -> Traced | None:
    """Return the trace of ``workload`` where it is in the cache; nothing is started.

    Args:
        workload: What was traced.
        batch_size: That it was traced at; None: the marker batch.

    Raises:
        UsageError: Its interpreter cannot be run.
    """
    python = interpreter(workload)
    software = software_for(workload, python)
    key = _key(workload, batch_size, python, lowering_of(software))
    folder = default_cache().kept("trace", key, current=_current)
    return _read(folder, software) if folder else None


def _read(folder: Path, software: Software) -> Traced:
    programs: dict[str, Any] = {
        name: msgspec.json.decode(
            (folder / f"{name}.json").read_bytes(), type=learned(Program | None)
        )
        for name in _PROGRAMS
    }
    return Traced(
        trace=from_json((folder / "trace.json").read_bytes(), Trace, where="the cached trace"),
        stablehlo_path=folder / "step.mlirbc",
        software=software,
        **programs,
    )


def _make(
    workload: Workload,
    batch_size: int | None,
    place: Path,
    python: str,
    progress: Callable[[str], None],
    timeout_s: float,
    lowering: Lowering,
) -> None:
    request = TraceStep(
        workload=workload,
        batch_size=batch_size,
        path_reason="Keras runs this model on the JAX backend",
        stablehlo=place / "step.mlirbc",
        hlo=place / "step.hlo",
        count=python == sys.executable,
        limit_s=timeout_s,
        lowering=lowering,
    )
    began_ns = time.time_ns()
    made, programs, found = _traced(_Tracing(request=request, python=python, progress=progress))
    request.hlo.unlink(missing_ok=True)
    depends = dependencies(
        found.files, found.read, found.variables,
        names_lines=_names_lines(made), began_ns=began_ns,
    )  # fmt: skip
    stored = {"trace": made, **fields_of(programs), "depends": depends}
    for name, value in stored.items():
        (place / f"{name}.json").write_bytes(to_json(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tracing:
    request: TraceStep
    python: str
    progress: Callable[[str], None]

    def by_path(self, request: TraceStep) -> StepTraced:
        """Where the user's code runs."""
        return self.run(TRACE, request, self.python, {"KERAS_BACKEND": request.path})

    def run(
        self,
        child: Child[Asked, Answer],
        request: Asked,
        python: str | None = None,
        env: dict[str, str] | None = None,
    ) -> Answer:
        """In our own environment unless told otherwise."""
        return run_child(
            child,
            request,
            progress=self.progress,
            timeout_s=self.request.limit_s,
            python=python,
            env=env,
            doing=f"tracing {self.request.workload.reference}",
        )


_Made = tuple[Trace, QuickPrograms, "StepTraced"]
"""With what the child told of what it depends on."""


def _traced(own: _Tracing) -> _Made:
    """Trace by JAX, or by TensorFlow where that declines; counted in our own environment."""
    request = own.request
    if request.workload.kind == "step_function":
        return _by_tensorflow(own, "a step function is TensorFlow code")
    # Of a preset by jax.checkpoint: TensorFlow would make its weights, which takes minutes.
    if request.workload.remat and request.workload.kind != "preset":
        return _by_tensorflow(own, "parts are computed again by means of TensorFlow")
    found = own.by_path(request)
    made = found.trace
    if isinstance(made, Failure) and request.workload.kind == "preset":
        # TensorFlow makes real weights, which this machine need not have room for.
        raise UsageError(made.what, why=made.why, remedy=made.remedy)
    if isinstance(made, Failure):
        own.progress("tracing with TensorFlow instead")
        return _by_tensorflow(own, f"not traceable on the JAX backend: {made.error}")
    count = CountStep(trace=made, stablehlo=request.stablehlo, lowering=request.lowering)
    return made, found.programs or own.run(COUNT, count), found


def _by_tensorflow(own: _Tracing, reason: str) -> _Made:
    """Trace by the slower path, which runs every TensorFlow operation."""
    request = replace(own.request, path="tensorflow", path_reason=reason)
    found = own.by_path(request)
    made = found.trace
    if isinstance(made, Failure):
        remedy = made.remedy or "see whether it trains one step without tfdyno"
        raise UsageError(made.what, why=made.why, remedy=remedy)
    bridge = BridgeStep(
        trace=made, hlo=request.hlo, stablehlo=request.stablehlo, lowering=request.lowering
    )
    bridged = own.run(BRIDGE, bridge)
    return bridged.trace, bridged.programs, found


def interpreter(workload: Workload) -> str:
    """Return the interpreter for the user's code: ``--python``, the active one, or our own."""
    return interpreter_named(workload.python)


def interpreter_named(python: str) -> str:
    """Return the interpreter that ``--python`` names; empty: the active environment's, or our own.

    Raises:
        UsageError: It cannot be run, or is too old.
    """
    if python:
        found = shutil.which(python)
        if not found:
            remedy = "give the path of a Python interpreter"
            raise UsageError(f"--python {python} cannot be run", remedy=remedy)
        _check_version(found)
        return found
    active = Path(os.environ.get("VIRTUAL_ENV", sys.prefix)) / "bin" / "python"
    if active.parent.parent == Path(sys.prefix) or not active.exists():
        return sys.executable
    return str(active) if brings(str(active), "keras") else sys.executable


def _check_version(python: str) -> None:
    """Refuse an interpreter that cannot read our own modules."""
    command = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    try:
        known = tuple(int(part) for part in done.stdout.strip().split("."))
    except ValueError:
        raise UsageError(f"--python {python} is not a Python interpreter") from None
    if known < OLDEST_PYTHON:
        needed = ".".join(map(str, OLDEST_PYTHON))
        raise UsageError(
            f"--python {python} is Python {done.stdout.strip()}",
            why=f"tfdyno needs {needed} or newer to run your code",
        )


def _key(workload: Workload, batch_size: int | None, python: str, lowering: Lowering) -> str:
    """Return all that is known before a trace and decides it; ``_current`` checks the files."""
    place = Path.cwd() if workload.kind not in ("application", "task", "preset") else ""
    chosen = [os.environ.get(name) for name in ("KERAS_HOME", "TF_USE_LEGACY_KERAS")]
    parts = (workload, batch_size, python, lowering, place, *chosen, code_digest())
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


@functools.lru_cache(maxsize=1)
def code_digest() -> str:
    """Digest of our own modules that decide what a trace or a program says."""
    files = sorted(file for pattern in CODE for file in PACKAGE.glob(pattern))
    return hashlib.sha256("".join(map(sha256_of, files)).encode()).hexdigest()


def _names_lines(made: Trace) -> bool:
    """Return whether a sentence of the trace names a line of the code."""
    return any(_LINE.search(text) for text in (made.path_reason, *made.warnings))


def _current(folder: Path) -> bool:
    """Return whether everything that the trace depends on is as it was."""
    try:
        noted = (folder / "depends.json").read_bytes()
    except FileNotFoundError:  # of an older release
        return False
    return hold(msgspec.json.decode(noted, type=learned(Dependencies)))


def software_for(workload: Workload, python: str) -> Software:
    """Return what the workload asks for, else what is installed where it runs, else the newest.

    Raises:
        UsageError: What is asked for is no release.
    """
    asked = software_from(workload.software)
    if asked is not None:
        return asked
    found = version(*TENSORFLOW, python=python) or _without_metadata(python)
    return software("tensorflow", found, "installed") if found else newest()


def _without_metadata(python: str) -> str:
    """Find a TensorFlow that only ``PYTHONPATH`` names; empty: none, or it does not tell."""
    from tfdyno.probe.base.distributions import module_version
    from tfdyno.probe.base.host import this_host
    from tfdyno.probe.base.python import interpreter

    host = this_host(python)
    return module_version(host, interpreter(host).tensorflow)
