"""Several processes on this machine that work as one: they start, fail and end together."""

from __future__ import annotations

import contextlib
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tfdyno.core.base.errors import TfdynoError, ToolError
from tfdyno.engines.process.faults import Fault, accused, culprit
from tfdyno.engines.process.guard import guarded
from tfdyno.engines.process.process import ChildCrash, Command, Hear, Process, start

Judge = Callable[[Process], Exception | None]
"""What the end of a process means: None when it is as it should be."""

END_S = 5.0
PEERS_S = 30.0
ECHO_S = 3.0
"""How long a failure is waited for that explains one which only says that another is gone."""
SLICE_S = 0.2
LAST_LINES = 3


class _Over(BaseException):
    """The time to work is over, which is no error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long what may take."""

    run_s: float
    """All of it; then every process is ended."""
    work_s: float = math.inf
    """All of it; then the processes are asked to end as after Ctrl-C, with the time of that."""
    start_s: float = math.inf
    """The time until each process has told a first progress."""
    stop_s: float = 0.0
    """The time after Ctrl-C or SIGTERM for the processes to bring their work to safety and give a
    result; 0 kills them at once."""
    end_s: float = END_S
    """Between the request to end (SIGTERM) and the kill."""
    peers_s: float = PEERS_S
    """The time after the chief's end for the others to end by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """The processes that run, and how their ends are heard of."""

    processes: tuple[Process, ...]
    chief: Process
    ends: queue.SimpleQueue[Process]
    output: Hear

    def next_end(self, until_s: float) -> Process | None:
        """Wait for the next process that ends, or whose listener fails; None: time is over."""
        while True:
            left_s = until_s - time.monotonic()
            # In slices: a signal that another thread received is seen only between two of them.
            with contextlib.suppress(queue.Empty):
                return self.ends.get(timeout=max(0.0, min(left_s, SLICE_S)))
            if left_s <= SLICE_S:
                return None

    def running(self, *, serving: bool | None = None) -> list[Process]:
        """Return those that have not ended: all, or those that serve the others or that do not."""
        alive = [process for process in self.processes if process.runs]
        return [p for p in alive if serving is None or p.command.serves is serving]


@contextlib.contextmanager
def together(
    commands: Sequence[Command], *, chief: int, mark: str, progress: Hear, output: Hear
) -> Iterator[Crew]:
    """Start processes of which none is left when the block ends, or when this process is killed.

    Args:
        commands: What to start.
        chief: The position of the one that decides when the work is done.
        mark: What a line of progress begins with; empty when there are none.
        progress: Called with the progress of the chief.
        output: Called with every other line; with its process in front where there are several:
            ``[worker 1] …``. No two calls at the same time.

    Raises:
        UsageError: A program is missing.
        ToolError: A log cannot be written.
    """
    ends: queue.SimpleQueue[Process] = queue.SimpleQueue()
    lock = threading.Lock()

    def told(to: Hear, prefix: str = "") -> Hear:
        def tell(line: str) -> None:
            with lock:
                to(prefix + line)

        return tell

    processes: list[Process] = []
    with guarded() as guard:
        try:
            for position, command in enumerate(commands):
                process = start(
                    command,
                    mark=mark,
                    progress=told(progress) if position == chief else _unheard,
                    output=told(output, f"[{command.name}] " if command.name else ""),
                    ended=ends.put,
                )
                processes.append(process)
                guard(process.popen.pid)
            yield Crew(
                processes=tuple(processes), chief=processes[chief], ends=ends, output=told(output)
            )
        finally:
            for process in processes:
                process.kill()
            for process in processes:
                process.close()


def _unheard(_line: str) -> None:
    """Take the progress of the others, which is the same as the chief's."""


def attend(crew: Crew, judge: Judge, limits: Limits) -> None:
    """Wait until the chief has ended well, then end those that are left.

    The first process that fails ends all others. Ctrl-C and SIGTERM, where they raise, are passed
    on as SIGTERM to those that work, and the result is waited for as long as ``limits`` allow; a
    second one kills them all.

    Raises:
        ChildCrash: It took too long.
        ToolError: A process did not start, or ended though it serves the others.
        Exception: What ``judge`` made of the process that failed first.
        BaseException: What stopped this process, when the chief gave no result after it.
    """
    try:
        end = _work(crew, judge, limits)
    except _Over:
        _wind_up(crew, judge, limits, _took_too_long(crew.chief, limits.work_s))
        end = None
    except BaseException as stop:
        if isinstance(stop, Exception) or limits.stop_s <= 0:
            raise
        _wind_up(crew, judge, limits, stop)
        end = None
    if isinstance(end, Fault):
        raise _blame(crew, end, judge, limits)
    if end:
        _end(crew, limits)
        raise end
    try:
        _dismiss(crew, limits)
    except BaseException as stop:
        if isinstance(stop, Exception) or limits.stop_s <= 0:
            raise  # otherwise the work is done, and there is nothing left to stop


