"""Requests wait here and leave joined into calls; one batcher per signature of a version."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tfdyno.process.failure import first_line
from tfdyno.serving.front.answer import Answer, Outputs, put_together
from tfdyno.serving.front.queue import NO_DEADLINE, Deadline, Job, JobQueue, Limits
from tfdyno.serving.front.table import Refused, Signature
from tfdyno.serving.front.wire import Arrays, ModelError

Watch = Callable[[int, float], None]
"""Told of each call: its rows and its seconds."""


class Model(Protocol):
    """What computes: the client of a model process."""

    async def infer(self, parts: Sequence[Arrays], signature: Signature) -> Arrays:
        """Make one call with the rows of all ``parts``; raises ``ModelError`` or ``Refused``."""

    def close(self) -> None:
        """Give up what is not in use."""


class Batcher:
    """Joins the requests for one signature and splits the answers."""

    def __init__(self, client: Model, signature: Signature, limits: Limits, watch: Watch) -> None:
        self.queue = JobQueue(limits, call_s=signature.call_s)
        self._client, self._signature, self._watch = client, signature, watch
        self._timer: asyncio.TimerHandle | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._time = asyncio.get_running_loop().time
        self.idle: Callable[[], None] = lambda: None

    def admit(self, deadline: Deadline, rows: int = 1) -> None:
        """Refuse now what could not be answered in time (before anything is read)."""
        refusal = self.queue.refusal(rows, self._time(), deadline.useful_s)
        if refusal is not None:
            raise refusal

    async def infer(self, inputs: Arrays, deadline: Deadline = NO_DEADLINE) -> Answer:
        """Wait for the outputs of a request.

        Raises:
            Refused: The queue is full (429), the deadline cannot be met (503), the client's passed
                or the model took too long (504), the model process is gone (503), or the model
                failed (400, 500).
        """
        if not self._signature.rows:
            self.admit(deadline)
            return await self._one(inputs, 1, deadline)
        rows = len(next(iter(inputs.values())))
        self.admit(deadline, rows)
        most = self.queue.limits.rows
        if rows <= most:
            return await self._one(inputs, rows, deadline)
        pieces = [
            asyncio.ensure_future(
                self._one({name: array[at : at + most] for name, array in inputs.items()},
                          min(most, rows - at), deadline)
            )
            for at in range(0, rows, most)
        ]  # fmt: skip
        try:
            return put_together(await asyncio.gather(*pieces))
        finally:
            for piece in pieces:  # after one has failed nobody needs the others
                piece.cancel()

    async def _one(self, inputs: Arrays, rows: int, deadline: Deadline) -> Answer:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Answer] = loop.create_future()
        key = tuple(array.shape[1:] for array in inputs.values()) if self._signature.rows else done
        job = Job(rows=rows, key=key, arrived_s=loop.time(), deadline_s=deadline.useful_s)
        job.payload = (inputs, done)
        self.queue.put(job)
        self._send()
        timers = self._timers(job, deadline)
        try:
            return await done
        finally:
            for timer in timers:
                timer.cancel()
            if self.queue.drop(job):
                self._look_idle()

    def _timers(self, job: Job, deadline: Deadline) -> list[asyncio.TimerHandle]:
        loop = asyncio.get_running_loop()
        timers = []
        if deadline.client_s < math.inf:
            timers.append(loop.call_at(deadline.client_s, _too_late, job))
        if deadline.own_s < math.inf:
            timers.append(loop.call_at(deadline.own_s, self._give_up, job))
        if deadline.last_s < math.inf:
            timers.append(loop.call_at(deadline.last_s, _too_slow, job))
        return timers

    def _give_up(self, job: Job) -> None:
        """Refuse a job that has waited too long; one that is being computed goes on."""
        if job.waits:
            told = "The request waited too long for its turn and was not computed"
            _fail([job], Refused(503, told, retry_after_s=self.queue.retry_after_s()))

    def _send(self) -> None:
        for job in self.queue.hopeless(self._time()):
            told = "The deadline can no longer be met; the request was not computed"
            _fail([job], Refused(503, told, retry_after_s=self.queue.retry_after_s()))
        while batch := self.queue.take(self._time()):
            self.queue.started()
            task = asyncio.ensure_future(self._call(batch))
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)
        wake_s = self.queue.wake_s()
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if wake_s is not None:
            self._timer = asyncio.get_running_loop().call_at(wake_s, self._send)

    async def _call(self, batch: list[Job]) -> None:
        begin_s, rows, call_s = self._time(), sum(job.rows for job in batch), None
        try:
            arrays = await self._client.infer([job.payload[0] for job in batch], self._signature)
            call_s = self._time() - begin_s
            self._watch(rows, call_s)
            self._share(arrays, batch)
        except Exception as error:
            await self._failed(batch, error)
        finally:
            self.queue.finished(call_s)
            self._send()
            self._look_idle()

    def _share(self, arrays: Arrays, batch: Sequence[Job]) -> None:
        outputs = Outputs(arrays=arrays)
        if not self._signature.rows:
            _give(batch[0], Answer(outputs=outputs))
            return
        rows = sum(job.rows for job in batch)
        wrong = [name for name, array in arrays.items() if len(array) != rows]
        if wrong:
            raise ModelError(500, f"The model gave another number of rows in {wrong[0]}")
        at = 0
        for job in batch:
            _give(job, Answer(outputs=outputs, start=at, rows=job.rows))
            at += job.rows

    async def _failed(self, batch: Sequence[Job], error: Exception) -> None:
        """Tell the requests of a call that failed; joined ones are tried again in two halves.

        So only the culprit's fails, after two calls for each time that its batch can be halved.
        """
        if isinstance(error, Refused):
            _fail(batch, error)
        elif not isinstance(error, ModelError):
            _fail(batch, Refused(500, f"The answer could not be read: {first_line(error)}"))
        elif len(batch) == 1:
            _fail(batch, refusal_of(error))
        else:
            middle = len(batch) // 2
            for half in (batch[:middle], batch[middle:]):
                await self._again([job for job in half if not job.payload[1].done()])

    async def _again(self, batch: Sequence[Job]) -> None:
        if not batch:
            return
        try:
            arrays = await self._client.infer([job.payload[0] for job in batch], self._signature)
            self._share(arrays, batch)
        except Exception as error:
            await self._failed(batch, error)

    def _look_idle(self) -> None:
        if self.queue.empty():
            self.idle()


def refusal_of(error: ModelError) -> Refused:
    """Return 400 for values that the model rejects (an index out of range), else 500."""
    given = error.code == 400 or "InvalidArgument" in error.text
    return Refused(400 if given else 500, error.text)


def _give(job: Job, answer: Answer) -> None:
    done: asyncio.Future[Answer] = job.payload[1]
    if not done.done():
        done.set_result(answer)


def _fail(batch: Sequence[Job], refused: Refused) -> None:
    for job in batch:
        done: asyncio.Future[Any] = job.payload[1]
        if not done.done():
            told = Refused(refused.code, refused.text, retry_after_s=refused.retry_after_s)
            done.set_exception(told)


def _too_late(job: Job) -> None:
    _fail([job], Refused(504, "The deadline passed before the answer was there"))


def _too_slow(job: Job) -> None:
    _fail([job], Refused(504, "The model did not answer in time"))
