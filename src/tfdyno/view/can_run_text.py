"""Which TensorFlow wheels run on which GPUs, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.view.text import WIDTH, paint, pairs, shorten, table, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.hardware import Gpu
    from tfdyno.core.software import WheelSupport

MARKS = {"native": "✓", "jit": "~", "fails": "✗*", "cannot": "✗", "unknown": "?"}
_STYLES = {
    "native": "green", "jit": "yellow", "fails": "red", "cannot": "red", "unknown": "dim",
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
    "fails": "Hardly: {name} on TensorFlow {release}.",
    "cannot": "No: {name} cannot run TensorFlow {release}.",
    "unknown": "Not known: nobody took the wheel of TensorFlow {release} apart for {name}.",
}
_SLOW_START = (
    "the first start takes minutes; keep the result: CUDA_CACHE_PATH on a disk that stays, "
    "CUDA_CACHE_MAXSIZE=4294967296"
)


def can_run_text(gpu: Gpu, found: WheelSupport, *, width: int = WIDTH, colour: bool = False) -> str:
    """One pair: the answer, what is in the wheel, what else is needed."""
    verdict = "fails" if found.has_old_libraries else found.verdict
    answer = _ANSWERS[verdict].format(name=gpu.name, release=found.tensorflow)
    mark = paint(MARKS[verdict], _STYLES[verdict], colour=colour)
    known = found.verdict != "unknown"
    lines = [
        ("because", found.detail),
        ("library", _KERNELS.get(found.library_kernels, "") if known else ""),
        ("elementwise", _KERNELS.get(found.elementwise_kernels, "") if known else ""),
        ("driver", f"{found.driver_linux} or later on Linux" if found.driver_linux else ""),
        ("first start", _SLOW_START if verdict == "jit" else ""),
        ("fix", _fix(found)),
        ("source", found.source),
    ]
    filled = wrapped(answer, width=width, first="   ", rest="   ").strip()
    head = f"{mark}  {paint(filled, 'bold', colour=colour)}"
    return f"{head}\n{pairs(lines, width=width)}"


def matrix_text(
    releases: Sequence[str],
    rows: Sequence[tuple[str, Sequence[str], Sequence[str]]],
    *,
    width: int = WIDTH,
    colour: bool = False,
) -> str:
    """A row per compute capability, a column per release.

    Args:
        releases: TensorFlow releases, oldest first.
        rows: Compute capability, names of cards, verdicts.
        width: Columns of the screen.
        colour: Whether to paint the marks.
    """
    cells = [
        [capability, *(_mark(one, colour) for one in verdicts), shorten(", ".join(names), 44)]
        for capability, names, verdicts in rows
    ]
    shown = table(
        ["GPU", *releases, "such as"], cells, width=width, elastic=len(releases) + 1, colour=colour
    )
    legend = (
        "✓ machine code for every kernel   ~ the driver compiles some at first use\n"
        "✗ no code that the card accepts   ✗* its CUDA libraries are older than the card\n"
        "? not examined.   Official Linux wheels, taken apart."
    )
    return f"{shown}\n\n{legend}"


def _mark(verdict: str, colour: bool) -> str:
    return paint(MARKS[verdict], _STYLES[verdict], colour=colour)


def _fix(found: WheelSupport) -> str:
    if found.verdict != "cannot" and not found.has_old_libraries:
        return ""
    if not found.smallest_runnable:
        return "no examined wheel runs on this card: use a container that NVIDIA builds for it"
    return f'python -m pip install "tensorflow[and-cuda]>={found.smallest_runnable}"'
