"""A plan as a training job: as expected, and as the service's own model has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.render.managed_readers import SAGEMAKER, read_by
from tests.render.plans import AWKWARD, check_golden, full, plan

from tfdyno.core.base.errors import UsageError
from tfdyno.render.base.yaml_text import without_none
from tfdyno.render.launch.managed import machines
from tfdyno.render.launch.sagemaker import (
    render_sagemaker,
    run_folder,
    submit_words,
    training_job,
)

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

BASE = (("bucket", "s3://team"), ("role", "arn:aws:iam::123456789012:role/train"))
SHARED = (*BASE, ("efs", "fs-0123456789abcdef0:/runs"), ("subnets", "subnet-1, subnet-2"),
          ("security_groups", "sg-1"))  # fmt: skip
EXTRA = (*SHARED, ("code", "s3://team/code"), ("disk_gib", "200"), ("region", "us-east-1"),
         ("spot", "true"))  # fmt: skip


def rich(**given: Any) -> LaunchPlan:
    return full("sagemaker", **{"extra": EXTRA, "cpus": 0, "memory_bytes": 0, "folder": "",
                                **given})  # fmt: skip


def lean(**given: Any) -> LaunchPlan:
    extra = (*BASE, ("machine", "ml.m5.xlarge"))
    basic: dict[str, Any] = {"nodes": 1, "image": "train:1", "folder": "", "extra": extra}
    return plan("sagemaker", **{**basic, **given})


def test_the_job_is_as_expected() -> None:
    check_golden("small.sagemaker.yaml", render_sagemaker(lean()))
    check_golden("full.sagemaker.yaml", render_sagemaker(rich()))


def test_it_says_that_it_is_untested() -> None:
    assert "# untested: " in render_sagemaker(lean())


def test_awkward_values_are_read_back_as_they_are() -> None:
    made = yaml.safe_load(render_sagemaker(rich()))
    assert made["Environment"] == dict(AWKWARD)
    words = made["AlgorithmSpecification"]["ContainerEntrypoint"]
    assert words[-1] == "it's; rm -rf $HOME"
    assert words[:2] == ["env", "--chdir=/opt/ml/input/data/code"]


def test_one_node_has_the_bucket_and_several_a_file_system() -> None:
    one = training_job(lean())
    assert run_folder(lean()) == "/opt/ml/checkpoints/small"
    assert one["CheckpointConfig"]["S3Uri"] == "s3://team/checkpoints"
    many = training_job(rich())
    assert run_folder(rich()) == "/opt/ml/input/data/run/small"
    assert many["CheckpointConfig"] is None
    (_, channel) = many["InputDataConfig"]
    assert channel["DataSource"]["FileSystemDataSource"]["FileSystemAccessMode"] == "rw"
    assert many["VpcConfig"]["Subnets"] == ["subnet-1", "subnet-2"]


def test_spot_machines_may_be_waited_for() -> None:
    limits = training_job(rich())["StoppingCondition"]
    assert limits["MaxWaitTimeInSeconds"] == 2 * limits["MaxRuntimeInSeconds"] == 2 * 36 * 3600


def test_aws_starts_it() -> None:
    words = "aws sagemaker create-training-job --region us-east-1 --cli-input-yaml"
    assert submit_words(rich()) == tuple(words.split())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"image": ""}, "name it with --image"),
        ({"extra": BASE}, "--with efs=fs-"),
        ({"extra": (*BASE, ("efs", "team"))}, "--with efs=team cannot be read"),
        ({"extra": SHARED[:3]}, "--with subnets=subnet-"),
        ({"extra": (*SHARED, ("lustre", "fs-0123456789abcdef0:/a"))}, "do not go together"),
        ({"extra": (*SHARED[2:], BASE[1])}, "--with bucket=s3://NAME"),
        ({"extra": (*SHARED[2:], BASE[0], ("role", "train"))}, "--with role=train is no role"),
        ({"time_limit_s": 0}, "say so with --time-limit"),
        ({"restarts": 31}, "--restarts 31 is more than SageMaker's 30"),
        ({"script_arguments": ("a" * 257,)}, "does not take a command as long"),
        ({"environment": (("A", "b" * 513),)}, "--env A is too long"),
    ],
)
def test_what_cannot_be_is_told(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        render_sagemaker(rich(**given))


@pytest.mark.skipif(not SAGEMAKER, reason="TFDYNO_MANAGED_PYTHON has no botocore")
def test_the_model_of_sagemaker_takes_it() -> None:
    """Its validator lets any text through where a list of names is meant: those are looked up."""
    made = [without_none(training_job(one)) for one in (lean(), rich())]
    assert read_by("sagemaker", *made) == ""
    wrong = {**made[0], "StoppingConditionn": {}}
    assert "StoppingConditionn" in read_by("sagemaker", wrong)
    del made[0]["RoleArn"]
    assert "RoleArn" in read_by("sagemaker", made[0])


@pytest.mark.skipif(not SAGEMAKER, reason="TFDYNO_MANAGED_PYTHON has no botocore")
def test_every_machine_is_one_of_sagemaker() -> None:
    names = [one.name for one in machines("sagemaker")]
    assert read_by("sagemaker machines", *({"name": name} for name in names)) == ""
    assert read_by("sagemaker machines", {"name": "ml.none"})
