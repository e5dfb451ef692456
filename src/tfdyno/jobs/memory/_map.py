"""What a traced step holds at a batch: laid out in a child, once."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from tfdyno.catalog.families import keeps_dear
from tfdyno.core.base.codec import from_json, to_json
from tfdyno.core.choose.memory_map import MemoryMap
from tfdyno.core.messages.memory import MEMORY_MAP, MapMemory
from tfdyno.core.messages.wire import fields_of
from tfdyno.jobs.child.worker import run_child
from tfdyno.jobs.choose.trace import Traced, code_digest
from tfdyno.store.cache import default_cache

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tfdyno.core.choose.estimate import Estimate
    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.jobs.choose.predict import Predictor

TIMEOUT_S = 600.0


def memory_map(
    own: Predictor, gpu: Gpu, found: Estimate, progress: Callable[[str], None]
) -> MemoryMap:
    """Return the memory of the step of an estimate, from the cache or from a child.

    Args:
        own: The traced step.
        gpu: The card.
        found: What was estimated on it.
        progress: Called with a line at every stage.

    Raises:
        ToolError: The child failed.
    """
    from tfdyno.model.time.peaks import has_bfloat16

    traced, xla = own.traced, own.execution_on(gpu) == "xla"
    request = MapMemory(
        tensors=traced.trace.tensors,
        mode=traced.trace.workload.mode,
        traced_batch_size=traced.trace.batch_size,
        marker=traced.trace.marker,
        batch_size=found.batch_size,
        execution="xla" if xla else "graph",
        widen=traced.widened is not None and not has_bfloat16(gpu),
        keeps=keeps_dear(gpu),
        pool_bytes=max(0.0, gpu.usable_memory_bytes - found.context_bytes),
        stablehlo=traced.stablehlo_path,
    )

    def make(folder: Path) -> None:
        result = run_child(
            MEMORY_MAP,
            request,
            progress=progress,
            timeout_s=TIMEOUT_S,
            doing=f"laying out the memory of {traced.trace.title}",
        )
        (folder / "map.json").write_bytes(to_json(result))

    folder = default_cache().entry("memory", _key(traced, request), make)
    return from_json((folder / "map.json").read_bytes(), MemoryMap)


def _key(traced: Traced, request: MapMemory) -> str:
    facts = {
        **fields_of(request),
        "stablehlo": traced.trace.stablehlo_sha256,
        "code": code_digest(),
    }
    return hashlib.sha256(to_json(facts)).hexdigest()
