"""The whole client against real sockets, with faults that a server may have."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.load_servers import ended, serving, started
from tests.loads import result, stage, stretch

from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.bench._load_doubts import warnings
from tfdyno.jobs.bench.load import LoadRequest, _holds, _probe_s, load_test
from tfdyno.model.measure.load_knee import NextProbe

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.measure.load import LoadResult

QUICK = LoadRequest(url="", clients=4, seconds_s=0.6, timeout_s=2.0)


def loaded(
    origin: str,
    route: str = "v1",
    progress: Callable[[str], None] = lambda _stage: None,
    **changes: object,
) -> LoadResult:
    request = replace(QUICK, url=f"{origin}/{route}/models/m", **changes)  # type: ignore[arg-type]
    return load_test(request, progress=progress)


@pytest.mark.parametrize(("route", "options"), [("v1", {}), ("v2", {"chunked": True})])
def test_a_closed_loop_gets_what_the_server_can_do(route: str, options: dict[str, bool]) -> None:
    with serving(work_s=0.005, **options) as origin:
        found = loaded(origin, route, seconds_s=1.0)
    figures = found.stages[0].figures
    assert not found.failed
    assert 0.0 < figures.accepted_per_s < 210.0  # one at a time, 5 ms each
    assert figures.p50_s
    # Four wait for each other: each takes four turns, however long one is.
    assert figures.p50_s.best == pytest.approx(4 / figures.accepted_per_s, rel=0.4)


def test_latency_of_an_open_loop_counts_from_when_a_request_was_due() -> None:
    """100 requests/s where 50 can be answered: a closed loop would tell 20 ms to the end."""
    with serving(work_s=0.020) as origin:
        found = loaded(origin, rates_per_s=(100.0,), seconds_s=1.0, timeout_s=10.0)
    figures = found.stages[0].figures
    assert not found.failed
    assert figures.requests == pytest.approx(100, rel=0.35)
    # After t seconds t/2 seconds of work wait: the last of 1.2 s waits about 1.2 s.
    assert figures.worst_s > 0.66
    assert found.stages[0].run.plan.kind == "open"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"fail_every": 20}, "were answered 500"),
        ({"fail_every": 20, "fail_with": 503}, "were refused (503)"),
        ({"hang_up_at": 10}, "lost their connection"),
        ({"stall_at": 10}, "timed out"),
        ({"wrong_at": 10}, "not this model's"),
        ({"new_version_at": 20}, "the model changed from version 1 to 2"),
    ],
)
def test_a_fault_fails_the_test(options: dict[str, float], words: str) -> None:
    with serving(work_s=0.002, **options) as origin:
        found = loaded(origin, timeout_s=1.0)
    assert found.failed
    assert words in " ".join(found.faults)


def test_refusals_may_be_part_of_the_test() -> None:
    with serving(work_s=0.010, most_wait_s=0.030) as origin:
        found = loaded(origin, rates_per_s=(400.0,), seconds_s=1.0, allow_refusals=True)
    figures = found.stages[0].figures
    assert not found.failed
    assert figures.accepted + figures.refused == figures.requests
    # 100/s at most with 10 ms each, of 400; fewer where others keep the processors
    assert 0 < figures.accepted < figures.refused
    assert figures.refused_ratio == figures.refused / figures.requests
    assert figures.p99_s
    assert figures.p99_s.best > 0.010  # of the accepted alone: a refusal takes no work


def test_a_server_that_is_replaced_midway_fails_the_test() -> None:
    process, port = started(work_s=0.002)
    others: list[subprocess.Popen[str]] = []

    def replace_it() -> None:
        ended(process)
        others.append(started(port, work_s=0.002)[0])

    timer = threading.Timer(1.0, replace_it)

    def hear(stage: str) -> None:
        if "different requests" in stage:  # the client has read the metadata and begins to send
            timer.start()

    try:
        found = loaded(f"http://127.0.0.1:{port}", progress=hear, seconds_s=3.0)
    finally:
        timer.join()
        for one in [process, *others]:
            ended(one)
    assert found.failed
    assert "another process listens at the port" in " ".join(found.faults)


def test_connections_that_the_server_closes_after_each_answer_are_no_fault() -> None:
    with serving(close=True) as origin:
        found = loaded(origin)
    assert not found.failed
    assert found.stages[0].figures.accepted > 5


@pytest.mark.slow
def test_the_knee_is_below_what_the_server_can_do() -> None:
    with serving(work_s=0.010) as origin:
        found = loaded(origin, "v2", p99_s=0.080, seconds_s=0.7)
    assert not found.failed
    assert found.knee_rate_per_s is None or 20.0 < found.knee_rate_per_s < 110.0
    assert [one.holds is None for one in found.stages].count(True) == 1  # the closed loop
    if found.knee_rate_per_s is not None:
        last = found.stages[-1]
        assert last.run.plan.decides
        assert last.figures.accepted > 368
        assert last.figures.p99_s
        assert last.figures.p99_s.high <= 0.080


@pytest.mark.parametrize(
    ("rate_per_s", "short_s", "long_s"),
    [(1000.0, 5.0, 20.0), (100.0, 5.0, 20.0), (20.0, 15.0, 75.0), (5.0, 60.0, 120.0),
     (2.0, 60.0, 200.0), (0.1, 60.0, 600.0)],
)  # fmt: skip
def test_what_decides_is_longer_and_has_a_p99_with_an_upper_end(
    rate_per_s: float, short_s: float, long_s: float
) -> None:
    both = [_probe_s(NextProbe(rate_per_s=rate_per_s, decides=one), 5.0) for one in (False, True)]
    assert both == [short_s, long_s]


def test_a_stretch_that_decides_holds_with_its_whole_interval() -> None:
    run = stretch([0.010] * 985 + [0.030] * 5 + [0.050] * 10)  # p99 30 ms, 10 to 50 ms
    run = replace(run, plan=replace(run.plan, kind="open", rate_per_s=100.0))
    sure = replace(run, plan=replace(run.plan, decides=True))
    found = [_holds(one, limit_s, stage(one)) for limit_s in (0.040, 0.050) for one in (run, sure)]
    assert found == [True, False, True, True]


def test_few_requests_and_a_rate_that_nothing_decided_are_told() -> None:
    closed, good = (stretch([0.01] * 400), stretch([0.01] * 400))
    good = replace(good, plan=replace(good.plan, kind="open", rate_per_s=100.0))
    undecided = result(stage(closed), stage(good, holds=True), p99_limit_s=0.1,
                       knee_rate_per_s=100.0)  # fmt: skip
    assert warnings(undecided) == (
        "400 requests at 100 requests/s are few: p99.9 has no upper end before 3,688; give more "
        "--seconds",
        "no longer stretch decided on that rate: it may be too high",
    )
    longer = replace(good, plan=replace(good.plan, decides=True))
    unsure = replace(undecided, knee_rate_per_s=None,
                     stages=(*undecided.stages, stage(longer, holds=False)))  # fmt: skip
    assert "no rate kept the promised p99 for sure in a longer stretch" in warnings(unsure)


def test_the_servers_own_batches_are_told() -> None:
    with serving() as origin:
        found = loaded(origin, "v2", rows=3)
    run = found.stages[0].run
    assert list(run.batches) == [3]
    assert found.stages[0].figures.mean_batch_rows == 3.0
    assert run.batch_count == pytest.approx(len(run.codes), abs=8)


def test_token_and_data_go_with_every_request(tmp_path: Path) -> None:
    body = tmp_path / "x.json"
    body.write_text('{"instances": [[1, 2, 3, 4], [5, 6, 7, 8]]}')
    with serving(token="secret") as origin:
        found = loaded(origin, token="secret", data=body)
        with pytest.raises(UsageError, match="token"):
            loaded(origin, token="wrong")
    assert not found.failed
    assert found.stages[0].run.rows_per_request == 2


def test_a_certificate_is_trusted_only_when_asked_for(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout",
             str(key), "-out", str(certificate), "-subj", "/CN=localhost",
             "-addext", "subjectAltName=IP:127.0.0.1"]  # fmt: skip
    try:
        subprocess.run(words, check=True, capture_output=True)
    except OSError:
        pytest.skip("there is no openssl")
    with serving(certificate=str(certificate), key=str(key)) as origin:
        assert not loaded(origin, insecure=True).failed
        assert not loaded(origin, ca=certificate).failed
        with pytest.raises(UsageError, match="not trusted"):
            loaded(origin)


def test_a_server_without_metadata_needs_data() -> None:
    with serving(no_metadata=True) as origin, pytest.raises(UsageError, match="--data"):
        loaded(origin)


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "http://127.0.0.1:9/v1/models/m"},
        {"url": "nonsense"},
        {"url": "http://127.0.0.1:9/v1/models/m", "rates_per_s": (1.0,), "p99_s": 0.1},
        {"url": "http://127.0.0.1:9/v1/models/m", "insecure": True},
        {"url": "http://127.0.0.1:9/v1/models/m", "data": Path("none.npz")},
        {"url": "http://127.0.0.1:9/v1/models/m", "data": Path("none.txt")},
        {"url": "http://127.0.0.1:9/v1/models/m", "offer": "none/none"},
        {"url": "http://127.0.0.1:9/v1/models/m", "clients": 100_000},
    ],
)
def test_a_question_without_an_answer_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        load_test(replace(QUICK, **changes))  # type: ignore[arg-type]
