"""The child that loads a served model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tfdyno.core.measure.load import LoadPlan, ServerFacts, StageRun
from tfdyno.core.messages.child import Child


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadServer:
    """Load a server for one stretch; after SIGINT or SIGTERM no more requests are begun."""

    url: str
    plan: LoadPlan
    token: str = ""
    insecure: bool = False
    ca: Path | None = None
    data: Path | None = None
    rows: int = 1
    metrics_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedServer:
    """What the server is, and how it did."""

    server: ServerFacts
    run: StageRun


LOAD = Child(module="tfdyno.load.child", request=LoadServer, result=LoadedServer)
