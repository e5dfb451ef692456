"""The files that build a TensorRT engine from an ONNX file, where a GPU and TensorRT are."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.core.deploy.export import Signature, TensorInfo

ONNX, PLAN = "model.onnx", "model.plan"
SHELL, PYTHON = "build_engine.sh", "build_engine.py"
LEAST, BEST, MOST = 1, 32, 64
"""Batches of the profile; the engine takes every size between the first and the last."""
OPEN = {LEAST: 1, BEST: 128, MOST: 512}
"""The same for a size that is open beside the batch: words of a text, for example."""


def shape_words(inputs: tuple[TensorInfo, ...], batch: int) -> str:
    """Write ``image:32x28x28x1`` as ``trtexec`` reads it; open sizes beside it as ``OPEN``."""
    return ",".join(f"{one.name}:{'x'.join(map(str, sizes(one, batch))) or '1'}" for one in inputs)


def sizes(one: TensorInfo, batch: int) -> tuple[int, ...]:
    """Return the shape of an input at a batch of the profile."""
    if not one.shape:
        return ()
    first = batch if one.shape[0] is None else one.shape[0]
    return (first, *(OPEN[batch] if size is None else size for size in one.shape[1:]))


def is_dynamic(signature: Signature) -> bool:
    """Return whether the engine needs a profile."""
    return any(None in one.shape for one in signature.inputs)


def shell_script(signature: Signature) -> str:
    """Write ``build_engine.sh``, which builds and times the engine by ``trtexec``."""
    lines = [f"--onnx={ONNX}", f"--saveEngine={PLAN}"]
    if is_dynamic(signature):
        for word, batch in (("min", LEAST), ("opt", BEST), ("max", MOST)):
            lines.append(f"--{word}Shapes={shape_words(signature.inputs, batch)}")
    flags = " \\\n    ".join(shlex.quote(line) for line in lines)
    return f"""#!/bin/sh
# Builds {PLAN} from {ONNX} and prints its latency. Needs an NVIDIA GPU and trtexec of
# TensorRT 8.6 to 10; the engine runs on cards of the compute capability of the one that built it.
# TRTEXEC_FLAGS sets the precision: --fp16 by default, --best also tries INT8 without calibration
# (compare its outputs), empty keeps float32 (TF32 on Ampere and newer; --noTF32 forbids it).
set -eu
cd "$(dirname "$0")"
command -v trtexec >/dev/null || {{
    echo "build_engine: trtexec is not on PATH; it comes with TensorRT, and with NVIDIA's image" >&2
    exit 3
}}
# shellcheck disable=SC2086
trtexec {flags} \\
    ${{TRTEXEC_FLAGS---fp16}} "$@"
"""


def python_script(signature: Signature) -> str:
    """Write ``build_engine.py``, the same by TensorRT's Python API."""
    profiles = [
        (one.name, sizes(one, LEAST), sizes(one, BEST), sizes(one, MOST))
        for one in signature.inputs
        if None in one.shape
    ]
    rows = "".join(f"    {row!r},\n" for row in profiles)
    return f'''"""Builds {PLAN} from {ONNX} with TensorRT's Python API; needs an NVIDIA GPU."""

import sys
from pathlib import Path

import tensorrt as trt

HERE = Path(__file__).parent
PROFILES = [
{rows}]
"""Name of an input, its least, best and largest shape."""


def build(precision: str = "fp16") -> bytes:
    """The engine; precision is fp16 or fp32."""
    logger = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(logger)
    explicit = getattr(trt.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH", None)
    network = builder.create_network(1 << int(explicit) if explicit is not None else 0)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse((HERE / "{ONNX}").read_bytes()):
        sys.exit("\\n".join(str(parser.get_error(i)) for i in range(parser.num_errors)))
    config = builder.create_builder_config()
    if precision == "fp16":
        config.set_flag(trt.BuilderFlag.FP16)
    if PROFILES:
        profile = builder.create_optimization_profile()
        for name, least, best, most in PROFILES:
            profile.set_shape(name, least, best, most)
        config.add_optimization_profile(profile)
    engine = builder.build_serialized_network(network, config)
    if engine is None:
        sys.exit("TensorRT could not build the engine; its log says why")
    return bytes(engine)


if __name__ == "__main__":
    (HERE / "{PLAN}").write_bytes(build(*sys.argv[1:2]))
    print("wrote", HERE / "{PLAN}")
'''
