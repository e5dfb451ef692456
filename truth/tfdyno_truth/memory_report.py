"""The section on memory of the accuracy pages."""

from __future__ import annotations

from string import ascii_lowercase
from typing import TYPE_CHECKING

from tfdyno.catalog.time_model import memory_model
from tfdyno_truth import cases, cells, own_memory, own_peaks
from tfdyno_truth.memory_calls import FLOOR
from tfdyno_truth.rows import GIB, TRUTH
from tfdyno_truth.sections import Section, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tfdyno_truth.memory import Kind, MemoryScores
    from tfdyno_truth.memory_calls import Call, Tally

REASONS = TRUTH / "memory_reasons.csv"
WORST_STEPS = 10
MEMORY = """\
Measured on a GPU were ten steps on an H200, below; elsewhere memory is unverified on a device: no
source says what TensorFlow held. What is known is which steps fitted: every published run of
TensorFlow did, and one source names the largest batches. Whether the estimate says the same is
judged by its best figure, with context and allocator, against the card's usable memory: what
decides its largest batch. *In doubt* are those where it answers "should fit" or "may not fit"
until the batch is compiled.

{share} of {calls:,} calls are right ({group_share} averaged by group; the floor is {floor:.0%}).
That is less than it seems: {fitting:,} of the steps did fit, so whoever always says so is right
for {always}. Of {beyond} steps that did not, the estimate names {beyond_right}; all are of one
program of 2018, and nobody else publishes what did not fit."""
WRONG = """\
Furthest from the card's limit first, each workload on a card once. *Needs* is the best figure with
its range; *has* is what the card leaves to a program. Reasons: below and in
`truth/memory_reasons.csv`."""
PUBLISHED = """\
Of the whole process as NVML shows it, of what PyTorch's allocator had reserved (nvidia-smi: an
upper bound of the need), and of what its tensors took. The three are never mixed and have no
floor. The factor of PyTorch without fusion was taken from the last of them, and the context from
the first."""
OWN = """\
Executed for real on a CPU that TensorFlow's own BFC allocator serves (`truth/own/README.md`): the
peak of all tensors of a step, predicted against allocated. *Tuned*: the rules were worked out on
them; *seen once*: their first look led to changes; *held out*: nothing was changed since.
{inside} steps lie inside the range that an estimate gives."""
WORST_OWN = "Worst first, with the cause where it is known (`truth/own/graph_memory_reasons.csv`)."
WORDS = {
    "nvml": ("whole process, NVML", "with context and allocator"),
    "reserved": ("reserved, nvidia-smi", "with context and allocator"),
    "allocated": ("allocated to tensors", "buffers and workspaces"),
}


def sections(found: MemoryScores) -> Iterator[Section]:
    """Whether steps fit, which calls are wrong, published figures, and graph mode's own."""
    yield fits(found)
    yield from wrong(found)
    yield own_peaks.section(own_peaks.peaks())
    yield published(found)
    yield from graph_mode()


def fits(found: MemoryScores) -> Section:
    """How many calls are right."""
    whole = found.tallies[0]
    beyond = [call for call in found.calls if not call.fits]
    return Section(
        title="Memory",
        prose=MEMORY.format(
            share=cells.share(whole.share),
            calls=whole.calls,
            group_share=cells.share(whole.group_share),
            floor=FLOOR,
            fitting=whole.fitting,
            always=cells.share(whole.fitting / whole.calls),
            beyond=len(beyond),
            beyond_right=sum(call.right for call in beyond),
        ),
        table=Table(
            headings=("calls", "number", "did fit", "right", "share", "groups", "mean of groups",
                      "in doubt", "right without doubt"),
            rows=tuple(map(_tally, found.tallies)),
        ),
    )  # fmt: skip


