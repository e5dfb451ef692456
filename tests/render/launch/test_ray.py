"""A plan in the words of Ray Train."""

from __future__ import annotations

import pytest
import yaml
from tests.render.plans import AWKWARD, check_golden, full, plan

from tfdyno.core.base.errors import UsageError
from tfdyno.render.launch.ray import ray_plan, render_ray


def test_the_plan_is_as_expected() -> None:
    check_golden("small.ray.yaml", render_ray(plan("ray", restarts=2)))
    check_golden("full.ray.yaml", render_ray(full("ray")))


def test_each_node_is_a_worker_with_all_of_its_cards() -> None:
    made = ray_plan(full("ray"))
    assert made["scaling_config"]["num_workers"] == 4
    assert made["scaling_config"]["resources_per_worker"]["GPU"] == 8
    assert made["run_config"]["failure_config"] == {"max_failures": 3}


def test_awkward_values_are_read_back_as_they_are() -> None:
    made = yaml.safe_load(render_ray(full("ray")))
    assert made["worker"]["environment"] == dict(AWKWARD)
    assert made["worker"]["words"][-1] == "it's; rm -rf $HOME"


def test_the_files_of_ray_lie_in_the_folder_of_the_run() -> None:
    assert ray_plan(plan("ray"))["run_config"]["storage_path"] == (
        "/srv/project/tfdyno-runs/small/ray"
    )


def test_workers_on_one_machine_have_ports_of_their_own() -> None:
    """Each adds its number on its machine; the port of all would be the same otherwise."""
    worker = ray_plan(plan("ray", port=5000))["worker"]
    assert worker["port"] == 5000
    assert "--port" not in worker["words"]


def test_what_is_meant_for_pods_is_refused_without_them() -> None:
    with pytest.raises(UsageError, match="--with claim=team is for KubeRay"):
        render_ray(plan("ray", extra=(("claim", "team"),)))


def test_a_training_that_shrinks_is_refused_with_the_reason() -> None:
    with pytest.raises(UsageError, match="MultiWorkerMirroredStrategy keeps its workers"):
        render_ray(plan("ray", extra=(("min_nodes", "1"),)))
    both = (("kuberay", "rayjob"), ("min_nodes", "1"))
    with pytest.raises(UsageError, match="min_nodes=1 is not possible"):
        render_ray(plan("ray", extra=both))
