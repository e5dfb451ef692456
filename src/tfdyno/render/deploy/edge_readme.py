"""The pages of a folder that ``tfdyno edge --write`` leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.words.base.amounts import short_time
from tfdyno.words.deploy.edge import shape_words, span_words, threads_words

if TYPE_CHECKING:
    from tfdyno.core.deploy.edge import EdgeReport


def readme(report: EdgeReport, files: dict[str, str]) -> str:
    """Write ``README.md``.

    Args:
        report: Of the model.
        files: Name of each file to what it is for.
    """
    need = report.need
    rows = "\n".join(f"| `{name}` | {use} |" for name, use in files.items())
    ports = [
        f"| {role} {one.index} | `{one.name}` | {shape_words(one)} |"
        for role, given in (("input", report.inputs), ("output", report.outputs))
        for one in given
    ]
    timings = [
        f"- {threads_words(one)}: {short_time(one.median_s)} a call "
        f"({span_words(one.interval_s)}) on {report.cpu}"
        for one in report.timings
    ]
    return "\n".join([
        f"# {report.model}", "",
        f"{format_bytes(need.file_bytes)}, {format_bytes(need.live_bytes)} of values at once.", "",
        "| file | for |", "|---|---|", rows, "",
        "| | name | type and shape |", "|---|---|---|", *ports, "",
        *(["Measured by LiteRT:", "", *timings, ""] if timings else []),
    ])  # fmt: skip


def jetson_page(report: EdgeReport) -> str:
    """Write ``jetson.md``: TensorRT from the ONNX of the same model, or LiteRT with this file."""
    source = report.converted_from or "MODEL.keras"
    shapes = ",".join(f"{one.name}:{'x'.join(map(str, one.shape)) or '1'}" for one in report.inputs)
    has_open = any(one.open_axes for one in report.inputs)
    wide = ",".join(
        f"{one.name}:{'x'.join(str(8 if i in one.open_axes else n) for i, n in enumerate(one.shape))}"  # noqa: E501
        for one in report.inputs
    )
    bounds = f" \\\n    --minShapes={shapes} --optShapes={shapes} --maxShapes={wide}" * has_open
    return _JETSON.format(source=source, bounds=bounds)


_JETSON = """\
# Jetson

TensorRT does not read .tflite files. Where the model is, write it as ONNX:

```bash
tfdyno export {source} --to onnx --output model.onnx
```

On the Jetson (an engine is built for the very GPU and TensorRT that run it):

```bash
/usr/src/tensorrt/bin/trtexec --onnx=model.onnx --saveEngine=model.engine --fp16{bounds}
/usr/src/tensorrt/bin/trtexec --loadEngine=model.engine
```

Names of inputs are those of the model; `trtexec` lists them where they differ. The second command
times it. Half floats are usually the best trade; for 8 bits give `--int8` and a calibration cache.

Without TensorRT, `model.tflite` runs on the Jetson's CPU as on any board:

```bash
pip install ai-edge-litert numpy
python3 run_model.py --threads 4
```
"""
