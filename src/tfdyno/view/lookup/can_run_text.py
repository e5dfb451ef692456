"""Which TensorFlow wheels run on which GPUs, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.choose.software import REFUSING
from tfdyno.view.base.text import WIDTH, paint, pairs, shorten, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.choose.hardware import Gpu
    from tfdyno.core.choose.software import WheelSupport

MARKS = {"native": "✓", "jit": "~", "graph": "~*", "fails": "✗*", "cannot": "✗", "unknown": "?"}
_STYLES = {
    "native": "green", "jit": "yellow", "graph": "yellow", "fails": "red", "cannot": "red",
    "unknown": "dim",
}  # fmt: skip
_KERNELS = {
    "sass": "machine code",
    "jit": "PTX, compiled by the driver at first use",
    "NO": "nothing that this card accepts",
    "-": "none of this kind",
}
_ANSWERS = {
    "native": "Yes: {name} runs TensorFlow {release} at once.",
    "jit": "Yes, after a first start that compiles kernels: {name} on TensorFlow {release}.",
    "graph": "Only in graph execution: {name} on TensorFlow {release}. XLA, the default of fit in "
    "Keras 3, fails there.",
    "fails": "Hardly: {name} on TensorFlow {release}.",
    "cannot": "No: {name} cannot run TensorFlow {release}.",
    "unknown": "Not known: nobody took the wheel of TensorFlow {release} apart for {name}.",
}
_KEEP = "keep the result: CUDA_CACHE_PATH on a disk that stays, CUDA_CACHE_MAXSIZE=4294967296"
_SLOW_START = f"the first start takes minutes; {_KEEP}"
_SLOWER_START = (
    f"about 0.2 s longer for each kind of elementwise kernel (78 took 20 s on an H200); {_KEEP}"
)


MOST_SHOWN = 60
"""Characters of the names of cards."""
LEGEND = (
    "✓ machine code for every kernel   ~ the driver compiles some at first use\n"
    "~* that, and its XLA, the default of fit in Keras 3, fails: graph execution alone\n"
    "✗ no code that the card accepts   ✗* its CUDA libraries are older than the card\n"
    "? not examined.   Official Linux wheels, taken apart."
)


def can_run_text(
    gpu: Gpu, found: WheelSupport, *, aged: str = "", width: int = WIDTH, colour: bool = False
) -> str:
    """Return one pair: the answer, what is in the wheel, what else is needed.

    Args:
        gpu: The card.
        found: How the wheel runs on it.
        aged: Why the tables may be older than the release, in a sentence; empty: they are not.
        width: Columns of the screen.
        colour: Whether to paint.
    """
    verdict = found.outcome
    answer = _ANSWERS[verdict].format(name=gpu.name, release=found.tensorflow)
    mark = _mark(verdict, colour)
    known = found.verdict != "unknown"
    lines = [
        ("because", found.detail),
        ("library", _KERNELS.get(found.library_kernels, "") if known else ""),
        ("elementwise", _KERNELS.get(found.elementwise_kernels, "") if known else ""),
        ("driver", f"{found.driver_linux} or later on Linux" if found.driver_linux else ""),
        ("first start", _first_start(found)),
        ("XLA", " ".join(found.known_faults)),
        ("fix", _fix(found)),
        ("tables", aged),
        ("source", found.source),
    ]
    filled = wrapped(answer, width=width, first="   ", rest="   ").strip()
    head = f"{mark}  {paint(filled, 'bold', colour=colour)}"
    return f"{head}\n{pairs(lines, width=width)}"


def _first_start(found: WheelSupport) -> str:
    if found.outcome not in ("jit", "graph"):
        return ""
    return _SLOWER_START if found.library_kernels == "sass" else _SLOW_START


def matrix_text(
    releases: Sequence[str],
    rows: Sequence[tuple[str, Sequence[str], Sequence[str]]],
    *,
    without: Sequence[str] = (),
    merge: bool = False,
    aged: str = "",
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """Return a row per compute capability, a column per release.

    Args:
        releases: TensorFlow releases, oldest first.
        rows: Compute capability, names of cards, verdicts.
        without: Cards and boards that no wheel runs on.
        merge: Whether releases with the same verdicts throughout share a column.
        aged: Why the tables may be older than a release, in a sentence; empty: they are not.
        width: Columns of the screen.
        colour: Whether to paint the marks.
    """
    columns = _merged(releases, rows) if merge else [(one, n) for n, one in enumerate(releases)]
    cells = [
        [
            capability,
            *(_mark(verdicts[n], colour) for _, n in columns),
            shorten(", ".join(names), MOST_SHOWN),
        ]
        for capability, names, verdicts in rows
    ]
    head = ["GPU", *(name for name, _ in columns), "such as"]
    parts = [table(head, cells, width=width, elastic=len(head) - 1, colour=colour), LEGEND]
    if without:
        said = f"No CUDA wheel for their processors: {', '.join(without)}."
        parts.insert(1, wrapped(said, width=width))
    if aged:
        parts.append(wrapped(aged, width=width))
    return "\n\n".join(parts)


def _merged(
    releases: Sequence[str], rows: Sequence[tuple[str, Sequence[str], Sequence[str]]]
) -> list[tuple[str, int]]:
    """Name of each column and the number of the release that it stands for."""
    groups: list[list[int]] = []
    for n in range(len(releases)):
        is_same = groups and all(one[2][n] == one[2][groups[-1][0]] for one in rows)
        if is_same:
            groups[-1].append(n)
        else:
            groups.append([n])
    return [("–".join(dict.fromkeys((releases[one[0]], releases[one[-1]]))), one[0])
            for one in groups]  # fmt: skip


def _mark(verdict: str, colour: bool) -> str:
    return paint(MARKS[verdict], _STYLES[verdict], colour=colour)


def _fix(found: WheelSupport) -> str:
    if found.outcome == "graph":
        return "model.compile(..., jit_compile=False)"
    if found.outcome not in REFUSING:
        return ""
    if not found.smallest_runnable:
        return "no examined wheel runs on this card: use a container that NVIDIA builds for it"
    install = f'python -m pip install "tensorflow[and-cuda]>={found.smallest_runnable}"'
    return (
        f"{install}, then model.compile(..., jit_compile=False)" if found.known_faults else install
    )
