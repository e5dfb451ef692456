"""A plan in the words of Ray Train."""

from __future__ import annotations

import pytest
import yaml
from tests.engines.plans import AWKWARD, check_golden, full, plan

from tfdyno.core.errors import UsageError
from tfdyno.engines.render_ray import ray_plan, render_ray


def test_the_plan_is_as_expected() -> None:
    check_golden("small.ray.yaml", render_ray(plan("ray", restarts=2)))
    check_golden("full.ray.yaml", render_ray(full("ray", time_limit_s=0.0)))


def test_each_node_is_a_worker_with_all_of_its_cards() -> None:
    made = ray_plan(full("ray", time_limit_s=0.0))
    assert made["scaling_config"]["num_workers"] == 4
    assert made["scaling_config"]["resources_per_worker"]["GPU"] == 8
    assert made["run_config"]["failure_config"] == {"max_failures": 3}


def test_awkward_values_are_read_back_as_they_are() -> None:
    made = yaml.safe_load(render_ray(full("ray", time_limit_s=0.0)))
    assert made["runtime_env"]["env_vars"] == dict(AWKWARD)


def test_a_time_limit_is_refused() -> None:
    with pytest.raises(UsageError, match="--time-limit"):
        render_ray(full("ray"))
