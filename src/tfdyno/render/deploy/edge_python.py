"""A Python script that runs a model on a Raspberry Pi, a Jetson or any Linux board."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.words.deploy.edge import shape_words

if TYPE_CHECKING:
    from tfdyno.core.deploy.edge import EdgeReport


def run_script(report: EdgeReport) -> str:
    """Write ``run_model.py``, which needs ai-edge-litert and numpy and nothing of tfdyno."""
    ports = [f"  {one.name}: {shape_words(one)}" for one in report.inputs]
    made = [f"  {one.name}: {shape_words(one)}" for one in report.outputs]
    return (
        _SCRIPT.replace("@INPUTS@", "\n".join(ports))
        .replace("@OUTPUTS@", "\n".join(made))
        .replace("@SIGNATURE@", repr(report.signature))
    )


_SCRIPT = '''\
"""Run model.tflite, which lies beside this file:  python run_model.py [--data INPUTS.npz]

Needs:  pip install ai-edge-litert numpy

Inputs
@INPUTS@
Outputs
@OUTPUTS@
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter

SIGNATURE = @SIGNATURE@


def ports(interpreter):
    """Names to details of inputs and outputs, by the signature where the file has one."""
    if SIGNATURE:
        runner = interpreter.get_signature_runner(SIGNATURE)
        return runner.get_input_details(), runner.get_output_details()
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    return {one["name"]: one for one in inputs}, {one["name"]: one for one in outputs}


def encode(values, details):
    """Real values to what the model takes."""
    scale, zero = details["quantization"]
    if scale and np.asarray(values).dtype.kind == "f":
        limits = np.iinfo(details["dtype"])
        values = np.clip(np.rint(values / scale) + zero, limits.min, limits.max)
    return np.asarray(values).astype(details["dtype"])


def decode(values, details):
    """What the model gives to real values."""
    scale, zero = details["quantization"]
    return (values.astype(np.float32) - zero) * np.float32(scale) if scale else values


def example(details):
    """Floats from 0 to 1, and zeros where integers stand for something."""
    shape = [abs(size) for size in details["shape_signature"]]
    is_real = np.issubdtype(details["dtype"], np.floating) or details["quantization"][0]
    return np.random.default_rng(0).random(shape, np.float32) if is_real else np.zeros(shape, int)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", help=".npz with an array for each input, batch first")
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--calls", type=int, default=100)
    given = parser.parse_args()
    model = str(Path(__file__).parent / "model.tflite")
    interpreter = Interpreter(model, num_threads=given.threads)
    inputs, outputs = ports(interpreter)
    data = np.load(given.data) if given.data else {}
    for name, details in inputs.items():
        values = encode(data[name] if name in data else example(details), details)
        if list(values.shape) != list(details["shape"]):
            interpreter.resize_tensor_input(details["index"], values.shape)
        details["values"] = values
    interpreter.allocate_tensors()
    times = []
    for _ in range(given.calls + 5):
        began = time.perf_counter()
        for details in inputs.values():
            interpreter.set_tensor(details["index"], details["values"])
        interpreter.invoke()
        found = {name: interpreter.get_tensor(one["index"]) for name, one in outputs.items()}
        times.append(time.perf_counter() - began)
    for name, details in outputs.items():
        print(name, decode(found[name], details))
    print(f"median {statistics.median(times[5:]) * 1e3:.3f} ms, {given.threads} threads")


if __name__ == "__main__":
    main()
'''
