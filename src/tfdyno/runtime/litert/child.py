"""Child process: what a .tflite file holds, LiteRT's memory for it, and its time on this CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfdyno.core.deploy.edge import EdgeTiming
from tfdyno.core.messages.litert import READ_LITERT, LitertRead
from tfdyno.model.measure.statistics import median
from tfdyno.process import child
from tfdyno.runtime.litert.file import read
from tfdyno.runtime.litert.make import needs
from tfdyno.runtime.litert.names import float_operators, operator_layer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tfdyno.core.messages.litert import ReadLitert

ALIGNMENT_BYTES = 64
ROUNDS = 9
_CUT = 1
"""The cut: of nine independent medians, the second lowest and the second highest hold the true one
in 96 % of cases: 1 - 2 (1 + 9) / 2⁹."""


def handle(request: ReadLitert, progress: child.Progress) -> LitertRead:
    """Read, plan and time one file.

    Raises:
        UsageError: It is no such file, is damaged, or LiteRT cannot run it.
    """
    needs("ai_edge_litert", "export")
    path = request.model
    progress(f"reading {path.name}")
    graph = read(path)
    main = graph.main
    timings = _timings(path, request.threads, request.turn_s, progress)
    return LitertRead(
        graph=graph,
        layers=tuple(operator_layer(main, place) for place in range(len(main.operators))),
        float_operators=tuple(float_operators(graph)),
        arena_bytes=arena_bytes(path),
        timings=timings,
    )


def _timings(
    path: Path, threads: Sequence[int], seconds: float, progress: child.Progress
) -> tuple[EdgeTiming, ...]:
    """Return the numbers of threads in turns, so that a change of the machine meets all of them."""
    from tfdyno.runtime.litert.run import LiteRT

    models = {count: LiteRT(path, threads=count) for count in threads}
    medians: dict[int, list[float]] = {count: [] for count in threads}
    calls = dict.fromkeys(threads, 0)
    for turn in range(ROUNDS if models else 0):
        progress(f"measuring on this CPU, round {turn + 1} of {ROUNDS}")
        order = list(models) if turn % 2 == 0 else list(reversed(models))
        for count in order:
            found = models[count].latency_s(models[count].example(), seconds)
            medians[count].append(median(found))
            calls[count] += len(found)
    return tuple(_timing(count, medians[count], calls[count]) for count in threads)


def _timing(threads: int, medians_s: list[float], calls: int) -> EdgeTiming:
    ordered = sorted(medians_s)
    return EdgeTiming(
        threads=threads,
        median_s=median(ordered),
        interval_s=(ordered[_CUT], ordered[-1 - _CUT]),
        rounds=len(ordered),
        calls=calls,
    )


def arena_bytes(path: Path) -> int:
    """Return bytes from first to last of all values that are no weights, for one sample.

    The plain operators of LiteRT are used: what XNNPACK takes over is in its own memory, which
    cannot be seen. Room that kernels ask for is in it (here: those of this CPU). The addresses of
    the values say it; weights lie elsewhere, where the file was read to. 0: it cannot be read.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        interpreter = Interpreter(str(path), num_threads=1, experimental_op_resolver_type=plain)
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError):
        return 0
    constant = {i for i, one in enumerate(read(path).main.tensors) if one.constant}
    starts, ends, sizes = [], [], []
    for details in interpreter.get_tensor_details():
        if details["index"] in constant:
            continue
        try:
            view = interpreter.tensor(details["index"])()
        except (ValueError, RuntimeError):  # has no memory before it runs
            continue
        address = view.__array_interface__["data"][0]
        if view.nbytes:
            starts.append(address)
            ends.append(address + view.nbytes)
            sizes.append(view.nbytes + ALIGNMENT_BYTES)
    extent = max(ends) - min(starts) if starts else 0
    # Values that have their size only at run time lie elsewhere: then it is no single block.
    return extent if extent <= sum(sizes) else 0


if __name__ == "__main__":
    child.leave(child.serve(handle, READ_LITERT))
