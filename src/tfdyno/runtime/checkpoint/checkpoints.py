"""Checkpoints of a training: when one is due, taken at a step, written beside the training.

The values are copied to the host at the boundary of a step; a thread writes them while training
goes on. At most one copy exists: a save that comes while another is being written waits for it,
so a slow disk slows a training that asks for more than it can take, and never fills the memory.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import TfdynoError, ToolError, UsageError
from tfdyno.core.base.lock import lock_folder
from tfdyno.runtime.checkpoint.files import DamagedError, latest, list_checkpoints
from tfdyno.runtime.checkpoint.plain_json import Arrays, NotPlainError, from_plain, to_plain
from tfdyno.runtime.checkpoint.random_states import random_state, restore_random_state
from tfdyno.runtime.checkpoint.state import Snapshot, set_state, take_part
from tfdyno.runtime.checkpoint.writing import (
    pin,
    refusal,
    remove_leftovers,
    remove_old,
    write_checkpoint,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from tfdyno.core.base.untyped import Value
    from tfdyno.runtime.checkpoint.files import Checkpoint, Position
    from tfdyno.runtime.checkpoint.state import State


class Checkpoints:
    """The checkpoints of one folder, and the one run that writes them.

    Attributes:
        notes: Sentences for the user: what was damaged, what could not be removed.
    """

    def __init__(
        self,
        folder: Path,
        *,
        keep: int = 3,
        every_steps: int = 0,
        every_s: float = 0.0,
        writes: bool = True,
    ) -> None:
        """Hold a folder and remove what a kill left there.

        Args:
            folder: Made where it is missing.
            keep: How many checkpoints stay beside the pinned ones.
            every_steps: Save when the step passes a multiple of this; 0 for never.
            every_s: Save when so many seconds have passed; 0 for never.
            writes: False for a worker that only takes part: it reads and never writes.

        Raises:
            UsageError: A number makes no sense, or another run holds the folder.
            ToolError: The folder cannot be written.
        """
        for name, value, least in (("keep", keep, 1), ("every_steps", every_steps, 0)):
            if value < least:
                raise UsageError(f"{name} = {value} for checkpoints", why=f"it is below {least}")
        if not 0.0 <= every_s < float("inf"):
            raise UsageError(f"every_s = {every_s} for checkpoints", why="it is no length of time")
        self.folder = folder
        self.notes: list[str] = []
        self._keep, self._every_steps, self._every_s = keep, every_steps, every_s
        self._writes, self._snapshot = writes, Snapshot()
        self._writer = Beside("writing a checkpoint")
        self._step, self._now_s, self._saved_s = 0, -1.0, -1.0
        self._damaged: set[str] = set()
        self._serial = 0
        if writes:
            self._hold()

    def _hold(self) -> None:
        with contextlib.ExitStack() as undo:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._lock = lock_folder(self.folder)
                undo.callback(self._lock.close)
                remove_leftovers(self.folder)
            except OSError as error:
                what = f"cannot keep checkpoints in {self.folder}"
                raise ToolError(what, why=error.strerror or str(error)) from None
            found, _ = list_checkpoints(self.folder)
            self._serial = max((checkpoint.serial for checkpoint in found), default=0)
            undo.pop_all()

    def due(self, step: int, now_s: float) -> bool:
        """Return whether a checkpoint is due: by steps at each multiple, however many run at once.

        By time none is due while one is being written: a slow disk then takes fewer.

        Args:
            step: Steps done.
            now_s: Of a clock that never goes back, in seconds.

        Raises:
            ToolError: The last checkpoint could not be written.
        """
        self._writer.check()
        self._now_s = now_s
        if self._saved_s < 0.0:
            self._saved_s = now_s
        if self.due_by_steps(step):
            return True
        passed_s = now_s - self._saved_s
        return bool(self._every_s) and passed_s >= self._every_s and not self._writer.busy

    def due_by_steps(self, step: int) -> bool:
        """Return whether a checkpoint is due whatever the clock says: all workers count alike."""
        every = self._every_steps
        return bool(every) and step // every > self._step // every

    def save(
        self,
        step: int,
        state: State,
        position: Position,
        extra: Value = None,
        *,
        wait: bool = False,
        history: dict[str, Any] | None = None,
    ) -> None:
        """Take a checkpoint now; it is written beside what follows.

        A worker that does not write has to call it at the same step as the one that does.

        Args:
            step: Steps done.
            state: From ``state_of``.
            position: Where training stands.
            extra: Numbers, texts, arrays, lists and dictionaries of these.
            wait: Return when it is on the disk.
            history: The metrics of the epochs so far.

        Raises:
            UsageError: ``extra`` or ``history`` holds something else, or a variable holds texts.
            ToolError: This or the last checkpoint could not be written.
        """
        self.wait()
        self._step, self._saved_s = step, self._now_s
        if self._writes:
            self._start(step, state, position, extra, history or {})
        else:
            take_part(state)
        if wait:
            self.wait()

    def _start(
        self,
        step: int,
        state: State,
        position: Position,
        extra: Value,
        history: dict[str, Any],
    ) -> None:
        arrays: Arrays = {}
        try:
            content = {
                "step": step,
                "serial": self._serial + 1,
                "pinned": False,
                "epoch": position.epoch,
                "step_in_epoch": position.step_in_epoch,
                "seed": position.seed,
                "position": to_plain(position.data, {}, "position"),
                "random": to_plain(random_state(), {}, "random"),
                "history": to_plain(history, {}, "history"),
                "extra": to_plain(extra, arrays, "extra"),
            }
        except NotPlainError as error:
            raise UsageError("a checkpoint cannot hold this", why=str(error)) from None
        self._snapshot.take(state)
        arrays |= self._snapshot.parts
        self._serial += 1
        self._writer.start(lambda: self._write(content, arrays))

    def _write(self, content: dict[str, Any], arrays: Arrays) -> None:
        values = self._snapshot.values
        try:
            marker = write_checkpoint(self.folder, content, values, arrays)
        except OSError as error:
            size_bytes = sum(value.nbytes for value in (*values.values(), *arrays.values()))
            raise refusal(self.folder, content["step"], error, size_bytes) from None
        self._damaged.discard(marker.name)
        try:
            remove_old(self.folder, self._keep, self._damaged)
        except (OSError, TfdynoError) as error:  # the new one is safe: no reason to stop
            self.notes.append(f"Old checkpoints in {self.folder} were not removed: {error}.")

    def wait(self) -> None:
        """Wait until nothing is being written; raises ``ToolError`` where that failed."""
        self._writer.wait()

    def latest(self) -> Checkpoint | None:
        """Return the newest whole checkpoint; ``notes`` names the damaged ones passed over."""
        self.wait()
        found = latest(self.folder, self.notes)
        for checkpoint in list_checkpoints(self.folder)[0]:
            if found is None or checkpoint.serial > found.serial:
                self._damaged.add(checkpoint.marker.name)
        return found

    def pin(self, checkpoint: Checkpoint) -> None:
        """Keep a checkpoint for good: the last good one before a NaN.

        Raises:
            ToolError: It is not there any more, or cannot be written.
        """
        self.wait()
        try:
            pin(checkpoint)
        except (OSError, DamagedError) as error:
            raise ToolError(f"cannot pin {checkpoint.marker}", why=str(error)) from None

    def restore(self, state: State, checkpoint: Checkpoint, *, random: bool = True) -> Value:
        """Set the variables and the random generators from a checkpoint.

        Where something draws between this and the first step, call
        ``restore_random_state(checkpoint.random)`` again.

        Args:
            state: From ``state_of``, with the same variables in the same order.
            checkpoint: From ``latest``.
            random: Whether the random generators are set as well.

        Returns:
            The ``extra`` that was saved.

        Raises:
            UsageError: The variables are not those of the checkpoint; none was set then.
            ToolError: The file cannot be read.
        """
        self.wait()
        arrays = set_state(state, checkpoint)
        if random:
            restore_random_state(checkpoint.random)
        self._step = checkpoint.step
        return from_plain(checkpoint.extra, arrays)

    def close(self) -> None:
        """Wait for the writer and give the folder back.

        Raises:
            ToolError: The last checkpoint could not be written.
        """
        try:
            self.wait()
        finally:
            if self._writes:
                self._lock.close()

    def __enter__(self) -> Self:
        """Return itself; closed at the end of the ``with``."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close; where training failed, its own error is the one to be seen."""
        try:
            self.close()
        except ToolError as failed:
            if error is None:
                raise
            self.notes.append(str(failed))


