from __future__ import annotations

import os

from tfdyno.load.server import BatchCounts, between, listeners, metrics_batches, triton_batches

PAGE = """# HELP tfdyno_batch_rows Rows of one call.
tfdyno_batch_rows_bucket{model="m",version="1",le="1"} 4
tfdyno_batch_rows_bucket{model="m",version="1",le="8"} 10
tfdyno_batch_rows_bucket{model="m",version="1",le="+Inf"} 11
tfdyno_batch_rows_sum{model="m",version="1"} 60
tfdyno_batch_rows_count{model="m",version="1"} 11
tfdyno_batch_rows_bucket{model="other",version="1",le="1"} 99
tfdyno_batch_rows_sum{model="other",version="1"} 99
"""


def test_a_histogram_of_prometheus_is_taken_apart() -> None:
    found = metrics_batches(PAGE, "m")
    assert found.by_rows == {1: 4, 8: 6, -1: 1}
    assert (found.are_bounds, found.rows, found.count) == (True, 60, 11)


def test_tritons_counters_give_the_mean() -> None:
    page = 'nv_inference_count{model="m",version="1"} 40\nnv_inference_exec_count{model="m"} 10\n'
    found = metrics_batches(page, "m")
    assert (found.by_rows, found.rows, found.count) == ({}, 40, 10)


def test_tritons_statistics_give_every_size() -> None:
    sizes = [{"batch_size": 1, "compute_infer": {"count": 3}},
             {"batch_size": 8, "compute_infer": {"count": 2}}]  # fmt: skip
    found = triton_batches({"model_stats": [{"batch_stats": sizes}, {}]})
    assert (found.by_rows, found.rows, found.count) == ({1: 3, 8: 2}, 19, 5)


def test_only_what_was_counted_in_between_counts() -> None:
    before = BatchCounts(by_rows={1: 4}, rows=4, count=4)
    after = BatchCounts(by_rows={1: 4, 8: 2}, rows=20, count=6)
    assert between(before, after) == BatchCounts(by_rows={8: 2}, rows=16, count=2)
    assert between(after, before) == BatchCounts()  # started again: its counts mean nothing


def test_the_process_that_listens_is_found() -> None:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        (name,) = listeners(one.getsockname()[1])
    assert name.startswith(f"{os.getpid()}@")
