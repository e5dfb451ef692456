"""Sections of the accuracy pages on runs on several GPUs, the worst first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tfdyno_truth import cells
from tfdyno_truth.scaling import ALL, FREE, LEFT_OUT, NODES
from tfdyno_truth.scaling_rows import APART, networks
from tfdyno_truth.scaling_width import COVERAGE, ONE_NODE, SEVERAL_NODES
from tfdyno_truth.sections import Section, Table
from tfdyno_truth.ways import SEEN, WAYS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno_truth.scaling import ScalingScores, Spread, Worst

METHOD = """\
Efficiency is the time of a run on the fewest GPUs, mostly one, over its time on more, at the same
batch for each (weak scaling). Errors are relative, averaged in a group of one model, card,
precision and number of GPUs first. Everything that the product has is in: PCIe with and without
peer-to-peer, NVLink, NVSwitch, bridges of four and eight cards, nodes on {networks}. {free}
constants for all of them, none of a card or a row: {constants}."""
HELD = """\
The interval that `tfdyno estimate --replicas` gives of an efficiency is to hold {aim:.0%}. Of runs
of a kind of model that neither the fit nor the width has seen it holds {model:.0%}, of runs on such
cards {gpu:.0%}{nodes}. The delay of the exchange may be
off by a factor, {one:.1f} either way on one node and {several:.1f} on several: the interval is wide
where the exchange decides, and narrow where it does not. Every fit begins at its priors and runs
until it has converged: no fold has anything of another fit."""
LIMITS = """\
Rows of TensorFlow as a graph are judged with what those programs did (Horovod and tf_cnn_benchmarks
send gradients in buckets while the backward pass runs). For tf.distribute, which packs all
gradients, estimates hide nothing: "as if in one pack" is what they would say of the same runs,
which is not what ran. No published run of tf.distribute is among these. Of several nodes most rows
accumulate gradients, which exchange once in many batches: that of every batch is little tried."""
WORST = """\
All rows of one workload on so many cards, predicted with the kind of model left out."""
BANDS = """\
Share of the runs that the interval holds, its width in parts of what one card does, and the width
with 20 times what a run lies outside; widths are from the other kinds of model, or other cards."""
OUT = """\
Not learned from and not counted above; errors with the kind of model left out."""


def answer(found: ScalingScores) -> str:
    """The errors on what is new, in one sentence."""
    model, gpu = (found.spreads[name][ALL] for name in LEFT_OUT)
    return (
        f"Weak-scaling efficiency on several GPUs, {model.groups} groups: of a kind of model that "
        f"the fit has not seen, error median {model.median:.1%}, mean {model.mean:.1%}; on a card "
        f"that it has not seen, median {gpu.median:.1%}, mean {gpu.mean:.1%}."
    )


def sections(found: ScalingScores) -> Iterator[Section]:
    """Scores, worst cases, and what is judged apart."""
    told = ", ".join(f"{name} {value:.3g}" for name, value in found.constants.items())
    joined = ", ".join(f"{one.gpu}: {one.network}" for one in networks())
    method = METHOD.format(networks=joined, free=len(FREE), constants=told)
    held = HELD.format(
        aim=COVERAGE,
        one=math.exp(found.constants[ONE_NODE]),
        several=math.exp(found.constants.get(SEVERAL_NODES, 0.0)),
        **{name: found.spreads[name][ALL].coverage for name in LEFT_OUT},
        nodes=_held_on_nodes(found),
    )
    prose = "\n\n".join((answer(found), method, held, LIMITS))
    yield Section(title="Several GPUs", prose=prose, table=_scores(found))
    yield Section(
        title=f"The {len(found.worst)} worst on several GPUs",
        prose=WORST,
        table=Table(
            headings=("workload", "GPUs", "link", "source", "measured", "predicted"),
            rows=tuple(_worst(one) for one in found.worst),
            words=4,
        ),
        below=True,
    )
    yield Section(
        title="Intervals on several GPUs",
        prose=BANDS,
        table=Table(
            headings=("how", "predicted efficiency", "held", "width", "score", "runs"),
            rows=tuple(_held(found)),
            words=2,
        ),
        below=True,
    )
    yield Section(
        title="Runs on several GPUs judged apart",
        prose=OUT,
        table=Table(
            headings=("which", "why", *_ERRORS),
            rows=tuple((why, APART[why], *_errors(one)) for why, one in found.apart.items()),
            words=2,
        ),
        below=True,
    )


def _held_on_nodes(found: ScalingScores) -> str:
    """Behind what is held of all; empty where no run is on several nodes."""
    spreads = [found.spreads[name].get(NODES) for name in LEFT_OUT]
    shares = [f"{one.coverage:.0%}" for one in spreads if one]
    return f"; of those on several nodes {' and '.join(shares)}" if shares else ""


_ERRORS = ("mean", "median", "90 % below", "groups")
_NUMBERS = (*_ERRORS, "held")


def _errors(one: Spread) -> tuple[str, ...]:
    return (*cells.shares(one.mean, one.median, one.p90), f"{one.groups:,}")


def _numbers(one: Spread) -> tuple[str, ...]:
    return (*_errors(one), "" if one.coverage is None else f"{one.coverage:.0%}")


def _held(found: ScalingScores) -> Iterator[tuple[str, ...]]:
    for way, each in found.bands.items():
        for band, one in each.items():
            numbers = (f"{one.coverage:.0%}", f"{one.width:.2f}", f"{one.score:.2f}")
            yield (WAYS[way].title, band, *numbers, f"{one.runs:,}")


def _scores(found: ScalingScores) -> Table:
    labels = tuple(found.spreads[LEFT_OUT[0]])
    rows = tuple(
        (SEEN if name == SEEN else WAYS[name].title, label, *_numbers(spreads[label]))
        for label in labels
        for name, spreads in found.spreads.items()
        if label in spreads
    )
    return Table(headings=("how", "runs", *_NUMBERS), rows=rows, words=2)


def _worst(one: Worst) -> tuple[str, ...]:
    row = one.pair.row
    return (
        f"{row.model}, batch {row.batch_size:,}, {row.precision}, {row.execution}",
        f"{row.gpus} × {row.gpu}",
        row.interconnect,
        row.source,
        f"{one.measured:.2f}",
        f"{one.predicted:.2f}",
    )
