"""Child process: one stretch of load against a served model.

Request: ``url``, ``token``, ``insecure``, ``ca`` (a file), ``data`` (a file), ``rows`` and ``plan``
(fields of ``LoadPlan``). Result: ``server`` (``ServerFacts``) and ``run`` (``StageRun``). After
SIGINT or SIGTERM no more requests are begun, and what was measured is handed over.
"""

from __future__ import annotations

import asyncio
import gc
import selectors
import signal
import ssl
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.load import WRONG_ANSWER, LoadPlan, ServerFacts, StageRun
from tfdyno.core.measure.load_url import LoadUrl, read_load_url
from tfdyno.load.answer import AnswerCheck
from tfdyno.load.loop import LoadLoop, Recorded, Target
from tfdyno.load.requests import Body, given_bodies, made_bodies
from tfdyno.load.server import BatchCounts, ServerLook, between
from tfdyno.process import child

if TYPE_CHECKING:
    from collections.abc import Sequence

LAG_SHARE = 0.99


def handle(request: child.Request, progress: child.Progress) -> dict[str, Any]:
    """Load the server once.

    Raises:
        UsageError: Nobody answers, the model is not there, or the data does not fit it.
    """
    url = read_load_url(request["url"])
    plan = LoadPlan(**request["plan"])
    tls = _tls(request) if url.scheme == "https" else None
    look = ServerLook(url, token=request.get("token") or "", tls=tls)
    data, rows = request.get("data") or "", int(request.get("rows") or 1)
    model = look.model(needed=not data.endswith(".json"))
    bodies = (
        given_bodies(url, model.inputs, Path(data), rows=rows)
        if data
        else made_bodies(url, model.inputs, rows=rows, seed=plan.seed)
    )
    requests = [_request(url, body, request.get("token") or "") for body in bodies]
    check = AnswerCheck(url, bodies, model.outputs)
    loop = LoadLoop(plan, Target(host=url.host, port=url.port, tls=tls), requests, check)
    metrics_url = request.get("metrics_url") or ""
    began, before = datetime.now(UTC), look.batches(metrics_url)
    progress(f"{len(bodies)} different requests")
    with asyncio.Runner(loop_factory=partial(_event_loop, plan)) as runner:
        found, stopped = runner.run(_run(loop, url))
    if check.why:
        found.examples[WRONG_ANSWER] = f"{check.why}: {found.examples.get(WRONG_ANSWER, '')}"
    run = _told(plan, found, between(before, look.batches(metrics_url)), bodies)
    faults = _faults(look, model.facts, found, needed=bool(model.inputs))
    run |= {"began_at": began.isoformat(timespec="seconds"), "faults": faults, "stopped": stopped}
    return {"server": asdict(model.facts), "run": run}


def _event_loop(plan: LoadPlan) -> asyncio.AbstractEventLoop:
    """A loop that wakes when an arrival is due: epoll, the usual one, rounds up to milliseconds."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector() if plan.kind == "open" else None)


async def _run(load: LoadLoop, url: LoadUrl) -> tuple[Recorded, bool]:
    """The load, and whether a signal ended it."""
    loop, stopped = asyncio.get_running_loop(), False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        load.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    gc.collect()
    gc.freeze()  # the bodies are not looked at again by the collector
    try:
        found = await load.run()
        return found, stopped
    except (OSError, TimeoutError) as error:
        raise UsageError(f"no server answers at {url.origin}",
                         why=str(error) or "the connection timed out",
                         remedy="start it, or check host and port") from None  # fmt: skip


def _request(url: LoadUrl, body: Body, token: str) -> bytes:
    lines = [
        f"POST {url.predict_path} HTTP/1.1",
        f"Host: {url.netloc}",
        "Content-Type: application/json",
        f"Content-Length: {len(body.data)}",
        *([f"Authorization: Bearer {token}"] if token else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body.data


def _tls(request: child.Request) -> ssl.SSLContext:
    """Trust as asked for; raises ``UsageError`` where the authority's file cannot be read."""
    ca = request.get("ca") or ""
    try:
        found = ssl.create_default_context(cafile=ca or None)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"cannot read {ca}", why=str(error)) from None
    if request.get("insecure"):
        found.check_hostname = False
        found.verify_mode = ssl.CERT_NONE
    return found


def _told(
    plan: LoadPlan, found: Recorded, batches: BatchCounts, bodies: Sequence[Body]
) -> dict[str, Any]:
    """The fields of ``StageRun``; times to the microsecond."""
    fields = asdict(
        StageRun(
            plan=plan,
            began_at="",
            length_s=found.length_s,
            codes=tuple(found.codes),
            rows_per_request=max(1, round(sum(b.rows for b in bodies) / len(bodies))),
            batches=dict(sorted(batches.by_rows.items())),
            batches_are_bounds=batches.are_bounds,
            batch_rows=batches.rows,
            batch_count=batches.count,
            client_cpu_s=found.cpu_s,
            lag_p99_s=_high(found.lags_s),
            reconnects=found.reconnects,
            examples=found.examples,
        )
    )
    return fields | {
        "start_s": [round(start, 6) for start in found.start_s],
        "latency_s": [round(latency, 6) for latency in found.latency_s],
    }


def _high(lags_s: Sequence[float]) -> float:
    return sorted(lags_s)[min(len(lags_s) - 1, int(LAG_SHARE * len(lags_s)))] if lags_s else 0.0


def _faults(look: ServerLook, before: ServerFacts, found: Recorded, *, needed: bool) -> list[str]:
    """Why the server at the end is not the one of the start."""
    try:
        after = look.model(needed=needed).facts
    except UsageError as error:
        return [f"the server does not answer any more: {error.what}"]
    faults = []
    if after.processes != before.processes:
        was, now = (", ".join(one.processes) or "none" for one in (before, after))
        faults.append(f"another process listens at the port than at the start ({was}; now {now})")
    if after.version != before.version:
        faults.append(f"the model changed from version {before.version} to {after.version}")
    if (after.inputs, after.outputs) != (before.inputs, before.outputs):
        faults.append("the model's inputs or outputs changed")
    if after.platform != before.platform or len(found.heads) > 1:
        names = {one.decode("latin-1") for one in found.heads} | {before.platform, after.platform}
        told = ", ".join(sorted(filter(None, names)))
        faults.append(f"answers came from different servers: {told}")
    return faults


if __name__ == "__main__":
    child.leave(child.serve(handle))
