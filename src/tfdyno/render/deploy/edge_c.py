"""A model as an array of C, and the start of a program for a microcontroller."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tfdyno.core.base.units import format_bytes
from tfdyno.words.deploy.edge import shape_words

if TYPE_CHECKING:
    from collections.abc import Collection

    from tfdyno.core.deploy.edge import EdgePort, EdgeReport

_PER_LINE = 12
_RESOLVER = {
    "L2_POOL_2D": "L2Pool2D", "PADV2": "PadV2", "CUMSUM": "CumSum", "BATCH_MATMUL": "BatchMatMul",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTM",
}  # fmt: skip
"""Where the name of tflite-micro does not follow from that of the schema."""
_ARENA_STEP = 1024
_C_TYPES = {
    "float32": "float", "int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t",
    "int32": "int32_t", "int64": "int64_t", "bool": "bool",
}  # fmt: skip


def model_source(data: bytes) -> str:
    """Write ``model_data.cc``: the bytes of the file, aligned as LiteRT wants them."""
    lines = [
        "  " + ", ".join(f"0x{byte:02x}" for byte in data[start : start + _PER_LINE]) + ","
        for start in range(0, len(data), _PER_LINE)
    ]
    return "\n".join([
        '#include "model_data.h"', "",
        f"// {len(data)} bytes. const: it stays in flash.",
        "alignas(16) const unsigned char g_model_data[] = {", *lines, "};",
        f"const unsigned int g_model_data_len = {len(data)};", "",
    ])  # fmt: skip


def model_header() -> str:
    """Write ``model_data.h``."""
    return "\n".join([
        "#ifndef MODEL_DATA_H_", "#define MODEL_DATA_H_", "",
        "extern const unsigned char g_model_data[];",
        "extern const unsigned int g_model_data_len;", "",
        "#endif  // MODEL_DATA_H_", "",
    ])  # fmt: skip


def bytes_of(source: str) -> bytes:
    """Return what an array of ``model_source`` holds, read back from its text."""
    inside = source.partition("= {")[2].partition("};")[0]
    return bytes(int(one, 16) for one in re.findall(r"0x([0-9a-f]{2})", inside))


def micro_source(report: EdgeReport, memory_bytes: int, *, lacks: Collection[str] = ()) -> str:
    """Write ``micro_main.cc``: load the model and run it, with just the operators that it needs.

    Args:
        report: Of the model.
        memory_bytes: Expected need of the arena.
        lacks: Operators that its runtime does not have.
    """
    arena = -(-int(memory_bytes * 1.2) // _ARENA_STEP) * _ARENA_STEP
    kinds = report.need.kinds
    adds = "\n".join(
        f"  // {kind}: LiteRT for Microcontrollers has none: it cannot run there"
        if kind in lacks
        else f"  resolver.Add{resolver_name(kind)}();"
        for kind in kinds
    )
    return _MICRO.format(
        adds=adds, arena=arena, count=len(kinds), expected=format_bytes(memory_bytes),
        ports="\n".join(
            [f"// in  {one.index}: {one.name}: {shape_words(one)}" for one in report.inputs]
            + [f"// out {one.index}: {one.name}: {shape_words(one)}" for one in report.outputs]
        ),
        set_input=_set_input(report.inputs[0]),
        get_output=_get_output(report.outputs[0]),
    )  # fmt: skip


def resolver_name(kind: str) -> str:
    """Write ``DEPTHWISE_CONV_2D`` as ``DepthwiseConv2D``, as tflite-micro's resolver calls it."""
    if kind in _RESOLVER:
        return _RESOLVER[kind]
    joined = "".join(word.capitalize() for word in kind.split("_"))
    return re.sub(r"(\d)d", lambda match: f"{match[1]}D", joined)


def _set_input(port: EdgePort) -> str:
    kind = _C_TYPES.get(port.dtype, "float")
    if not port.scale:
        return f"  {kind}* in = interpreter.typed_input_tensor<{kind}>({port.index});\n  in[0] = 0;"
    return (
        f"  {kind}* in = interpreter.typed_input_tensor<{kind}>({port.index});\n"
        f"  // q = value / {port.scale!r} + ({port.zero_point}), kept within its type\n"
        f"  in[0] = static_cast<{kind}>(0.0f / {port.scale!r}f + ({port.zero_point}));"
    )


def _get_output(port: EdgePort) -> str:
    kind = _C_TYPES.get(port.dtype, "float")
    head = f"  const {kind}* out = interpreter.typed_output_tensor<{kind}>({port.index});\n"
    if not port.scale:
        return head + "  const float value = static_cast<float>(out[0]);"
    return head + f"  const float value = (out[0] - ({port.zero_point})) * {port.scale!r}f;"


_MICRO = """\
// Needs tflite-micro (github.com/tensorflow/tflite-micro) and model_data.h/.cc beside it.
{ports}
#include "model_data.h"
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"

// Expected {expected}; interpreter.arena_used_bytes() says what it took: set it to that.
constexpr int kArenaBytes = {arena};
alignas(16) static uint8_t arena[kArenaBytes];

int RunOnce() {{
  static tflite::MicroMutableOpResolver<{count}> resolver;
{adds}
  static tflite::MicroInterpreter interpreter(
      tflite::GetModel(g_model_data), resolver, arena, kArenaBytes);
  if (interpreter.AllocateTensors() != kTfLiteOk) return 1;
{set_input}
  if (interpreter.Invoke() != kTfLiteOk) return 2;
{get_output}
  (void)value;
  return 0;
}}
"""
