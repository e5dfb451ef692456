"""Child process: one stretch of load against a served model."""

from __future__ import annotations

import asyncio
import gc
import selectors
import signal
import ssl
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from tfdyno.core.base.errors import UsageError
from tfdyno.core.measure.load import WRONG_ANSWER, LoadPlan, ServerFacts, StageRun
from tfdyno.core.measure.load_url import LoadUrl, read_load_url
from tfdyno.core.messages.load import LOAD, LoadedServer, LoadServer
from tfdyno.load.answer import AnswerCheck
from tfdyno.load.loop import LoadLoop, Recorded, Target
from tfdyno.load.requests import Body, given_bodies, made_bodies
from tfdyno.load.server import BatchCounts, ServerLook, between
from tfdyno.process import child

if TYPE_CHECKING:
    from collections.abc import Sequence

LAG_SHARE = 0.99


def handle(request: LoadServer, progress: child.Progress) -> LoadedServer:
    """Load the server once.

    Raises:
        UsageError: Nobody answers, the model is not there, or the data does not fit it.
    """
    url, plan, data = read_load_url(request.url), request.plan, request.data
    tls = _tls(request) if url.scheme == "https" else None
    look = ServerLook(url, token=request.token, tls=tls)
    model = look.model(needed=not (data and data.suffix == ".json"))
    bodies = (
        given_bodies(url, model.inputs, data, rows=request.rows)
        if data
        else made_bodies(url, model.inputs, rows=request.rows, seed=plan.seed)
    )
    requests = [_request(url, body, request.token) for body in bodies]
    check = AnswerCheck(url, bodies, model.outputs)
    loop = LoadLoop(plan, Target(host=url.host, port=url.port, tls=tls), requests, check)
    began, before = datetime.now(UTC), look.batches(request.metrics_url)
    progress(f"{len(bodies)} different requests")
    with asyncio.Runner(loop_factory=partial(_event_loop, plan)) as runner:
        found, stopped = runner.run(_run(loop, url))
    if check.why:
        found.examples[WRONG_ANSWER] = f"{check.why}: {found.examples.get(WRONG_ANSWER, '')}"
    run = _told(plan, found, between(before, look.batches(request.metrics_url)), bodies)
    faults = _faults(look, model.facts, found, needed=bool(model.inputs))
    began_at = began.isoformat(timespec="seconds")
    run = replace(run, began_at=began_at, faults=tuple(faults), stopped=stopped)
    return LoadedServer(server=model.facts, run=run)


def _event_loop(plan: LoadPlan) -> asyncio.AbstractEventLoop:
    """Make a loop that wakes when an arrival is due: epoll, the usual one, rounds up to ms."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector() if plan.kind == "open" else None)


async def _run(load: LoadLoop, url: LoadUrl) -> tuple[Recorded, bool]:
    """Return the load, and whether a signal ended it."""
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


def _tls(request: LoadServer) -> ssl.SSLContext:
    """Trust as asked for; raises ``UsageError`` where the authority's file cannot be read."""
    try:
        found = ssl.create_default_context(cafile=request.ca)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"cannot read {request.ca}", why=str(error)) from None
    if request.insecure:
        found.check_hostname = False
        found.verify_mode = ssl.CERT_NONE
    return found


def _told(
    plan: LoadPlan, found: Recorded, batches: BatchCounts, bodies: Sequence[Body]
) -> StageRun:
    """Return what was recorded; times to the microsecond."""
    return StageRun(
        plan=plan,
        began_at="",
        length_s=found.length_s,
        start_s=tuple(round(start, 6) for start in found.start_s),
        latency_s=tuple(round(latency, 6) for latency in found.latency_s),
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


def _high(lags_s: Sequence[float]) -> float:
    return sorted(lags_s)[min(len(lags_s) - 1, int(LAG_SHARE * len(lags_s)))] if lags_s else 0.0


def _faults(look: ServerLook, before: ServerFacts, found: Recorded, *, needed: bool) -> list[str]:
    """Return why the server at the end is not the one of the start."""
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
    child.leave(child.serve(handle, LOAD))
