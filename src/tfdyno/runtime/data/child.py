"""Child process: the input pipeline of a workload by itself, measured in rounds.

Request: ``workload``, optionally ``task`` (name of a standard task), ``batch_size``, and ``plan``
(fields of ``data_measure.Plan``). Result: ``feed`` (``core.feed.Feed`` without its environment and
date) and ``software`` (versions).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tfdyno.process import child
from tfdyno.process.stop_asked import asked_to_stop
from tfdyno.runtime.base.software import import_tensorflow, software


def handle(request: child.Request, progress: child.Progress) -> dict[str, Any]:
    """Measure the pipeline of one workload.

    Raises:
        UsageError: The workload brings no data, the data is empty, or the user's code fails.
        ToolError: There is not enough memory.
    """
    from tfdyno.runtime.trace.child import workload_of

    workload, task = workload_of(request["workload"]), request.get("task") or ""
    progress("importing TensorFlow")
    import_tensorflow(workload, "data bench", "measure")
    from tfdyno.runtime.data.measure import DataMeasure, Plan
    from tfdyno.runtime.data.source import with_data

    progress(f"building {task or workload.reference}")
    measure = DataMeasure(workload.reference, Plan(**request.get("plan") or {}), progress)
    size = int(request.get("batch_size") or 0)
    with asked_to_stop(measure.stop):
        feed = with_data(workload, measure.measured, task=task, batch_size=size)
    return {"feed": asdict(feed), "software": software()}


if __name__ == "__main__":
    child.leave(child.serve(handle))
