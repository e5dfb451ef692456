"""How an Android application runs a model: Gradle and Kotlin with its names, shapes and types."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from tfdyno.words.deploy.edge import shape_words

if TYPE_CHECKING:
    from tfdyno.core.deploy.edge import EdgePort, EdgeReport

_PUT = {"float32": "putFloat", "int32": "putInt", "int64": "putLong", "int8": "put",
        "uint8": "put", "int16": "putShort", "bool": "put"}  # fmt: skip
_SIZES = {"float32": 4, "int32": 4, "int64": 8, "int8": 1, "uint8": 1, "int16": 2, "bool": 1}


def android_page(report: EdgeReport, gpu_lacks: tuple[str, ...]) -> str:
    """Write ``android.md``.

    Args:
        report: Of the model.
        gpu_lacks: Operators that LiteRT's GPU delegate does not have.
    """
    rows = [
        f"| {role} {one.index} | `{one.name}` | {shape_words(one)} |"
        for role, ports in (("input", report.inputs), ("output", report.outputs))
        for one in ports
    ]
    kinds = {one.dtype for one in (*report.inputs, *report.outputs)}
    if not kinds <= set(_PUT):
        return _NO_BUFFERS.format(kinds=", ".join(sorted(kinds - set(_PUT))))
    return _PAGE.format(
        rows="\n".join(rows),
        kotlin=_kotlin(report),
        gpu=_gpu_words(gpu_lacks),
    )


def _gpu_words(lacks: tuple[str, ...]) -> str:
    if not lacks:
        return "The GPU delegate has all operators of this model: try it, and keep the faster."
    return (
        f"The GPU delegate does not have {', '.join(lacks)}: the model would be split between GPU "
        "and CPU, which is often slower than the CPU alone."
    )


def _kotlin(report: EdgeReport) -> str:
    arguments = ", ".join(f"{_name(one)}: {_kotlin_type(one)}" for one in report.inputs)
    buffers = [_buffer(one, "In") for one in report.inputs]
    fill = [_fill(one) for one in report.inputs]
    made = [_buffer(one, "Out") for one in report.outputs]
    ins = ", ".join(f'"{one.name}" to {_name(one)}In' for one in report.inputs)
    outs = ", ".join(f'"{one.name}" to {_name(one)}Out' for one in report.outputs)
    call = f'interpreter.runSignature(mapOf({ins}), mapOf({outs}), "{report.signature}")'
    if not report.signature:
        ordered = ", ".join(f"{_name(one)}In" for one in report.inputs)
        placed = ", ".join(f"{one.index} to {_name(one)}Out" for one in report.outputs)
        call = f"interpreter.runForMultipleInputsOutputs(arrayOf({ordered}), mapOf({placed}))"
    found = [f'    "{one.name}" to {_result(one)},' for one in report.outputs]
    body = [*buffers, *fill, *made, call, "return mapOf(", *found, ")"]
    lines = [f"    fun run({arguments}): Map<String, FloatArray> {{",
             *[f"        {line}" for line in body], "    }"]  # fmt: skip
    return "\n".join(lines)


def _buffer(port: EdgePort, suffix: str) -> str:
    size = math.prod(port.shape) * _SIZES[port.dtype]
    return (
        f"val {_name(port)}{suffix} = "
        f"ByteBuffer.allocateDirect({size}).order(ByteOrder.nativeOrder())"
    )


def _fill(port: EdgePort) -> str:
    put, name = _PUT[port.dtype], _name(port)
    if port.scale:
        limits = "0, 255" if port.dtype == "uint8" else "-128, 127"
        return (
            f"for (v in {name}) {name}In.put(Math.round(v / {port.scale!r}f + "
            f"({port.zero_point})).coerceIn({limits}).toByte())\n        {name}In.rewind()"
        )
    return f"for (v in {name}) {name}In.{put}(v)\n        {name}In.rewind()"


def _result(port: EdgePort) -> str:
    name, count = _name(port), math.prod(port.shape)
    if port.dtype == "float32":
        return (
            f"FloatArray({count}).also {{ {name}Out.rewind(); {name}Out.asFloatBuffer().get(it) }}"
        )
    raw = f"{name}Out.get(i)" if _SIZES[port.dtype] == 1 else f"{name}Out.getInt(4 * i)"
    if port.dtype == "uint8":
        raw = f"(({raw}).toInt() and 255)"
    value = f"({raw} - ({port.zero_point})) * {port.scale!r}f" if port.scale else f"{raw}.toFloat()"
    return f"FloatArray({count}) {{ i -> {value} }}"


def _kotlin_type(port: EdgePort) -> str:
    if port.scale or port.dtype == "float32":
        return "FloatArray"
    return {"int32": "IntArray", "int64": "LongArray", "int16": "ShortArray"}.get(
        port.dtype, "ByteArray"
    )


def _name(port: EdgePort) -> str:
    words = re.split(r"[^A-Za-z0-9]+", port.name.strip(":0123456789 ") or f"port{port.index}")
    first, *rest = [word for word in words if word] or ["port"]
    joined = first[0].lower() + first[1:] + "".join(word.capitalize() for word in rest)
    return joined if joined[0].isalpha() else f"port{joined}"


_NO_BUFFERS = """\
# Android

This model takes or gives {kinds}, for which no code is written here: see
ai.google.dev/edge/litert/android for how an application hands over such values.
"""
_PAGE = """\
# Android

1. Copy `model.tflite` to `app/src/main/assets/model.tflite`.
2. In `app/build.gradle.kts` (1.0.1 or newer):

```kotlin
android {{ androidResources {{ noCompress += "tflite" }} }}
dependencies {{ implementation("com.google.ai.edge.litert:litert:1.0.1") }}
```

3. The model has these inputs and outputs:

| | name | type and shape |
|---|---|---|
{rows}

```kotlin
import android.content.Context
import org.tensorflow.lite.Interpreter
import java.io.FileInputStream
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.nio.channels.FileChannel

class Model(context: Context, threads: Int = 2) : AutoCloseable {{
    private val interpreter = context.assets.openFd("model.tflite").use {{ file ->
        val bytes = FileInputStream(file.fileDescriptor).channel.map(
            FileChannel.MapMode.READ_ONLY, file.startOffset, file.declaredLength)
        Interpreter(bytes, Interpreter.Options().setNumThreads(threads))
    }}

    /** One sample in, all outputs back as real values; call it from a background thread. */
{kotlin}

    override fun close() = interpreter.close()
}}
```

{gpu}
"""
