"""Published runs on several GPUs, each with the run on fewer that it is compared with."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from tfdyno.catalog.clusters import cluster_of
from tfdyno.catalog.gpus import find
from tfdyno.core.choose.hardware import Cluster
from tfdyno_truth import tables
from tfdyno_truth.rows import TRUTH, Row

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

NODES = re.compile(r"\((\d+) nodes\)|\(nodes of (\d+)\)")
SUPER_LINEAR = 1.1
HALF = "16-bit graph"
APART = {
    "bridged pair": "NVLink bridges, two GPUs: equal to PCIe in every pair of rows, so the two "
    "were not the bridged ones (inferred)",
    HALF: "tf_cnn_benchmarks in 16 bits without XLA, networks with batch normalisation: "
    "0.5 to 0.8 of what one GPU does, on every card and link alike, 0.9 to 1.0 without batch "
    "normalisation: not the exchange",
    "launch-bound": "CNN batches below 16",
    "super-linear": "over 1.1 times as efficient as the run that it is compared with, which is of "
    "another setting",
}
"""What is judged in a line of its own and not learned from -> why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """The NVLink bridge that cards of a compute capability take."""

    compute_capability: str
    link: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The network of the machines that published runs on several nodes used."""

    gpu: str
    """How the card's name begins."""
    network: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A run and the like run on fewer GPUs."""

    row: Row
    base_step_s: float
    base: Cluster
    cluster: Cluster
    payload_ratio: float
    """Of the gradients' bytes in Keras, where weights are float32, that the program sends."""

    @property
    def efficiency(self) -> float:
        """Measured: the time on fewer GPUs over the time on more."""
        return self.base_step_s / self.row.step_s

    @property
    def apart(self) -> str:
        """Why it is judged in a line of its own; empty for most."""
        row = self.row
        if row.launch_bound:
            return "launch-bound"
        if self.efficiency > SUPER_LINEAR:
            return "super-linear"
        if row.interconnect == "NVLink-bridge" and row.gpus == 2:
            return "bridged pair"
        normalised = not re.match(r"alexnet|vgg", row.model)
        half = row.precision == "mixed_float16" and "use_fp16" in row.notes
        return HALF if half and normalised and row.execution == "graph" else ""

    @property
    def group(self) -> tuple[Hashable, ...]:
        """Rows of one group are averaged before groups are."""
        return (*self.row.group, self.row.gpus, "bridge" in self.row.interconnect)


@lru_cache(maxsize=1)
def bridges() -> tuple[Bridge, ...]:
    """``published/bridges.csv``; raises ``UsageError`` where it is damaged."""
    return tables.read(TRUTH / "published" / "bridges.csv", Bridge)


@lru_cache(maxsize=1)
def networks() -> tuple[Network, ...]:
    """``published/networks.csv``; raises ``UsageError`` where it is damaged."""
    return tables.read(TRUTH / "published" / "networks.csv", Network)


def pairs_of(rows: Iterable[Row]) -> list[Pair]:
    """Training runs on several GPUs, each with the like runs on the fewest."""
    timed = [row for row in rows if row.mode == "train" and row.step_s]
    alike: defaultdict[Hashable, list[Row]] = defaultdict(list)
    for row in timed:
        alike[row.host].append(row)
    found = []
    for row in timed:
        fewest = min(one.gpus for one in alike[row.host])
        if row.gpus == fewest:
            continue
        base = [one for one in alike[row.host] if one.gpus == fewest]
        found.append(
            Pair(
                row=row,
                base_step_s=float(np.median([one.step_s for one in base])),
                base=_cluster(base[0]),
                cluster=_cluster(row),
                payload_ratio=_payload_ratio(row),
            )
        )
    return found


def _cluster(row: Row) -> Cluster:
    gpu, told = find(row.gpu), NODES.search(row.interconnect)
    bridge = ""
    if "bridge" in row.interconnect:
        bridge = next(
            (one.link for one in bridges() if one.compute_capability == gpu.compute_capability), ""
        )
    if not told:
        return cluster_of(gpu, row.gpus, link=bridge)
    each = row.gpus // int(told[1]) if told[1] else int(told[2])
    network = next(one.network for one in networks() if row.gpu.startswith(one.gpu))
    return cluster_of(gpu, row.gpus, network=network, gpus_per_node=each)


def _payload_ratio(row: Row) -> float:
    """Half where the program's gradients are of 16 bits: its weights are, or it says so.

    ``use_fp16`` of tf_cnn_benchmarks casts weights on reading; NVIDIA's BERT runs Apex O2 on
    PyTorch and Horovod's compression on TensorFlow.
    """
    half = row.precision in ("mixed_float16", "mixed_bfloat16")
    sent = "use_fp16" in row.notes or row.architecture in ("bert",)
    return 0.5 if half and sent else 1.0
