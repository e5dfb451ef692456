"""Who a process is, from what each engine tells it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.cluster import ProcessRank, cluster_of, host_of, port_of, tf_config_of

SLURM = {
    "SLURM_PROCID": "1",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_NTASKS": "2",
    "SLURM_JOB_ID": "70007",
}


def process(environment: dict[str, str], **given: int) -> ProcessRank:
    found = cluster_of(environment, **given)
    assert found
    return found


def test_without_an_engine_a_process_is_alone() -> None:
    assert cluster_of({}) is None
    assert cluster_of({}, nodes=1) is None


def test_slurm_tells_rank_and_hosts_and_each_job_has_its_port() -> None:
    found = process(SLURM)
    assert found.rank == 1
    assert found.addresses == ("n1:15007", "n2:15007")  # 15000 + 70007 % 10000
    assert found.told_by == "Slurm"


def test_tasks_of_one_host_have_ports_that_follow_each_other() -> None:
    found = process({**SLURM, "SLURM_NTASKS": "3", "SLURM_STEP_TASKS_PER_NODE": "2,1"}, port=5000)
    assert found.addresses == ("n1:5000", "n1:5001", "n2:5000")


def test_tasks_per_node_may_be_written_short() -> None:
    found = process({**SLURM, "SLURM_NTASKS": "4", "SLURM_STEP_TASKS_PER_NODE": "2(x2)"}, port=5000)
    assert found.addresses == ("n1:5000", "n1:5001", "n2:5000", "n2:5001")


def test_an_indexed_job_takes_the_names_of_its_pods_from_a_pattern() -> None:
    pods = {"JOB_COMPLETION_INDEX": "2", "TFDYNO_ADDRESS": "a-node-0-{rank}.a"}
    found = process(pods, nodes=3)
    assert (found.rank, found.own) == (2, "a-node-0-2.a:12355")
    assert cluster_of({**pods, "JOB_COMPLETION_INDEX": "0"}, nodes=1) is None


def test_a_pattern_that_is_the_same_for_all_is_refused() -> None:
    pods = {"JOB_COMPLETION_INDEX": "0", "TFDYNO_ADDRESS": "pod"}
    with pytest.raises(UsageError, match=r"write \{rank\}"):
        cluster_of(pods, nodes=2)


def test_skypilot_tells_one_address_a_line() -> None:
    found = process({"SKYPILOT_NODE_RANK": "1", "SKYPILOT_NODE_IPS": "10.0.0.1\n10.0.0.2"})
    assert found.addresses == ("10.0.0.1:12355", "10.0.0.2:12355")


def test_sagemaker_ranks_its_hosts_by_name() -> None:
    found = process({"SM_HOSTS": '["algo-2", "algo-1"]', "SM_CURRENT_HOST": "algo-2"})
    assert (found.rank, found.addresses) == (1, ("algo-1:12355", "algo-2:12355"))


def test_a_chief_of_tf_config_is_the_first_worker() -> None:
    cluster = {"chief": ["c:1"], "worker": ["w:1", "w:2"]}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 1}}
    found = process({"TF_CONFIG": json.dumps(config)})
    assert (found.rank, found.addresses) == (2, ("c:1", "w:1", "w:2"))


def test_tf_config_of_a_parameter_server_is_refused() -> None:
    config = {"cluster": {"worker": ["w:1"], "ps": ["p:1"]}, "task": {"type": "ps", "index": 0}}
    with pytest.raises(UsageError, match="strategy=ps"):
        cluster_of({"TF_CONFIG": json.dumps(config)})


@pytest.mark.parametrize("text", ["{", "[]", '{"cluster": 3}', '{"cluster": {"worker": "a:1"}}'])
def test_a_broken_tf_config_is_named(text: str) -> None:
    with pytest.raises(UsageError, match="TF_CONFIG cannot be read"):
        cluster_of({"TF_CONFIG": text})


def test_tf_config_stands_before_slurm() -> None:
    config = {"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}
    assert process({**SLURM, "TF_CONFIG": json.dumps(config)}).addresses == ("a:1", "b:1")


def test_given_addresses_stand_before_those_of_the_engine() -> None:
    found = process({**SLURM, "TFDYNO_WORKERS": "127.0.0.1:7001,127.0.0.1:7002"})
    assert (found.rank, found.own) == (1, "127.0.0.1:7002")


def test_an_address_that_is_there_twice_names_both_workers() -> None:
    with pytest.raises(UsageError, match="worker 0 and worker 2 have the same address a:1"):
        cluster_of({"TFDYNO_WORKERS": "a:1,b:1,a:1", "TFDYNO_RANK": "0"})


def test_the_plan_and_the_engine_have_to_count_the_same() -> None:
    with pytest.raises(UsageError, match="Slurm names 2 processes: the plan has 3 nodes"):
        cluster_of(SLURM, nodes=3)


def test_a_rank_beyond_the_last_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no rank 2"):
        cluster_of({"TFDYNO_WORKERS": "a:1,b:1", "TFDYNO_RANK": "2"})


def test_several_nodes_and_nobody_who_tells_is_refused() -> None:
    with pytest.raises(UsageError, match="set TFDYNO_RANK"):
        cluster_of({}, nodes=2)
    with pytest.raises(UsageError, match="nothing says where the others are"):
        cluster_of({"JOB_COMPLETION_INDEX": "0"}, nodes=2)


def test_an_ipv6_address_gets_brackets() -> None:
    found = process({"SKYPILOT_NODE_RANK": "0", "SKYPILOT_NODE_IPS": "fd00::1 fd00::2"})
    assert found.own == "[fd00::1]:12355"
    assert (host_of(found.own), port_of(found.own)) == ("fd00::1", 12355)


@given(size=st.integers(2, 64), data=st.data())
def test_what_a_process_writes_as_tf_config_is_read_as_the_same_process(
    size: int, data: st.DataObject
) -> None:
    rank = data.draw(st.integers(0, size - 1))
    made = ProcessRank(
        rank=rank, addresses=tuple(f"n{n}:99" for n in range(size)), told_by="TF_CONFIG"
    )
    assert process({"TF_CONFIG": tf_config_of(made)}) == made
    assert made.size == size


@pytest.mark.parametrize("address", ["a:http", "a:0", "a:65536", "a:", "a:1:2:3]:5", "a b:1"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError):
        cluster_of({"TFDYNO_WORKERS": f"{address},b:1", "TFDYNO_RANK": "0"})


def test_ports_that_follow_each_other_end_with_the_last_one() -> None:
    with pytest.raises(UsageError, match="a port from 1 to 65535"):
        cluster_of({"TFDYNO_WORKERS": "a,a", "TFDYNO_RANK": "0"}, port=65535)


@pytest.mark.parametrize("nodes", [0, 1])
def test_a_later_rank_without_company_is_refused(nodes: int) -> None:
    with pytest.raises(UsageError, match="nothing says where the others are"):
        cluster_of({"JOB_COMPLETION_INDEX": "3"}, nodes=nodes)


@pytest.mark.parametrize("text", ["9" * 5000, "2(x99999999999)"])
def test_counts_of_slurm_have_an_end(text: str) -> None:
    with pytest.raises(UsageError):
        cluster_of({**SLURM, "SLURM_STEP_TASKS_PER_NODE": text})
    with pytest.raises(UsageError):
        cluster_of({**SLURM, "SLURM_PROCID": "9" * 5000})