def _work(crew: Crew, judge: Judge, limits: Limits) -> Fault | ToolError | None:
    """Wait for the chief's good end; what came before it instead is given back."""
    began_s = time.monotonic()
    over_s = began_s + limits.run_s
    start_s = began_s + limits.start_s
    work_s = began_s + limits.work_s
    while True:
        process = crew.next_end(min(over_s, start_s, work_s))
        if process is None and time.monotonic() >= over_s:
            return _took_too_long(crew.chief, limits.run_s)
        if process is None and time.monotonic() >= work_s:
            raise _Over
        if process is None:
            if missing := _missing(crew, limits.start_s):
                return missing
            start_s = math.inf
        elif process.trouble:
            raise process.trouble
        elif error := _failure(process, judge):
            return Fault(process=process, error=error)
        elif process is crew.chief:
            return None


def _failure(process: Process, judge: Judge) -> Exception | None:
    error = judge(process)
    if error is None and process.command.serves:
        command = process.command
        why = "the others still needed it"
        return ToolError(f"{command.name} of {command.purpose} ended too early", why=why)
    return error


def _blame(crew: Crew, first: Fault, judge: Judge, limits: Limits) -> Exception:
    """End all and say who failed first; whoever only lost another is not blamed for that."""
    faults = [first]
    until_s = time.monotonic() + ECHO_S
    while True:
        explained = not all(fault.is_echo for fault in faults)
        process = crew.next_end(0.0 if explained else until_s)
        if process is None:
            break
        if not process.runs and (error := _failure(process, judge)):
            faults.append(Fault(process=process, error=error))
    left = {process.command.name: process.command for process in crew.running()}
    _end(crew, limits)
    fault = culprit(faults)
    witness = fault.process.command.name
    lost = left.get(accused(fault))
    if lost is None or lost.name == witness:
        return fault.error
    silent = ToolError(
        f"{lost.name} of {lost.purpose} does not answer any more",
        why=f"it still ran, but {witness} lost it",
        remedy="it may hang, or this machine may be overloaded",
    )
    silent.__cause__ = fault.error
    for command in (lost, fault.process.command):
        if command.log:
            silent.add_note(f"The log of {command.name} is {command.log}.")
    return silent


def _missing(crew: Crew, start_s: float) -> ToolError | None:
    """Return the error for processes that gave no sign of life."""
    missing = [process for process in crew.running() if not process.said]
    if not missing:
        return None
    names = " and ".join(process.command.name or "the process" for process in missing)
    verb = "is" if len(missing) == 1 else "are"
    words = missing[0].last_words(LAST_LINES) or "it printed nothing"
    return ToolError(
        f"{names} of {missing[0].command.purpose} {verb} missing",
        why=f"no sign of life within {start_s:.0f} s, {words}",
        remedy="start fewer processes, or look whether this machine is overloaded",
    )


def _took_too_long(chief: Process, run_s: float) -> ChildCrash:
    why = f"no result within {run_s:.0f} s"
    words = chief.last_words()
    why = f"{why}; {words}" if words else why
    return ChildCrash(f"{chief.command.purpose} was stopped", why=why)


def _wind_up(crew: Crew, judge: Judge, limits: Limits, stop: BaseException) -> None:
    """Let the chief bring its work to safety; without its result the stop goes on.

    Those that serve are kept until then: they hold the weights that the chief wants to save.
    """
    for process in crew.running(serving=False):
        process.terminate()
    is_late = isinstance(stop, ChildCrash)
    crew.output(
        f"{crew.chief.command.purpose} is asked to end{' as its time is over' * is_late} and has "
        f"{limits.stop_s:.0f} s for it; {'' if is_late else 'a second '}Ctrl-C ends it at once"
    )
    until_s = time.monotonic() + limits.stop_s
    while crew.chief.runs:
        if crew.next_end(until_s) is None and crew.chief.runs:
            purpose = crew.chief.command.purpose
            stop.add_note(f"{purpose} did not end within {limits.stop_s:.0f} s and was killed.")
            raise stop
    error = judge(crew.chief)
    if error is None:
        return
    # What it says in so many words counts; that the signal ended it is no news.
    is_told = isinstance(error, TfdynoError) and not isinstance(error, ChildCrash)
    if is_told:
        raise error from stop
    raise stop from error  # TFDYNO_DEBUG=1 shows it


def _dismiss(crew: Crew, limits: Limits) -> None:
    """Let the others end by themselves, now that the chief is done, and end those that serve."""
    for process in crew.running(serving=True):
        process.terminate()
    until_s = time.monotonic() + limits.peers_s
    while crew.running(serving=False) and crew.next_end(until_s):
        pass
    _end(crew, limits)


def _end(crew: Crew, limits: Limits) -> None:
    """Ask all that run to end, and wait as long as they may take; the kill comes with the block."""
    if limits.end_s <= 0:
        return
    for process in crew.running():
        process.terminate()
    until_s = time.monotonic() + limits.end_s
    while crew.running() and crew.next_end(until_s):
        pass