def _tally(one: Tally) -> tuple[str, ...]:
    without_doubt = f"{one.certain_right:,} of {one.certain:,}" if one.certain else "–"
    return (
        one.label,
        f"{one.calls:,}",
        f"{one.fitting:,}",
        f"{one.right:,}",
        cells.share(one.share),
        f"{one.groups:,}",
        cells.share(one.group_share),
        f"{one.calls - one.certain:,}",
        without_doubt,
    )


def wrong(found: MemoryScores) -> Iterator[Section]:
    """Every wrong call with its bytes, then the reasons."""
    known = cases.read_reasons(REASONS)
    why = {call: next((r for r in known if r.fits(call.row)), None) for call in found.wrong}
    letters = dict(zip(dict.fromkeys(filter(None, why.values())), ascii_lowercase, strict=False))
    rows = []
    for call, reason in why.items():
        letter = letters[reason] if reason else cases.UNEXPLAINED
        rows.append(_wrong(call, letter, found.wrong_rows[call]))
    yield Section(
        title="Wrong about memory",
        prose=WRONG,
        table=Table(
            headings=("workload", "card", "the truth", "why", "rows", "needs GiB", "has GiB"),
            rows=tuple(rows),
            words=4,
        ),
        below=True,
    )
    told = tuple((letter, one.reason, one.source) for one, letter in letters.items())
    table = Table(headings=("why", "reason", "what shows it"), rows=told, words=3)
    yield Section(title="Why memory is wrong", table=table, below=True)


def _wrong(call: Call, letter: str, rows: int) -> tuple[str, ...]:
    row, needs = call.row, call.device_bytes
    what = f"{row.function}, batch {call.batch_size:,}, {row.precision}, {row.mode}"
    return (
        f"{what}, {row.execution}",
        row.gpu,
        call.about,
        letter,
        f"{rows:,}",
        f"{needs.best / GIB:.2f} ({needs.low / GIB:.2f}–{needs.high / GIB:.2f})",
        f"{call.usable_bytes / GIB:.2f}",
    )


def published(found: MemoryScores) -> Section:
    """PyTorch's published figures by kind."""
    return Section(
        title="Published memory of PyTorch",
        prose=PUBLISHED,
        table=Table(
            headings=("measured", "predicted", "rows", "groups", "mean", "median",
                      "predicted / measured", "above it by 5 %"),
            rows=tuple(_kind(one) for name in WORDS for one in found.kinds if one.name == name),
            words=2,
        ),
        below=True,
    )  # fmt: skip


def _kind(one: Kind) -> tuple[str, ...]:
    errors = cells.shares(one.mean, one.median)
    numbers = (f"{one.rows:,}", f"{one.groups:,}", *errors, f"{one.bias:.2f}")
    return (*WORDS[one.name], *numbers, f"{one.above:.0%}")


def graph_mode() -> Iterator[Section]:
    """Graph mode against TensorFlow's allocator: the parts, then the worst steps."""
    steps, allowed = own_memory.read_steps(), memory_model().parameters["peak_graph"]
    parts = tuple(own_memory.parts(steps, allowed.low, allowed.high))
    yield Section(
        title="Graph mode against TensorFlow's allocator",
        prose=OWN.format(inside=f"{round(parts[0].within * parts[0].steps)} of {parts[0].steps}"),
        table=Table(
            headings=("steps", "number", "mean error", "median"),
            rows=tuple((one.label, f"{one.steps}", *cells.shares(one.mean, one.median))
                       for one in parts),
        ),
        below=True,
    )  # fmt: skip
    yield Section(
        title=f"The {WORST_STEPS} worst in graph mode",
        prose=WORST_OWN,
        table=Table(
            headings=("step", "part", "reason", "error"),
            rows=tuple(
                (f"{one.model}, batch {one.batch_size:,}, {one.policy}, {one.mode}", one.part,
                 one.reason or cases.UNEXPLAINED, f"{one.error:+.1%}")
                for one in steps[:WORST_STEPS]
            ),
            words=3,
        ),
        below=True,
    )  # fmt: skip
