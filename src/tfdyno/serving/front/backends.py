"""The model processes in use: which answers what, and when one is no longer needed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tfdyno.serving.front.batcher import Batcher, Model
from tfdyno.serving.front.table import Signature, Table, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tfdyno.serving.front.metrics import FrontMetrics, Labels
    from tfdyno.serving.front.queue import Deadline, Limits


@dataclass(slots=True, eq=False, kw_only=True)
class _Backend:
    """One model process."""

    client: Model
    batchers: dict[str, Batcher] = field(default_factory=dict)

    def idle(self) -> bool:
        return all(batcher.queue.empty() for batcher in self.batchers.values())


class Backends:
    """Switches from table to table without losing what is under way on the old one."""

    def __init__(
        self,
        limits: Limits,
        metrics: FrontMetrics,
        *,
        connect: Callable[[str], Model],
        tell_idle: Callable[[str], None],
    ) -> None:
        self.table = Table(models={})
        self._limits, self._metrics = limits, metrics
        self._connect, self._tell_idle = connect, tell_idle
        self._backends: dict[str, _Backend] = {}
        metrics.gauges |= {
            "tfdyno_queue_rows": ("Rows that wait.", lambda: self._gauge("waiting_rows")),
            "tfdyno_calls_in_flight": ("Calls under way.", lambda: self._gauge("in_flight")),
            "tfdyno_ready": ("Whether a model is served.", self._ready),
        }

    def switch(self, table: Table) -> None:
        """Use ``table`` from now on; tells which model processes have nothing left to do."""
        self.table = table
        addresses = {version.address for version in _versions(table)}
        for address in addresses - set(self._backends):
            self._backends[address] = _Backend(client=self._connect(address))
        for address in set(self._backends) - addresses:
            self._retire(address)

    def batcher(self, version: Version, signature: Signature) -> Batcher:
        """Return where the requests for a signature of a version wait."""
        backend = self._backends[version.address]
        if signature.model not in backend.batchers:
            labels = {"model": version.model, "version": version.number}

            def watch(rows: int, call_s: float) -> None:
                self._metrics.rows.add(rows, **labels)
                self._metrics.batch_rows.add(rows, **labels)
                self._metrics.call_seconds.add(call_s, **labels)

            backend.batchers[signature.model] = Batcher(
                backend.client, signature, self._limits, watch
            )
        return backend.batchers[signature.model]

    def admit(self, version: Version, deadline: Deadline) -> None:
        """Refuse what surely comes too late before its body is read; raises ``Refused``.

        Only where all requests for a version wait in one line: which one is said in the body.
        """
        lines = list(self._backends[version.address].batchers.values())
        if len(lines) == 1:
            lines[0].admit(deadline)

    def idle(self) -> bool:
        """Return whether nothing waits and nothing is under way anywhere."""
        return all(backend.idle() for backend in self._backends.values())

    def _retire(self, address: str) -> None:
        backend = self._backends[address]

        def look() -> None:
            still_out = all(version.address != address for version in _versions(self.table))
            if backend.idle() and still_out and self._backends.get(address) is backend:
                del self._backends[address]
                backend.client.close()
                self._tell_idle(address)

        for batcher in backend.batchers.values():
            batcher.idle = look
        asyncio.get_running_loop().call_soon(look)  # after the word that the table is in use

    def _gauge(self, name: str) -> Mapping[Labels, float]:
        values: dict[Labels, float] = {}
        for version in _versions(self.table):
            for batcher in self._backends[version.address].batchers.values():
                key = (("model", version.model), ("version", version.number))
                values[key] = values.get(key, 0) + getattr(batcher.queue, name)
        return values

    def _ready(self) -> Mapping[Labels, float]:
        return {(): float(any(True for _ in _versions(self.table)))}


def _versions(table: Table) -> list[Version]:
    return [version for served in table.models.values() for version in served.versions.values()]
