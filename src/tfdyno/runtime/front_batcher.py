"""Requests wait here and leave joined into calls; one batcher per signature of a version."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tfdyno.runtime.front_answer import Answer, Outputs, put_together
from tfdyno.runtime.front_queue import Job, JobQueue, Limits
from tfdyno.runtime.front_table import Refused, Signature
from tfdyno.runtime.front_wire import Arrays, ModelError

Watch = Callable[[int, float], None]
"""Told of each call: its rows and its seconds."""


class Model(Protocol):
    """What computes: the client of a model process."""

    async def infer(self, parts: Sequence[Arrays], signature: Signature) -> Arrays:
        """One call with the rows of all ``parts``; raises ``ModelError`` or ``Refused``."""

    def close(self) -> None:
        """Give up what is not in use."""


class Batcher:
    """Joins the requests for one signature and splits the answers."""

    def __init__(self, client: Model, signature: Signature, limits: Limits, watch: Watch) -> None:
        self.queue = JobQueue(limits)
        self._client, self._signature, self._watch = client, signature, watch
        self._timer: asyncio.TimerHandle | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._time = asyncio.get_running_loop().time
        self.idle: Callable[[], None] = lambda: None

    def admit(self, deadline_s: float, rows: int = 1) -> None:
        """Refuse now what could not be answered in time (before anything is read)."""
        refusal = self.queue.refusal(rows, self._time(), deadline_s)
        if refusal is not None:
            raise refusal

    async def infer(self, inputs: Arrays, deadline_s: float = math.inf) -> Answer:
        """Wait for the outputs of a request.

        Raises:
            Refused: The queue is full (429), the deadline cannot be met (503) or passed (504),
                the model process is gone (503), or the model failed (400, 500).
        """
        if not self._signature.rows:
            self.admit(deadline_s)
            return await self._one(inputs, 1, deadline_s)
        rows = len(next(iter(inputs.values())))
        self.admit(deadline_s, rows)
        most = self.queue.limits.rows
        if rows <= most:
            return await self._one(inputs, rows, deadline_s)
        pieces = [
            self._one({name: array[at : at + most] for name, array in inputs.items()},
                      min(most, rows - at), deadline_s)
            for at in range(0, rows, most)
        ]  # fmt: skip
        return put_together(await asyncio.gather(*pieces))

    async def _one(self, inputs: Arrays, rows: int, deadline_s: float) -> Answer:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Answer] = loop.create_future()
        key = tuple(array.shape[1:] for array in inputs.values()) if self._signature.rows else done
        job = Job(rows=rows, key=key, arrived_s=loop.time(), deadline_s=deadline_s)
        job.payload = (inputs, done)
        self.queue.put(job)
        self._send()
        timer = None
        if deadline_s < math.inf:
            timer = loop.call_at(deadline_s, _too_late, done)
        try:
            return await done
        finally:
            if timer:
                timer.cancel()
            if self.queue.drop(job):
                self._look_idle()

    def _send(self) -> None:
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
            self._share(arrays, batch, rows)
        except ModelError as error:
            await self._apart(batch, error)
        except Refused as refused:
            _fail(batch, refused)
        except Exception as error:
            _fail(batch, Refused(500, f"The answer could not be read: {error}"))
        finally:
            self.queue.finished(call_s)
            self._send()
            self._look_idle()

    def _share(self, arrays: Arrays, batch: Sequence[Job], rows: int) -> None:
        outputs = Outputs(arrays=arrays)
        if not self._signature.rows:
            _give(batch[0], Answer(outputs=outputs))
            return
        wrong = [name for name, array in arrays.items() if len(array) != rows]
        if wrong:
            _fail(batch, Refused(500, f"The model gave another number of rows in {wrong[0]}"))
            return
        at = 0
        for job in batch:
            _give(job, Answer(outputs=outputs, start=at, rows=job.rows))
            at += job.rows

    async def _apart(self, batch: Sequence[Job], error: ModelError) -> None:
        """A joined call failed: each request alone, so that only the culprit's fails."""
        if len(batch) == 1:
            _fail(batch, refusal_of(error))
            return
        for job in batch:
            if job.payload[1].done():
                continue
            try:
                arrays = await self._client.infer([job.payload[0]], self._signature)
                _give(job, Answer(outputs=Outputs(arrays=arrays)))
            except ModelError as own:
                _fail([job], refusal_of(own))
            except Refused as refused:
                _fail([job], refused)

    def _look_idle(self) -> None:
        if self.queue.empty():
            self.idle()


def refusal_of(error: ModelError) -> Refused:
    """400 for values that the model rejects (an index out of range), 500 for its own failures."""
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


def _too_late(done: asyncio.Future[Any]) -> None:
    if not done.done():
        done.set_exception(Refused(504, "The deadline passed before the answer was there"))
