"""A plan as a command job: as expected, and as Azure ML's own loader reads it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.render.managed_readers import AZUREML, read_by
from tests.render.plans import AWKWARD, check_golden, full, plan

from tfdyno.core.base.errors import UsageError
from tfdyno.render.base.yaml_text import without_none
from tfdyno.render.launch.azureml import (
    RUN,
    command_job,
    render_azureml,
    run_folder,
    submit_words,
)

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

EXTRA = (("datastore", "team"), ("experiment", "vision"), ("group", "ml"), ("spot", "true"),
         ("workspace", "research"))  # fmt: skip


def rich(**given: Any) -> LaunchPlan:
    left_out = {"port": 0, "cpus": 0, "memory_bytes": 0, "restarts": 0}
    return full("azureml", **{"extra": EXTRA, **left_out, **given})


def lean(**given: Any) -> LaunchPlan:
    return plan("azureml", **{"image": "train:1", "extra": (("compute", "cpus"),), **given})


def test_the_job_is_as_expected() -> None:
    check_golden("small.azureml.yaml", render_azureml(lean()))
    check_golden("full.azureml.yaml", render_azureml(rich()))


def test_it_says_that_it_is_untested() -> None:
    assert "# untested: " in render_azureml(lean())


def test_awkward_values_are_read_back_as_they_are() -> None:
    made = yaml.safe_load(render_azureml(rich()))
    assert made["environment_variables"] == dict(AWKWARD)
    words = shlex.split(made["command"])
    assert words[-1] == "it's; rm -rf $HOME"
    assert words[words.index("--output") + 1] == RUN


def test_the_run_is_in_the_same_place_when_the_job_is_sent_again() -> None:
    assert run_folder(lean()) == "azureml://datastores/workspaceblobstore/paths/tfdyno-runs/small"
    assert run_folder(rich(output="a/b")) == "azureml://datastores/team/paths/tfdyno-runs/a/b"
    assert command_job(rich())["outputs"]["run"]["path"] == run_folder(rich())


def test_workers_are_told_of_by_azure_where_there_are_several() -> None:
    assert command_job(lean())["distribution"] == {"type": "tensorflow", "worker_count": 2}
    assert command_job(lean(nodes=1))["distribution"] is None


def test_az_starts_it() -> None:
    assert submit_words(lean()) == ("az", "ml", "job", "create", "--file")
    words = "az ml job create --workspace-name research --resource-group ml --file"
    assert submit_words(rich()) == tuple(words.split())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"image": ""}, "name it with --image"),
        ({"extra": (("compute", "a"), ("spot", "true"))}, "spot=true does not go with"),
        ({"extra": (("compute", "a"), ("machine", "b"))}, "machine=b does not go with"),
        ({"gpus_per_node": 0, "gpu": ""}, "--with machine=Standard_DS3_v2"),
        ({"script_arguments": ("${{inputs.x}}",)}, "put something else for"),
        ({"environment": (("A", "${{x}}"),)}, "put something else for"),
        ({"output": "/data/run"}, "is gone when the nodes are"),
    ],
)
def test_what_cannot_be_is_told(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        render_azureml(rich(**given))


@pytest.mark.skipif(not AZUREML, reason="TFDYNO_MANAGED_PYTHON has no azure-ai-ml")
def test_the_loader_of_azure_reads_it() -> None:
    made = [without_none(command_job(one)) for one in (lean(), rich(), lean(nodes=1))]
    assert read_by("azureml", *made) == ""
    assert "limitss" in read_by("azureml", {**made[0], "limitss": {"timeout": 3}})
    wrong = {**made[0], "distribution": {"type": "tensorflow", "workers": 2}}
    assert "distribution" in read_by("azureml", wrong)
