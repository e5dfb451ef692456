"""A plan as a CustomJob: as expected, and as the service's own types have it."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.render.managed_readers import VERTEX, read_by
from tests.render.plans import AWKWARD, check_golden, full, plan

from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.cluster import cluster_of
from tfdyno.render.base.yaml_text import without_none
from tfdyno.render.launch.managed import machines
from tfdyno.render.launch.vertex import (
    TPUS,
    job_spec,
    render_vertex,
    run_folder,
    submit_words,
    tpu_of,
)

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

BUCKET = (("bucket", "gs://team/runs"),)
EXTRA = (*BUCKET, ("region", "us-central1"), ("spot", "true"), ("disk_gib", "500"),
         ("service_account", "train@team.iam.gserviceaccount.com"))  # fmt: skip


def rich(**given: Any) -> LaunchPlan:
    return full("vertex", **{"extra": EXTRA, "port": 0, "cpus": 0, "memory_bytes": 0, **given})


def lean(**given: Any) -> LaunchPlan:
    extra = (*BUCKET, ("machine", "n1-standard-8"))
    return plan("vertex", image="train:1", folder="", **{"extra": extra, **given})


def test_the_job_is_as_expected() -> None:
    check_golden("small.vertex.yaml", render_vertex(lean()))
    check_golden("full.vertex.yaml", render_vertex(rich()))


def test_it_says_that_it_is_untested() -> None:
    assert "# untested: " in render_vertex(lean())


def test_one_node_is_the_chief_and_the_others_are_workers() -> None:
    counts = [[pool["replicaCount"] for pool in job_spec(lean(nodes=n))["workerPoolSpecs"]]
              for n in (1, 2, 5)]  # fmt: skip
    assert counts == [[1], [1, 1], [1, 4]]


def test_the_nodes_read_the_cluster_of_vertex() -> None:
    """As the page on distributed training has it: a chief, and workers in a second pool."""
    cluster = {"chief": ["pool0-0:2222"], "worker": ["pool1-0:2222", "pool1-1:2222"]}
    told = {"cluster": cluster, "environment": "cloud", "task": {"type": "worker", "index": 1}}
    found = cluster_of({"TF_CONFIG": json.dumps(told)}, nodes=3)
    assert found
    assert (found.rank, found.addresses) == (2, ("pool0-0:2222", "pool1-0:2222", "pool1-1:2222"))


def test_a_dollar_with_a_bracket_is_not_a_variable() -> None:
    made = rich(environment=(("A", "$(HOME) $HOME"),), script_arguments=("$(A)",))
    (chief, _) = job_spec(made)["workerPoolSpecs"]
    assert chief["containerSpec"]["env"] == [{"name": "A", "value": "$$(HOME) $HOME"}]
    assert chief["containerSpec"]["command"][-1] == "$$(A)"


def test_awkward_values_are_read_back_as_they_are() -> None:
    chief = yaml.safe_load(render_vertex(rich()))["workerPoolSpecs"][0]["containerSpec"]
    assert {one["name"]: one["value"] for one in chief["env"]} == dict(AWKWARD)
    assert chief["command"][-1] == "it's; rm -rf $HOME"


def test_the_run_lies_in_the_bucket_and_gcloud_starts_it() -> None:
    assert run_folder(rich()) == "/gcs/team/runs/small"
    assert "--output" in job_spec(lean())["workerPoolSpecs"][0]["containerSpec"]["command"]
    assert submit_words(rich())[:4] == ("gcloud", "ai", "custom-jobs", "create")
    assert "--region=us-central1" in submit_words(rich())


def test_failures_are_told_to_vertex() -> None:
    assert job_spec(rich())["scheduling"]["restartJobOnWorkerRestart"] is True
    assert job_spec(rich(restarts=0))["scheduling"]["disableRetries"] is True


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"image": ""}, "name it with --image"),
        ({"extra": ()}, "--with bucket=gs://NAME"),
        ({"extra": (("bucket", "team"),)}, "write gs://NAME"),
        ({"extra": BUCKET, "gpu": "k80"}, "no machine of vertex with k80 is known here"),
    ],
)
def test_what_nodes_lack_is_told(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        render_vertex(rich(**given))


def test_tpus_are_a_machine_of_their_own() -> None:
    made = job_spec(lean(nodes=1, extra=(*BUCKET, ("tpu", "v5e-8"))))
    (pool,) = made["workerPoolSpecs"]
    assert pool["machineSpec"] == {"machineType": "ct5lp-hightpu-8t", "tpuTopology": "2x4"}


@pytest.mark.skipif(not VERTEX, reason="TFDYNO_MANAGED_PYTHON has no google-cloud-aiplatform")
def test_the_types_of_vertex_take_it() -> None:
    tpu = lean(nodes=1, extra=(*BUCKET, ("tpu", "v5e-4")))
    cards = [lean(gpu=one.gpu, gpus_per_node=one.gpus, extra=BUCKET) for one in machines("vertex")]
    plans = (lean(), rich(), tpu, *cards)
    assert read_by("vertex", *(without_none(job_spec(one)) for one in plans)) == ""
    wrong = without_none(job_spec(rich()))
    wrong["scheduling"]["timeoutt"] = "1s"
    assert "timeoutt" in read_by("vertex", wrong)
    wrong = without_none(job_spec(rich()))
    wrong["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"] = "NVIDIA_GTX_970"
    assert "NVIDIA_GTX_970" in read_by("vertex", wrong)


def test_every_row_has_a_source_and_as_many_chips_as_its_topology() -> None:
    with TPUS.open(newline="") as lines:
        for row in csv.DictReader(lines, strict=True):
            across, down = map(int, row["topology"].split("x"))
            assert across * down == int(row["chips"]) == int(row["name"].rpartition("-")[2])
            assert row["source"]


def test_a_plan_without_tpus_has_none() -> None:
    assert tpu_of(plan("vertex")) is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"extra": (("tpu", "v5-8"),)}, "did you mean v5e-8"),
        ({"nodes": 2}, "does not go with --nodes 2"),
        ({"gpus_per_node": 1, "gpu": "t4"}, "does not go with --gpus-per-node"),
        ({"extra": (("machine", "a"), ("tpu", "v5e-8"))}, "does not go with --with machine"),
    ],
)
def test_what_does_not_go_with_tpus_is_told(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        tpu_of(plan("vertex", **{"nodes": 1, "extra": (("tpu", "v5e-8"),), **given}))
