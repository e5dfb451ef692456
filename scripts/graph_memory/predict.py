"""Predicts one measured case as the tool would; started by score.py.

    python -m graph_memory.predict MODEL MODE POLICY BATCH

Traces the model on the JAX backend, with no weights, and prints the byte counts as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfdyno.core.choose.workload import TensorSpec

ENVIRONMENT = {"KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
ZOO = Path(__file__).parents[2] / "truth" / "own" / "graph_memory_zoo.py"


def main(model: str, mode: str, policy: str, batch: str) -> None:
    """Print what graph mode is predicted to hold."""
    os.environ.update(ENVIRONMENT)
    from tfdyno.kernels.memory.graph_memory import GraphMemory
    from tfdyno.kernels.records import Sizes
    from tfdyno.runtime.trace.stablehlo import read_graph, read_module

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "step.mlir"
        tensors = _traced(model, mode, policy, int(batch), path)
        graph = read_graph(read_module(path))
    memory = GraphMemory(graph, Sizes(int(batch), 0), tensors, mode)
    replayed = memory.allocations(growth=True)
    print(
        json.dumps(
            {
                "tensor_peak_bytes": memory.plan().peak_at(int(batch)),
                "in_use_peak_bytes": replayed.in_use_peak_bytes,
                "footprint_bytes": replayed.footprint_bytes,
                "one_region_bytes": memory.allocations().footprint_bytes,
            }
        )
    )


def _traced(model: str, mode: str, policy: str, batch: int, path: Path) -> tuple[TensorSpec, ...]:
    from tfdyno.core.choose.workload import Trace, Workload
    from tfdyno.core.messages.trace import TraceStep
    from tfdyno.runtime.trace.child import trace_jax

    workload = Workload(
        kind="function",
        reference=f"{ZOO}:{model}",
        mode="train" if mode == "train" else "infer",
        precision=policy,
    )
    request = TraceStep(
        workload=workload, batch_size=batch, path_reason="", stablehlo=path, hlo=path
    )
    found = trace_jax(request, lambda _: None).trace
    assert isinstance(found, Trace)
    return found.tensors


if __name__ == "__main__":
    main(*sys.argv[1:])
