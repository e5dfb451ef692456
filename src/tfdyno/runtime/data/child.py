"""Child process: the input pipeline of a workload by itself, measured in rounds."""

from __future__ import annotations

from tfdyno.core.messages.data import DATA, MeasureData, MeasuredData
from tfdyno.process import child
from tfdyno.process.stop_asked import asked_to_stop
from tfdyno.runtime.base.software import import_tensorflow, software


def handle(request: MeasureData, progress: child.Progress) -> MeasuredData:
    """Measure the pipeline of one workload.

    Raises:
        UsageError: The workload brings no data, the data is empty, or the user's code fails.
        ToolError: There is not enough memory.
    """
    workload = request.workload
    progress("importing TensorFlow")
    import_tensorflow(workload, "data bench", "measure")
    from tfdyno.runtime.data.measure import DataMeasure
    from tfdyno.runtime.data.source import with_data

    progress(f"building {workload.task or workload.reference}")
    measure = DataMeasure(workload.reference, request.plan, progress)
    with asked_to_stop(measure.stop):
        feed = with_data(workload, measure.measured, batch_size=request.batch_size)
    return MeasuredData(feed=feed, software=software())


if __name__ == "__main__":
    child.leave(child.serve(handle, DATA))
