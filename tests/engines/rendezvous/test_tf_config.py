"""Who is who in a cluster, and what each process is told."""

from __future__ import annotations

import json
import socket

import pytest

from tfdyno.core.base.errors import UsageError
from tfdyno.engines.rendezvous.tf_config import (
    Task,
    addresses,
    chief_of,
    free_ports,
    loopback_variables,
    multiworker,
    never_ends,
    one_card_each,
    parameter_server,
    tf_config,
)


def test_workers_that_are_all_alike_have_one_chief_and_all_end() -> None:
    tasks = multiworker(3)
    assert [task.name for task in tasks] == ["worker 0", "worker 1", "worker 2"]
    assert chief_of(tasks) == tasks[0]
    assert not any(never_ends(task, tasks) for task in tasks)


def test_beside_a_server_all_but_the_chief_work_until_they_are_ended() -> None:
    tasks = parameter_server(2, 1)
    names = ["chief", "worker 0", "worker 1", "parameter server 0"]
    assert [task.name for task in tasks] == names
    assert chief_of(tasks) == Task(kind="chief")
    assert [never_ends(task, tasks) for task in tasks] == [False, True, True, True]
    assert [task.log_name for task in tasks][1:] == ["worker-0.log", "worker-1.log", "ps-0.log"]


def test_the_cluster_is_the_same_for_all_and_the_task_is_ones_own() -> None:
    tasks = (Task(kind="worker", index=1), Task(kind="chief"), Task(kind="worker"), Task(kind="ps"))
    where = addresses(tasks, [11, 12, 13, 14])
    assert json.loads(tf_config(tasks[0], where)) == {
        "cluster": {
            "chief": ["127.0.0.1:12"],
            "worker": ["127.0.0.1:13", "127.0.0.1:11"],
            "ps": ["127.0.0.1:14"],
        },
        "task": {"type": "worker", "index": 1},
    }


def test_an_evaluator_stands_outside_the_cluster() -> None:
    tasks = (*multiworker(1), Task(kind="evaluator"))
    told = json.loads(tf_config(tasks[1], addresses(tasks, [11, 12])))
    assert told["cluster"] == {"worker": ["127.0.0.1:11"]}
    assert told["task"] == {"type": "evaluator", "index": 0}


@pytest.mark.parametrize(
    ("tasks", "sentence"),
    [
        ((*multiworker(2), Task(kind="worker", index=1)), "worker 1 is there twice"),
        ((Task(kind="ps"),), "the cluster has no chief and no worker 0"),
    ],
)
def test_a_cluster_without_one_chief_is_refused(tasks: tuple[Task, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        chief_of(tasks)


def test_nobody_cannot_train() -> None:
    with pytest.raises(UsageError, match="0 processes cannot train"):
        multiworker(0)
    with pytest.raises(UsageError, match="it has 2 workers and 0 parameter servers"):
        parameter_server(2, 0)


def test_each_worker_has_a_card_and_no_other_process_sees_one() -> None:
    tasks = parameter_server(2, 1)
    seen = one_card_each(tasks, ["3", "MIG-a", "5"])
    assert [seen[task] for task in tasks] == ["-1", "3", "MIG-a", "-1"]
    with pytest.raises(UsageError, match="2 workers need 2 GPUs: this run has 1"):
        one_card_each(tasks, ["3"])


def test_free_ports_are_different_and_can_be_listened_on() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    for port in ports:
        with socket.socket() as server:
            server.bind(("", port))
            server.listen()


def test_the_clusters_messages_take_no_proxy_and_other_exceptions_are_kept() -> None:
    told = loopback_variables({"no_proxy": "intranet,localhost", "https_proxy": "x"})
    assert told == {
        "no_proxy": "intranet,localhost,127.0.0.1",
        "NO_PROXY": "localhost,127.0.0.1",
    }


def test_the_hosts_of_a_cluster_are_kept_from_a_proxy() -> None:
    variables = loopback_variables({"no_proxy": "n1,elsewhere"}, ["n1", "n2", "n2"])
    assert variables == {"no_proxy": "n1,elsewhere,n2", "NO_PROXY": "n1,n2"}
