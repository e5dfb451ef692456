"""The input pipeline as a profile shows it: its stages with what each took."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.core.measure.step_facts import InputFacts, StageFacts
from tfdyno.profile.spans import own_times
from tfdyno.profile.steps import is_host

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tfdyno.profile.lines import Profile

_ITERATOR = re.compile(r"^Iterator::(?:Root|Model)(::.+)$")
_COUNT = re.compile(r"\[\d+\]")
_VERSION = re.compile(r"V\d+$")
_PYTHON = re.compile(r"(^|/)?(Eager)?PyFunc\w*:(Eager)?PyFunc")
_AHEAD = ("Prefetch", "Parallel")
"""Stages that make results ahead of who asks for them, if they are the last."""
_KINDS = {
    "ParallelMap": "map", "MapAndBatch": "map", "ParallelInterleave": "interleave",
    "ParallelBatch": "batch", "PaddedBatch": "padded_batch", "ForeverRepeat": "repeat",
    "FiniteRepeat": "repeat", "TensorSlice": "from_tensor_slices", "Generator": "from_generator",
    "FlatMap": "flat_map", "MemoryCache": "cache", "FileCache": "cache",
    "TFRecord": "TFRecordDataset",
}  # fmt: skip
"""Methods of ``tf.data.Dataset`` by the names of what makes them; others are the name in lower."""


def input_facts(profile: Profile, edges_s: NDArray[np.float64]) -> InputFacts | None:
    """Return stages, sources first, with the seconds per step that each spent without its inputs.

    A stage's own time holds what it waits for: a buffer that is empty, functions that it runs on
    other threads. It waits no longer than what it waits for takes, so the stage with the longest
    time is the slow one all the same. None where the profile shows no pipeline.
    """
    own: dict[str, float] = {}
    runs_python = False
    for plane in profile.planes:
        if not is_host(plane):
            continue
        paths = [_path(name) for name in (*plane.names, "")]
        is_stage = np.array([bool(path) for path in paths])
        for line in plane.lines:
            if line.name.startswith("tf_data"):
                names = {plane.names[at] for at in np.unique(line.name_index) if at >= 0}
                runs_python |= any(_PYTHON.search(name) for name in names)
            inside = is_stage[line.name_index]
            inside &= (line.begin_s >= edges_s[0]) & (line.begin_s < edges_s[-1])
            order = np.flatnonzero(inside)
            order = order[np.lexsort((-line.end_s[order], line.begin_s[order]))]
            seconds = own_times(line.begin_s[order], line.end_s[order])
            for at, each in zip(line.name_index[order].tolist(), seconds.tolist(), strict=True):
                own[paths[at]] = own.get(paths[at], 0.0) + each
    if not own:
        return None
    steps = edges_s.size - 1
    ordered = sorted(own, key=lambda path: (-path.count("::"), path))
    stages = tuple(_stage(path, own[path] / steps, runs_python) for path in ordered)
    return InputFacts(
        batch_s=(),
        stages=stages,
        prefetches=stages[-1].title.startswith(_AHEAD),
        is_cached=any(stage.kind == "cache" for stage in stages),
    )


def _path(name: str) -> str:
    """Return ``::Map::BatchV2`` of ``Iterator::Root::Map::ForeverRepeat[0]::BatchV2``."""
    match = _ITERATOR.match(name)
    return _COUNT.sub("", match[1]) if match else ""


def _stage(path: str, own_s: float, runs_python: bool) -> StageFacts:
    name = _VERSION.sub("", path.rpartition("::")[2])
    kind = _KINDS.get(name, name.lower())
    return StageFacts(
        title=name,
        kind=kind,
        own_s=own_s,
        parallel_calls=-1 if name.startswith("Parallel") else 1,
        runs_python=kind == "from_generator" or (runs_python and kind == "map"),
    )
