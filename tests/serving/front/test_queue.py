from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.serving.front.queue import Job, JobQueue, Limits, deadline_of

LIMITS = Limits(rows=8, delay_s=0.005, waiting_rows=20)


def job(rows: int = 1, *, at_s: float = 0.0, key: str = "a") -> Job:
    return Job(rows=rows, key=key, arrived_s=at_s)


def filled(*jobs: Job) -> JobQueue:
    queue = JobQueue(LIMITS)
    for each in jobs:
        queue.put(each)
    return queue


def test_a_free_model_starts_at_once() -> None:
    first, second = job(), job()
    queue = filled(first, second)
    assert queue.take(0.0) == [first, second]
    assert queue.waiting_rows == 0


def test_while_a_call_is_under_way_the_next_waits_for_company_but_not_for_long() -> None:
    queue = filled(job(at_s=1.0))
    queue.started()
    assert queue.take(1.004) == []
    assert queue.wake_s() == pytest.approx(1.005)
    assert len(queue.take(1.005)) == 1


def test_a_full_batch_leaves_at_once_and_no_more_calls_than_allowed() -> None:
    queue = filled(*(job(4) for _ in range(3)))
    queue.started()
    assert len(queue.take(0.0)) == 2
    queue.started()
    assert queue.take(9.0) == []
    assert queue.wake_s() is None
    queue.finished(0.01)
    assert len(queue.take(9.0)) == 1


def test_rows_of_other_shapes_are_not_joined_and_the_oldest_goes_first() -> None:
    a, b, c = job(at_s=0.0), job(at_s=0.1, key="b"), job(at_s=0.2)
    queue = filled(b, a, c)
    assert queue.take(1.0) == [a, c]
    assert queue.take(1.0) == [b]


def test_a_dropped_job_is_not_computed_and_frees_its_place() -> None:
    gone, stays = job(5), job(2)
    queue = filled(gone, stays)
    assert queue.drop(gone)
    assert not queue.drop(gone)
    assert queue.waiting_rows == 2
    assert queue.take(0.0) == [stays]


def test_a_full_queue_is_429_with_a_time_to_come_back() -> None:
    queue = filled(job(8), job(8))
    assert queue.refusal(4, 0.0, math.inf) is None
    refusal = queue.refusal(5, 0.0, math.inf)
    assert refusal is not None
    assert (refusal.code, refusal.retry_after_s) == (429, 1)


def test_one_large_request_is_taken_by_an_empty_queue() -> None:
    assert filled().refusal(10_000, 0.0, math.inf) is None


def test_the_answer_is_expected_after_the_calls_before_it() -> None:
    queue = filled(*(job(8) for _ in range(2)))
    queue.started()
    queue.started()
    queue.call_s = 0.1  # two end in each tenth of a second, so one each 50 ms
    assert queue.answer_s(8) == pytest.approx(0.1 + 3 * 0.05)
    queue.in_flight = 0
    assert queue.answer_s(8) == pytest.approx(0.1 + 0.05)


def test_a_deadline_that_cannot_be_met_is_503_at_once() -> None:
    queue = filled(job(8))
    queue.started()
    queue.started()
    queue.call_s = 0.1
    refusal = queue.refusal(1, 5.0, 5.15)
    assert refusal is not None
    assert refusal.code == 503
    assert queue.refusal(1, 5.0, 5.25) is None


def test_what_a_call_that_begins_now_would_answer_too_late_is_taken_out() -> None:
    late, also, in_time = job(), job(), job()
    late.deadline_s, also.deadline_s, in_time.deadline_s = 1.0, 1.05, 1.2
    queue = filled(late, also, in_time)
    queue.call_s = 0.1
    assert queue.hopeless(0.9) == []
    assert queue.hopeless(1.0) == [late, also]
    assert queue.waiting_rows == 1
    assert queue.hopeless(2.0) == []  # the last one is computed: it measures a call anew
    queue.started()
    assert queue.hopeless(2.0) == [in_time]


def test_time_unread_counts_against_the_servers_deadline_not_the_clients() -> None:
    deadline = deadline_of(10.0, 0.5, 0.4, 0.1)
    assert deadline.own_s == pytest.approx(10.4)
    assert deadline.last_s == pytest.approx(10.9)
    assert deadline.client_s == pytest.approx(10.4)
    assert deadline.useful_s == pytest.approx(10.4)
    assert deadline_of(10.0, 0.5, 0.3, 0.1).useful_s == pytest.approx(10.3)
    assert deadline_of(10.0, math.inf, math.inf, 0.1).useful_s == math.inf


def test_one_slow_call_does_not_refuse_for_ever() -> None:
    queue = filled()
    queue.started()
    queue.finished(60.0)
    assert queue.refusal(1, 0.0, 0.1) is None


def test_one_hiccup_among_quick_calls_refuses_nobody_and_a_slower_model_is_believed() -> None:
    queue = filled()
    for call_s in (0.01,) * 20 + (0.5,):
        queue.started()
        queue.finished(call_s)
    queue.started()
    assert queue.refusal(1, 0.0, 0.05) is None
    for _ in range(12):
        queue.finished(0.5)
        queue.started()
    refusal = queue.refusal(1, 0.0, 0.05)
    assert refusal is not None
    assert refusal.code == 503


def test_what_a_call_took_before_is_known_from_the_start() -> None:
    queue = JobQueue(Limits(rows=4, delay_s=0.0, waiting_rows=8), call_s=0.01)
    assert queue.answer_s(1) == pytest.approx(0.01)
    queue.started()
    queue.finished(0.5)  # as in a process that is still waking up
    assert queue.answer_s(1) < 0.025


def test_the_time_of_a_call_is_a_running_mean_and_failed_calls_say_nothing() -> None:
    queue = filled()
    for call_s in (0.1, 0.2, None):
        queue.started()
        queue.finished(call_s)
    assert queue.call_s == pytest.approx(0.12)
    assert queue.empty()


@given(
    st.lists(st.tuples(st.integers(1, 8), st.sampled_from("ab"), st.booleans()), max_size=40),
    st.integers(1, 3),
)
def test_every_job_leaves_once_in_order_and_no_batch_is_too_large(
    wanted: list[tuple[int, str, bool]], calls: int
) -> None:
    queue = JobQueue(Limits(rows=8, delay_s=0.0, waiting_rows=9999, calls=calls))
    jobs = [job(rows, at_s=at, key=key) for at, (rows, key, _) in enumerate(wanted)]
    for each in jobs:
        queue.put(each)
    for each, (_, _, dropped) in zip(jobs, wanted, strict=True):
        if dropped:
            queue.drop(each)
    left: list[Job] = []
    while batch := queue.take(1000.0):
        assert sum(each.rows for each in batch) <= 8
        assert len({each.key for each in batch}) == 1
        left += batch
    kept = [each for each, (_, _, dropped) in zip(jobs, wanted, strict=True) if not dropped]
    for key in "ab":
        assert [e for e in left if e.key == key] == [e for e in kept if e.key == key]
    assert queue.waiting_rows == 0
    assert queue.empty()
