"""Write what a developer needs to run a model on a device; every file is checked before."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tfdyno.catalog.edge_devices import operations
from tfdyno.core.base.codec import to_json
from tfdyno.core.base.errors import OSErrorsAs, ToolError, UsageError
from tfdyno.core.deploy.edge_document import edge_document
from tfdyno.render.deploy.edge_android import android_page
from tfdyno.render.deploy.edge_c import bytes_of, micro_source, model_header, model_source
from tfdyno.render.deploy.edge_python import run_script
from tfdyno.render.deploy.edge_readme import jetson_page, readme

if TYPE_CHECKING:
    from tfdyno.core.deploy.edge import EdgeReport

MOST_C_BYTES = 8 * 1024 * 1024
"""No microcontroller of the catalogue has more flash."""
MOST_COMPILED_BYTES = 1024 * 1024
"""Compilers take minutes for longer arrays: their text alone is compared."""
_COMPILERS = ("c++", "g++", "clang++")
COMPILE_S = 300.0
_PRINTER = (
    '#include <cstdio>\n#include "model_data.h"\n'
    "int main() { return fwrite(g_model_data, 1, g_model_data_len, stdout)"
    " == g_model_data_len ? 0 : 1; }\n"
)
_USES = {
    "model.tflite": "the model itself",
    "run_model.py": "runs it on a Raspberry Pi, a Jetson or this machine",
    "android.md": "Gradle and Kotlin for an Android application",
    "jetson.md": "TensorRT by ONNX, or LiteRT, on a Jetson",
    "model_data.cc": "the model as an array, for a microcontroller",
    "model_data.h": "its declaration",
    "micro_main.cc": "loads and runs it with LiteRT for Microcontrollers",
    "edge.json": "all figures of tfdyno edge",
}


def write(folder: Path, model: Path, report: EdgeReport) -> None:
    """Make ``folder`` at once: beside it first, then renamed.

    Raises:
        UsageError: It is there already, or cannot be made.
        ToolError: The array does not hold the model's bytes, or the disk is full.
    """
    data = model.read_bytes()
    texts = _texts(report, data)
    with OSErrorsAs(UsageError, f"{folder} cannot be written"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as beside:
            made = Path(beside) / "made"
            made.mkdir()
            (made / "model.tflite").write_bytes(data)
            for name, text in texts.items():
                (made / name).write_text(text, encoding="utf-8")
            if "model_data.cc" in texts:
                check_array(made, data)
            os.rename(made, folder)  # noqa: PTH104  (fails where the folder has come meanwhile)


def _texts(report: EdgeReport, data: bytes) -> dict[str, str]:
    lacks = tuple(k for k in report.need.kinds if k not in operations("gpu-delegate"))
    no_micro = tuple(k for k in report.need.kinds if k not in operations("litert-micro"))
    texts = {
        "run_model.py": run_script(report),
        "android.md": android_page(report, lacks),
        "jetson.md": jetson_page(report),
        "edge.json": to_json(edge_document(report), indent=2).decode(),
    }
    if len(data) <= MOST_C_BYTES:
        texts |= {
            "model_data.cc": model_source(data),
            "model_data.h": model_header(),
            "micro_main.cc": micro_source(report, _micro_bytes(report), lacks=no_micro),
        }
    names = {name: use for name, use in _USES.items() if name in texts or name == "model.tflite"}
    return {**texts, "README.md": readme(report, names)}


def _micro_bytes(report: EdgeReport) -> int:
    """Return a microcontroller's bytes among the devices; the values alone where there is none."""
    found = [
        one.memory_needed_bytes for one in report.verdicts if "Microcontrollers" in one.runtime
    ]
    return max(found, default=report.need.live_bytes)


def check_array(folder: Path, data: bytes) -> bool:
    """Compare the array with the model: as text, and compiled where there is a compiler.

    Returns:
        Whether it was compiled.

    Raises:
        ToolError: It does not hold the same bytes, or does not compile.
    """
    if bytes_of((folder / "model_data.cc").read_text(encoding="utf-8")) != data:
        raise ToolError("the C array does not hold the model's bytes")
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None or len(data) > MOST_COMPILED_BYTES:
        return False
    with tempfile.TemporaryDirectory(prefix="tfdyno-array-") as place:
        program = Path(place) / "print"
        (Path(place) / "print.cc").write_text(_PRINTER, encoding="utf-8")
        words = [compiler, "-std=c++17", "-Wall", "-Werror", f"-I{folder}", "-o", str(program),
                 str(Path(place) / "print.cc"), str(folder / "model_data.cc")]  # fmt: skip
        built = subprocess.run(words, capture_output=True, timeout=COMPILE_S, check=False)
        if built.returncode:
            why = built.stderr.decode("utf-8", "replace").strip().split("\n")[0]
            raise ToolError("the C array does not compile", why=why)
        printed = subprocess.run([str(program)], capture_output=True, timeout=60, check=False)
    if printed.stdout != data:
        raise ToolError("the compiled C array does not hold the model's bytes")
    return True
