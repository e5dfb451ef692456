"""Child process: sweeps the card of this machine and writes down what each kernel takes.

Every window is a line of the file that the request names, written at once: whatever ends the sweep,
what was measured until then is there.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import ToolError
from tfdyno.core.messages.calibrate import SWEEP, CardSwept, Chain, PaceTold, Release, Window
from tfdyno.core.messages.wire import encode
from tfdyno.process import child
from tfdyno.runtime.calibrate.clock import WINDOW_S, Timed, chain_length
from tfdyno.runtime.calibrate.points import kernel_of, points

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.choose.generation import Framework
    from tfdyno.core.messages.calibrate import Execution, Line, Peaks, SweepCard, Where
    from tfdyno.runtime.calibrate.points import Point

CALL = "call"
"""Name of the call that runs no kernel."""
FIRST_WINDOWS = 2
PACES_AFTER = 8
CALL_WINDOWS = 4
"""The call is taken off every kernel, so it has to be known best."""
TELL_S = 5.0
EXPECTED: dict[Where, tuple[float, float, float]] = {
    "cpu": (3e-6, 3e10, 8e9),
    "gpu": (2e-6, 4e14, 3e12),
}
"""About what a kernel takes: start in s, FLOP/s, bytes/s. Only lengths of chains hang on it; on a
GPU the request tells the peaks of the card, since a chain that is too short tells of the host."""
IN_GRAPH = ("loop", "reduce", "transpose")
"""What TensorFlow's graph has kernels of its own for; products and convolutions are the libraries'
under XLA as well."""
ROOM_BYTES: dict[Where, float] = {"cpu": 5e8, "gpu": 4e9}


def handle(request: SweepCard, progress: child.Progress) -> CardSwept:
    """Sweep until the time is spent, in rounds, so that a disturbance meets all kernels alike."""
    progress(f"importing {request.framework}")
    engine = _engine(request.framework)
    engine.prepare()
    end_s = time.monotonic() + request.seconds_s
    with request.file.open("a", encoding="utf-8", buffering=1) as file:
        sweep = _Sweep(engine, file, request.where, progress, end_s, request.peaks)  # fmt: skip
        sweep.write(Release(version=engine.release()))
        device = _device(engine, request.where)
        sweep.begin(_wanted(request), request.fewest)
        sweep.repeat(request.most_rounds)
    return CardSwept(
        version=engine.release(),
        device=device,
        rounds=sweep.rounds,
        left_out=tuple(sweep.left_out),
        failed=sweep.failed,
    )


def _wanted(request: SweepCard) -> list[tuple[Point, Execution]]:
    """Return points with their executions: of each rank those of every execution."""
    chosen = points(request.where)
    first, *others = request.executions
    if request.smallest:
        return [(min(chosen, key=lambda one: one.held_bytes), first)]
    return [
        (point, execution)
        for point in chosen
        for execution in (first, *(others if kernel_of(point).kind in IN_GRAPH else ()))
    ]


def _device(engine: ModuleType, where: Where) -> str:
    """Return what the framework calls the card.

    Raises:
        ToolError: It sees none.
    """
    found = engine.devices()
    if where == "gpu" and not found:
        raise ToolError(
            f"{engine.NAME} sees no GPU", why="no driver answers it, or one that is too old",
            remedy="tfdyno doctor says why; --card cpu sweeps the processors",
        )  # fmt: skip
    return str(found[0]) if found else ""


def _engine(framework: Framework) -> ModuleType:
    if framework == "jax":
        from tfdyno.runtime.calibrate import jax_chain

        return jax_chain
    from tfdyno.runtime.calibrate import tensorflow_chain

    return tensorflow_chain


class _Sweep:
    def __init__(
        self, engine: Value, file: Value, where: Where, progress: child.Progress, end_s: float,
        peaks: Peaks,
    ) -> None:  # fmt: skip
        self.engine, self.file, self.where = engine, file, where
        self.progress, self.end_s, self.peaks = progress, end_s, peaks
        self.timed: list[Timed] = []
        self.left_out: list[str] = []
        self.failed: dict[str, str] = {}
        self.rounds = 0

    def paces(self) -> None:
        """Time what is no kernel: the way to a card and back, what Keras does beside a step."""
        for name, value in self.engine.paces(self.where).items():
            self.write(PaceTold(pace=name, value=value))

    def begin(self, wanted: Iterable[tuple[Point, Execution]], fewest: int = 0) -> None:
        """Build every chain and time it for the first time, those that tell most first.

        Args:
            wanted: The kernels.
            fewest: That are timed also where the time is spent.
        """
        wanted = list(wanted)
        for execution in dict.fromkeys(execution for _, execution in wanted):
            self._add(None, execution)
        for number, (point, execution) in enumerate(wanted):
            if number >= fewest and time.monotonic() > self.end_s:
                self.left_out.append(f"{execution} {point.name}")
                continue
            if number % 10 == 0:
                self.progress(f"{number} of {len(wanted)} kernels, at {point.name}")
            try:
                self._add(point, execution)
            except Exception as error:  # an operation that the framework or the card lacks
                words = (str(error) or type(error).__name__).splitlines()[0]
                self.failed[f"{execution} {point.name}"] = words[:200]
            if number == PACES_AFTER:
                self.paces()
        self.rounds = 1

    def _add(self, point: Point | None, execution: Execution) -> None:
        name = f"{execution} {point.name if point else CALL}"
        about = Chain(name=name, execution=execution, count=0)
        if point:
            kernel = kernel_of(point)
            start_s, flops, moved = EXPECTED[self.where]
            flops = self.peaks.flops_per_s.get(point.dtype) or flops
            moved = self.peaks.bytes_per_s or moved
            expected_s = start_s + kernel.flops.fixed / flops + point.held_bytes / moved
            room = self.peaks.room_bytes or ROOM_BYTES[self.where]
            less = point.beside
            count = chain_length(
                expected_s, point.held_bytes, room, f"{self.where} {execution} {kernel.kind}"
            )
            about = replace(
                about,
                count=count,
                kernel=kernel,
                tf32=point.dtype == "tf32",
                less=f"{execution} {less.name}" if less else "",
                overlaps=self.where == "gpu",
            )
        self.engine.allow_tf32(about.tf32)
        call = self.engine.chain(point, about.count, execution)
        timed = Timed(name=name, call=call, wait=self.engine.wait, count=about.count,
                      tf32=about.tf32, window_s=WINDOW_S[self.where])  # fmt: skip
        timed.warm()
        self.write(about)
        self.timed.append(timed)
        for _ in range(FIRST_WINDOWS):
            self._window(timed)

    def repeat(self, most: int) -> None:
        """Time all of them again, in rounds, while there is time: ``most`` rounds in all."""
        told_s = time.monotonic()
        while self.timed and self.rounds < most and time.monotonic() < self.end_s:
            self.rounds += 1
            if time.monotonic() > told_s + TELL_S:
                told_s = time.monotonic()
                left_s = self.end_s - told_s
                self.progress(f"round {self.rounds} of all kernels, {left_s:.0f} s left")
            for timed in self.timed:
                if time.monotonic() > self.end_s:
                    return
                for _ in range(CALL_WINDOWS if not timed.count else 1):
                    self._window(timed)

    def _window(self, timed: Timed) -> None:
        # XLA's products ask for it when they run: on an H200 those in TF32 took 6 times as long.
        self.engine.allow_tf32(timed.tf32)
        taken_s, used_s = timed.window()
        used_s = used_s if self.where == "cpu" else 0.0
        self.write(Window(name=timed.name, call_s=taken_s, used_s=used_s))

    def write(self, line: Line) -> None:
        """Add a line to the file."""
        self.file.write(encode(line) + "\n")


if __name__ == "__main__":
    child.leave(child.serve(handle, SWEEP))
