"""One job in a process of its own, so that the peak memory of its child can be told apart.

``python -m benchmarks.job trace REFERENCE`` or ``compile REFERENCE FAMILY``; prints JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import TYPE_CHECKING, Any

from benchmarks.timed_compile import TIMED_COMPILE
from tfdyno.core.base.errors import TfdynoError
from tfdyno.jobs.child.worker import run_child
from tfdyno.jobs.choose import compile as compile_job
from tfdyno.jobs.choose.reference import parse_reference
from tfdyno.jobs.choose.trace import trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.messages.child import Child
    from tfdyno.core.messages.compile import CompileStep, StepCompiled

POLICY = "mixed_float16"


def traced(reference: str) -> dict[str, Any]:
    """Trace from nothing; the peak is that of the largest child (KiB on Linux)."""
    began = time.perf_counter()
    made = trace(parse_reference(reference), fresh=True)
    return {
        "wall_s": time.perf_counter() - began,
        "peak_bytes": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
        "path": made.trace.path,
        "parameters": made.trace.parameter_count,
    }


def compiled(reference: str, family: str) -> dict[str, Any]:
    """Compile a step that is traced already, with a clock around XLA inside the child."""
    step = trace(parse_reference(reference, precision=POLICY))
    inside: list[float] = []

    def timed_child(
        _declared: Child[CompileStep, StepCompiled], request: CompileStep, **options: Any
    ) -> StepCompiled:
        timed = run_child(TIMED_COMPILE, request, **options)
        inside.append(timed.xla_s)
        return timed.made

    compile_job.run_child = timed_child  # type: ignore[attr-defined, assignment]
    began = time.perf_counter()
    program = compile_job.compile_exact(step, family=family)
    return {
        "wall_s": time.perf_counter() - began,
        "xla_s": inside[0] if inside else None,
        "served_by": program.family,
        "kernels": len(program.kernels),
    }


JOBS: dict[str, Callable[..., dict[str, Any]]] = {"trace": traced, "compile": compiled}

if __name__ == "__main__":
    try:
        print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])))
    except TfdynoError as error:
        sys.exit(str(error))
