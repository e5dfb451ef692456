from __future__ import annotations

import asyncio

from tests.load_servers import serving

from tfdyno.core.measure.load import CONNECTION, TIMEOUT, LoadPlan
from tfdyno.load.loop import LoadLoop, Recorded, Target

BODY = b'{"instances":[[1,2,3,4]]}'
REQUEST = b"POST /v1/models/m:predict HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


def loaded(origin: str, plan: LoadPlan) -> Recorded:
    target = Target(host="127.0.0.1", port=int(origin.rpartition(":")[2]))
    return asyncio.run(LoadLoop(plan, target, [REQUEST], lambda _n, status, _b: status).run())


def test_arrivals_are_those_of_the_seed_whatever_the_server_does() -> None:
    plan = LoadPlan(kind="open", rate_per_s=100.0, seconds_s=0.5, warmup_s=0.0, seed=7)
    with serving() as quick:
        one = loaded(quick, plan)
    with serving(work_s=0.02) as slow:
        other = loaded(slow, plan)
    assert len(one.codes) == len(other.codes) > 20
    assert max(abs(a - b) for a, b in
               zip(sorted(one.start_s), sorted(other.start_s), strict=True)) < 1e-9  # fmt: skip


def test_a_request_without_an_answer_times_out_and_the_rest_goes_on() -> None:
    plan = LoadPlan(clients=2, seconds_s=4.0, warmup_s=0.0, timeout_s=3.0)
    with serving(work_s=0.002, stall_at=20) as origin:
        found = loaded(origin, plan)
    assert found.codes.count(TIMEOUT) == 1
    assert found.codes.count(200) > 50
    assert max(found.latency_s) >= 3.0


def test_every_client_has_one_request_under_way() -> None:
    plan = LoadPlan(clients=3, seconds_s=0.4, warmup_s=0.0)
    with serving(work_s=0.01) as origin:
        found = loaded(origin, plan)
    ends = sorted(zip(found.start_s, found.latency_s, strict=True))
    for at in (0.1, 0.2, 0.3):
        assert sum(start <= at < start + took for start, took in ends) == 3


def test_a_lost_connection_is_counted_once_and_opened_again() -> None:
    plan = LoadPlan(clients=2, seconds_s=0.5, warmup_s=0.0)
    with serving(work_s=0.002, hang_up_at=10) as origin:
        found = loaded(origin, plan)
    assert found.codes.count(CONNECTION) == 1
    assert found.codes.count(200) > 10  # some came after it
