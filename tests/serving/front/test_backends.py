from __future__ import annotations

import asyncio

import numpy as np
from tests.runtime.fronts import Here, at, models

from tfdyno.serving.front.backends import Backends
from tfdyno.serving.front.metrics import FrontMetrics
from tfdyno.serving.front.queue import Limits
from tfdyno.serving.front.table import read_table, signature_of

X = {"x": np.ones((1, 3), dtype=np.float32)}
LIMITS = Limits(rows=4, delay_s=0.0, waiting_rows=100)


class Switched:
    """Backends whose model processes are models in this one."""

    def __init__(self) -> None:
        self.idle: list[str] = []
        self.models: dict[str, Here] = {}
        self.backends = Backends(
            LIMITS, FrontMetrics(), connect=self._connect, tell_idle=self.idle.append
        )

    def _connect(self, address: str) -> Here:
        self.models[address] = Here()
        return self.models[address]

    def switch(self, *ports: int) -> None:
        self.backends.switch(read_table(models(ports[0]) if ports else {}))

    async def ask(self) -> None:
        version = self.backends.table.find("m")
        answer = await self.backends.batcher(version, signature_of(version, None)).infer(X)
        np.testing.assert_array_equal(answer.array("y"), [[2, 3]])


def test_what_is_under_way_ends_on_the_old_version_and_only_then_it_is_idle() -> None:
    async def work() -> None:
        switched = Switched()
        switched.switch(1)
        switched.models[at(1)].gate.clear()
        under_way = [asyncio.create_task(switched.ask()) for _ in range(20)]
        await asyncio.sleep(0.01)
        switched.switch(2)
        await switched.ask()
        assert switched.models[at(2)].calls == [1]
        assert switched.idle == []
        switched.models[at(1)].gate.set()
        await asyncio.gather(*under_way)
        await asyncio.sleep(0)
        assert switched.idle == [at(1)]
        assert switched.backends.idle()

    asyncio.run(work())


def test_a_version_without_work_is_idle_soon_but_not_before_the_switch_is_over() -> None:
    async def work() -> None:
        switched = Switched()
        switched.switch(1)
        switched.switch(2)
        assert switched.idle == []
        await asyncio.sleep(0)
        assert switched.idle == [at(1)]

    asyncio.run(work())


def test_a_version_that_comes_back_in_time_is_kept() -> None:
    async def work() -> None:
        switched = Switched()
        switched.switch(1)
        switched.models[at(1)].gate.clear()
        under_way = asyncio.create_task(switched.ask())
        await asyncio.sleep(0.01)
        switched.switch()
        switched.switch(1)
        switched.models[at(1)].gate.set()
        await under_way
        await switched.ask()
        assert switched.idle == []

    asyncio.run(work())


def test_the_gauges_tell_what_waits() -> None:
    async def work() -> None:
        switched = Switched()
        switched.switch(1)
        switched.models[at(1)].gate.clear()
        tasks = [asyncio.create_task(switched.ask()) for _ in range(12)]
        await asyncio.sleep(0.01)
        told = switched.backends._gauge("waiting_rows")
        assert told == {(("model", "m"), ("version", "3")): 10}
        switched.models[at(1)].gate.set()
        await asyncio.gather(*tasks)

    asyncio.run(work())
