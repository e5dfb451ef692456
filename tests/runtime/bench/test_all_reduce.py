"""All-reduces of two real processes: right sums, and times that every process agrees to take."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from tfdyno.core.messages.bench import ALL_REDUCE, MeasureAllReduce
from tfdyno.engines.rendezvous.tf_config import free_ports
from tfdyno.jobs.child.worker import run_child

if TYPE_CHECKING:
    from tfdyno.core.cluster.cluster_facts import AllReduce

pytestmark = pytest.mark.tf
SIZES = (4 << 10, 1 << 20)


def test_two_processes_sum_their_buffers_and_agree_on_how_often() -> None:
    where = [f"127.0.0.1:{port}" for port in free_ports(2)]
    found: dict[int, AllReduce] = {}

    def run(rank: int) -> None:
        task = {"cluster": {"worker": where}, "task": {"type": "worker", "index": rank}}
        found[rank] = run_child(
            ALL_REDUCE,
            MeasureAllReduce(between="nodes", sizes_bytes=SIZES, budget_s=0.5),
            timeout_s=200.0,
            env={"TF_CONFIG": json.dumps(task), "no_proxy": "127.0.0.1"},
        )

    threads = [threading.Thread(target=run, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = found[0], found[1]
    # None of them was gone before the others had all: that fails who still receives.
    assert (first.implementation, first.replicas) == ("RING", 2)
    assert first.is_right
    assert second.is_right
    counts = [[(one.size_bytes, len(one.times_s)) for one in each.sizes] for each in found.values()]
    assert counts[0] == counts[1]  # else one would wait for the other for ever
    assert counts[0][0][0] == SIZES[0]
    assert all(count >= 5 for _, count in counts[0])
    assert all(time_s > 0 for one in first.sizes for time_s in one.times_s)
