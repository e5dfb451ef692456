"""Measured all-reduces on one node against the ring that estimates take over the card's link."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tfdyno.catalog.links import default_link
from tfdyno.model.time.scaling import ring_all_reduce_s
from tfdyno_truth.product_rows import FOLDER, GB300, card
from tfdyno_truth.sections import Section, Table

MIB = 2**20
BANDS = {"below 256 KiB": (0, MIB // 4), "256 KiB to 4 MiB": (MIB // 4, 4 * MIB),
         "4 to 64 MiB": (4 * MIB, 64 * MIB + 1), "above 64 MiB": (64 * MIB + 1, 2**50)}  # fmt: skip
PROSE = """\
All-reduces of 2, 4 and 8 cards over NVLink (nccl-tests, one process, launched by the host), from
{source}, against the ring of `tfdyno.model.time.scaling` with the bandwidth and the latency of the
link's row in `links.csv`: median of predicted over measured, less one. Gradients travel in buckets
of 25 MB or in one pack. Below 4 MiB the ring takes longer than what ran, by some ten
microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduces:
    """Those of one number of cards of a kind."""

    gpu: str
    ranks: int
    link: str
    bias: dict[str, float]
    """Band of message sizes -> median signed error."""


def read_all_reduces() -> tuple[AllReduces, ...]:
    """By card and number, of the cards that the catalogue has and that meet over NVLink."""
    found: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
    with gzip.open(FOLDER / "all_reduces.csv.gz", "rt", newline="") as file:
        for row in csv.DictReader(file):
            key = row["gpu"], int(row["ranks"])
            found[key].append((float(row["message_bytes"]), float(row["time_us"]) * 1e-6))
    judged = (_judged(*key, rows) for key, rows in sorted(found.items()) if key[0] != GB300)
    return tuple(one for one in judged if one.link.startswith("nvlink"))


def section(source: str) -> Section:
    """Errors by size of the message."""
    rows = tuple(
        (one.gpu, str(one.ranks), one.link, *(f"{one.bias[band]:+.0%}" for band in BANDS))
        for one in read_all_reduces()
    )
    table = Table(headings=("card", "cards", "link", *BANDS), rows=rows, words=3)
    return Section(title="All-reduces", prose=PROSE.format(source=source), table=table, below=True)


def _judged(gpu: str, ranks: int, rows: list[tuple[float, float]]) -> AllReduces:
    link = default_link(card(gpu), ranks)
    sizes, seconds = np.array(rows).T
    ring = [
        ring_all_reduce_s(
            size, ranks, bus_bytes_per_s=link.bus_bytes_per_s, latency_s=link.latency_s
        )
        for size in sizes.tolist()
    ]
    signed = np.array(ring) / seconds - 1.0
    return AllReduces(
        gpu=gpu,
        ranks=ranks,
        link=link.slug,
        bias={
            band: float(np.median(signed[(sizes >= low) & (sizes < high)]))
            for band, (low, high) in BANDS.items()
        },
    )
