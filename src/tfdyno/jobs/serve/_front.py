"""The process that clients talk to: how it is started, the table it answers by, and its end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tfdyno.core.messages.serve import (
    FrontCommand,
    FrontSettings,
    Listening,
    ModelFacts,
    ServedBatching,
)
from tfdyno.engines.process.serving_process import Event, ServingProcess, start
from tfdyno.jobs.serve._backend import serving_variables
from tfdyno.jobs.serve._request import LONGEST_WAIT_MS, ServeRequest

MODULE = "tfdyno.serving.front.child"


@dataclass(slots=True, kw_only=True, eq=False)
class ServeFront:
    """What listens for clients, started or not."""

    request: ServeRequest
    python: str
    """The interpreter of the serving environment."""
    hear: Callable[[Event], object]
    """Called with what the process says."""
    process: ServingProcess | None = None
    listening: Listening | None = None
    """What it said when it began to listen."""
    table: Mapping[str, ModelFacts] = field(default_factory=dict)
    """What answers, as it was told last."""
    _table_id: int = 0
    _folder: Path = field(default_factory=Path)
    _port: int = 0
    """Once it is known: a front that is started again takes the same."""

    @property
    def is_started(self) -> bool:
        """Whether there is a process, though it may have ended by itself."""
        return self.process is not None

    @property
    def runs(self) -> bool:
        """Whether its process has not ended."""
        return self.process is not None and self.process.runs

    @property
    def served(self) -> tuple[str, ...]:
        """Versions in the table, in its order."""
        return tuple(next(iter(self.table.values())).versions) if self.table else ()

    def start(self, batching: ServedBatching | None) -> None:
        """Start the process.

        Args:
            batching: What was measured for the promise; None: as asked.
        """
        asked = self.request
        self._folder = Path(tempfile.mkdtemp(prefix="tfdyno-front-"))
        self.process = start(
            (self.python, "-m", MODULE), name="the front",
            environment=serving_variables(self.python, self._folder),
            hear=self.hear, log=asked.log,
        )  # fmt: skip
        settings = FrontSettings(
            host=asked.host, port=self._port or asked.port, grpc_port=asked.grpc_port,
            max_queue=asked.max_queue, deadline_ms=deadline_ms(asked, batching),
            max_body_bytes=asked.max_body_bytes, read_timeout_s=asked.read_timeout_s,
            token=asked.token or None, tls_cert=asked.tls_cert, tls_key=asked.tls_key,
            max_batch_size=batching.max_batch_size if batching else asked.max_batch,
            max_delay_ms=batching.max_delay_ms if batching else asked.max_delay_ms,
        )  # fmt: skip
        self.process.send(settings)

    def tell(self, models: Mapping[str, ModelFacts]) -> bool:
        """Give it the table of what is to answer; whether that is another than before."""
        if models == self.table and self._table_id:
            return False
        self.table, self._table_id = models, self._table_id + 1
        assert self.process
        self.process.send(FrontCommand(command="serve", id=self._table_id, models=models))
        return True

    def drain(self) -> None:
        """Let it take no new requests, and end when those in flight are answered."""
        assert self.process
        self.process.send(FrontCommand(command="drain"))

    def end(self) -> None:
        """End the process, if there is one; nothing of it is left but its port."""
        if self.process is None:
            return
        self.process.end(0.0)
        shutil.rmtree(self._folder, ignore_errors=True)
        if self.listening:
            self._port = self._port or urlsplit(self.listening.url).port or 0
        self.process, self.listening, self.table, self._table_id = None, None, {}, 0


def deadline_ms(asked: ServeRequest, batching: ServedBatching | None) -> float:
    """Return how long a request may wait: as asked; else as promised, if the model keeps that."""
    promised = asked.p99_ms if batching and batching.holds else None
    return asked.deadline_ms or promised or LONGEST_WAIT_MS