class Beside:
    """A thread for one piece of work at a time.

    The thread is waited for when the process ends in the usual way: what was begun is finished.
    """

    def __init__(self, doing: str) -> None:
        """Take ``doing``, which completes "… failed" where the work raises what nobody expected."""
        self._doing, self._pool = doing, ThreadPoolExecutor(1, "tfdyno-checkpoint")
        self._work: Future[object] | None = None

    @property
    def busy(self) -> bool:
        """Whether a piece of work is under way."""
        return self._work is not None and not self._work.done()

    def start(self, work: Callable[[], object]) -> None:
        """Begin a piece of work when the last one is done.

        Raises:
            TfdynoError: The last one failed; this one is not begun.
        """
        self.wait()
        self._work = self._pool.submit(work)

    def wait(self) -> None:
        """Wait for the work.

        Raises:
            TfdynoError: It failed; raised once.
        """
        error = self._work.exception() if self._work else None
        self._work = None
        if isinstance(error, TfdynoError):
            raise error
        if error is not None:  # whatever it is, the training has to hear of it
            raise ToolError(f"{self._doing} failed", why=f"{type(error).__name__}: {error}")

    def check(self) -> None:
        """Raise what the work has failed with so far, once; never wait.

        Raises:
            TfdynoError: It failed.
        """
        if not self.busy:
            self.wait()
