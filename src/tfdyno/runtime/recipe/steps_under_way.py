"""Steps that were given to a cluster and are not done yet: how many, and whether they ever will be.

TensorFlow waits up to an hour for a worker that died. Here a silence is looked into: where a
process of the cluster does not answer any more, that is said, and the run ends.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfdyno.core.base.errors import ToolError

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Function, Value

PATIENCE_S = 60.0
LOOK_S = 1.0
OFTEN_S = 0.05
ECHO_S = 5.0
"""So long the steps after a failed one may take to be thrown away."""
ANSWER_S = 2.0
GONE = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
RESUME = "start the cluster again with --resume"

Addresses = Mapping[str, Sequence[str]]


class StepsUnderWay:
    """Gives steps to the workers, so many at a time that they stay busy, and waits for them.

    Attributes:
        most: Steps that may be under way when ``add`` returns.
        last_value: What the step that was done last returned.
        patience_s: After so long without any step done, the processes are asked for.
    """

    def __init__(self, coordinator: Value, cluster: Addresses, per_worker: int) -> None:
        """Prepare.

        Args:
            coordinator: ``tf.distribute.coordinator.ClusterCoordinator``.
            cluster: Addresses of all processes by role.
            per_worker: Steps under way for each worker.
        """
        self._coordinator = coordinator
        self._cluster = {role: list(cluster.get(role, ())) for role in ("worker", "ps")}
        self.most = max(1, per_worker * len(self._cluster["worker"]))
        self._count = 0
        self._given: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.patience_s = PATIENCE_S
        self.last_value: Any = {}
        threading.Thread(target=self._wait, daemon=True).start()

    def add(self, function: Function, arguments: tuple[Any, ...]) -> None:
        """Give one more step to whichever worker is free; waits while too many are under way.

        Raises:
            ToolError: A process of the cluster is gone.
            Exception: What an earlier step raised.
        """
        try:
            value = self._coordinator.schedule(function, args=arguments)
        except tf.errors.OpError as error:
            raise self._failed(error) from error
        self._given.put(value)
        self._count += 1
        while self._count > self.most:
            self._one_done()

    def join(self) -> None:
        """Wait until all are done; raises as ``add`` does."""
        while self._count:
            self._one_done()

    def _wait(self) -> None:
        """Wait in a thread of its own, as TensorFlow's wait has no limit."""
        while True:
            value = self._given.get()
            try:
                self._done.put(_fetched(value))
            except Exception as error:
                self._done.put(error)

    def _one_done(self) -> None:
        silent_since = time.monotonic()
        while True:
            try:
                outcome = self._done.get(timeout=LOOK_S)
                break
            except queue.Empty:
                if time.monotonic() - silent_since > self.patience_s:
                    self._look()
                    silent_since = time.monotonic()
        self._count -= 1
        if isinstance(outcome, Exception):
            told = self._failed(outcome)
            raise told from (None if told is outcome else outcome)
        self.last_value = outcome

    def _failed(self, error: Exception) -> Exception:
        """Return what to raise after a failure, when nothing of it is left for a later run.

        The coordinator throws away the steps after a failed one. What they raise is an echo.
        """
        until = time.monotonic() + ECHO_S
        while self._count and time.monotonic() < until:
            with contextlib.suppress(queue.Empty):
                outcome = self._done.get(timeout=OFTEN_S)
                self._count -= 1
                if isinstance(error, tf.errors.CancelledError) and isinstance(outcome, Exception):
                    error = outcome
        self._count = 0
        while time.monotonic() < until:
            with contextlib.suppress(Exception):
                if self._coordinator.done():
                    break
            time.sleep(OFTEN_S)
        return self._told(error)

    def _told(self, error: Exception) -> Exception:
        """Return the error in words if it is the cluster's, else as it is: the user's code."""
        if not isinstance(error, GONE) or "/job:" not in str(error):
            return error
        missing = unreachable(self._cluster)
        if missing:
            why, what = _named(missing), "the cluster broke down"
            return ToolError(what, why=f"{why} any more", remedy=RESUME)
        line = str(error).strip().splitlines()[0]
        return ToolError("the cluster broke down", why=line, remedy=RESUME)

    def _look(self) -> None:
        """Look after a long silence: a step may take long, but not on a process that is gone."""
        if missing := unreachable(self._cluster):
            what = f"no step was done for {self.patience_s:.0f} s"
            raise ToolError(what, why=f"{_named(missing)} any more", remedy=RESUME)


def _fetched(value: Value) -> Value:
    """Fetch what a step returned.

    It can be there on a worker that dies before it is copied from there. The copy fails then, each
    time with an error of its own, until TensorFlow has another worker do the step again. What a
    step itself raised is the same error each time.

    Raises:
        Exception: What the step raised.
    """
    before: Exception | None = None
    while True:
        try:
            return value.fetch()
        except tf.errors.CancelledError:
            raise
        except tf.errors.OpError as error:
            if error is before:
                raise
            before = error
        time.sleep(OFTEN_S)


def unreachable(cluster: Addresses) -> list[str]:
    """Return the processes to which no connection can be made, as ``worker 1 (10.0.0.7:2222)``."""
    found = []
    for role, addresses in cluster.items():
        for number, address in enumerate(addresses):
            host, _, port = address.rpartition(":")
            try:
                socket.create_connection((host.strip("[]"), int(port)), ANSWER_S).close()
            except OSError:
                found.append(f"{role} {number} ({address})")
    return found


def _named(missing: list[str]) -> str:
    verb = "does not answer" if len(missing) == 1 else "do not answer"
    return f"{', '.join(missing)} {verb}"
