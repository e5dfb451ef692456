"""One run of a trial on a node of Ray: the same fresh child as everywhere, its answer as JSON."""

from __future__ import annotations

import os
from typing import Any

from tfdyno.core.codec import from_builtins, to_builtins
from tfdyno.core.errors import TfdynoError, UsageError
from tfdyno.core.measurement import Protocol
from tfdyno.core.recipe import Recipe
from tfdyno.core.workload import Workload
from tfdyno.jobs._bench_run import measured
from tfdyno.jobs._worker import silent


def measure_here(request: dict[str, Any]) -> dict[str, Any]:
    """Measure once in this process' place; what fails is told, not raised.

    Args:
        request: ``workload``, ``recipe``, ``protocol``, ``order``, ``doing``, ``folder`` that the
            paths are relative to, ``on_cpu``, ``limit_bytes`` of resident memory there, and
            ``unset``: names of variables that Ray has set.
    """
    for name in request["unset"]:
        os.environ.pop(name, None)
    try:
        os.chdir(request["folder"])
        found = measured(
            from_builtins(request["workload"], Workload),
            from_builtins(request["recipe"], Recipe),
            from_builtins(request["protocol"], Protocol),
            order=request["order"],
            doing=request["doing"],
            progress=silent,
            memory_limit_bytes=request["limit_bytes"] if request["on_cpu"] else 0,
        )
    except OSError as error:
        what = f"{request['folder']} is not on node {os.uname().nodename}"
        return {"error": _words(UsageError(what, why=error.strerror or str(error)))}
    except TfdynoError as error:
        return {"error": _words(error)}
    return {"measured": to_builtins(found)}


def _words(error: TfdynoError) -> dict[str, str]:
    kind = "usage" if isinstance(error, UsageError) else "tool"
    return {"kind": kind, "what": error.what, "why": error.why, "remedy": error.remedy}
