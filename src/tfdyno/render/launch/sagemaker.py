"""A launch plan as a training job of SageMaker."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from tfdyno.core.base.errors import UsageError
from tfdyno.core.cluster.launch_plan import node_words
from tfdyno.render.launch import managed

if TYPE_CHECKING:
    from tfdyno.core.cluster.launch_plan import LaunchPlan

KNOWN = {
    "role": "that the nodes act as, arn:aws:iam::…:role/…",
    "bucket": "for what the job leaves, s3://NAME or s3://NAME/FOLDER",
    "efs": "file system that all nodes see, fs-…:/FOLDER",
    "lustre": "FSx for Lustre that all nodes see, fs-…:/MOUNT",
    "subnets": "of the file system, with commas",
    "security_groups": "of the file system, with commas",
    "code": "folder of the workload, s3://NAME/FOLDER",
    "region": "where it runs",
    "machine": managed.MACHINE,
    "spot": managed.SPOT,
    "disk_gib": "of each node",
}
"""Settings of the engine alone."""
SOURCE = "botocore 1.44.5 (2026-11)"
CHECKPOINTS = PurePosixPath("/opt/ml/checkpoints")
"""What lies here goes to the bucket while the one node trains, and comes back with the next."""
CHANNELS = PurePosixPath("/opt/ml/input/data")
DISK_GIB = 30
"""The disk that SageMaker's own SDK asks for."""
LONGEST_WORD, LONGEST_VALUE, MOST_WORDS, MOST_RETRIES = 256, 512, 100, 30
WAIT_RATIO = 2
"""A job on spot machines may take so many times its limit of time, with waiting for them."""
EXAMPLE = "ml.m5.xlarge"
_FILE_SYSTEMS = {"efs": "EFS", "lustre": "FSxLustre"}
_FILE_SYSTEM = re.compile(r"(fs-[0-9a-f]{8,18}):(/[^\s]*)")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/?[\w+=,.@/-]+")


def render_sagemaker(plan: LaunchPlan) -> str:
    """Return the file that ``aws sagemaker create-training-job --cli-input-yaml`` takes.

    Raises:
        UsageError: The plan lacks what nodes need, or no machine with its GPUs is known.
    """
    start = f"{' '.join(submit_words(plan))} file://THIS"
    return managed.job_file(plan, training_job(plan), start, service="SageMaker", source=SOURCE)


def submit_words(plan: LaunchPlan) -> tuple[str, ...]:
    """Return what stands in front of the file to start it."""
    region = plan.option("region")
    words = ("aws", "sagemaker", "create-training-job")
    return (*words, *(["--region", region] if region else []), "--cli-input-yaml")


def run_folder(plan: LaunchPlan) -> str:
    """Return where the nodes see the run; raises ``UsageError`` where several would not."""
    return managed.folder_in(plan, CHANNELS / "run" if _shared(plan) else CHECKPOINTS)


def training_job(plan: LaunchPlan) -> dict[str, Any]:
    """Return the fields of ``CreateTrainingJob``; raises ``UsageError``."""
    managed.check_image(plan)
    bucket = managed.address_parts(plan, "bucket", "s3://")
    shared = _shared(plan)
    checkpoints = {"S3Uri": f"s3://{bucket}/checkpoints", "LocalPath": str(CHECKPOINTS)}
    return {
        "TrainingJobName": plan.name,
        "RoleArn": _role(plan),
        "AlgorithmSpecification": {
            "TrainingImage": plan.image,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": _words(plan),
        },
        "Environment": _environment(plan),
        "InputDataConfig": [*_code(plan), *shared] or None,
        "OutputDataConfig": {"S3OutputPath": f"s3://{bucket}/output"},
        "CheckpointConfig": None if shared else checkpoints,
        "ResourceConfig": {
            "InstanceType": managed.machine_name(plan, EXAMPLE),
            "InstanceCount": plan.nodes,
            "VolumeSizeInGB": managed.disk_gib(plan) or DISK_GIB,
        },
        "VpcConfig": _network(plan),
        "StoppingCondition": _limits(plan),
        "RetryStrategy": _retries(plan),
        "EnableManagedSpotTraining": managed.is_spot(plan) or None,
    }


def _shared(plan: LaunchPlan) -> list[dict[str, Any]]:
    """Return the channel of the file system that all nodes see; empty: one node has the bucket."""
    given = {name: plan.option(name) for name in _FILE_SYSTEMS if plan.option(name)}
    if len(given) > 1:
        raise UsageError("--with efs and --with lustre do not go together",
                         remedy="leave one of them out")  # fmt: skip
    for name, text in given.items():
        found = _FILE_SYSTEM.fullmatch(text)
        if not found:
            what = f"--with {name}={text} cannot be read"
            raise UsageError(what, remedy=f"write {name}=fs-0123456789abcdef0:/FOLDER")
        source = {
            "FileSystemId": found[1],
            "FileSystemType": _FILE_SYSTEMS[name],
            "FileSystemAccessMode": "rw",
            "DirectoryPath": found[2],
        }
        return [{"ChannelName": "run", "DataSource": {"FileSystemDataSource": source}}]
    if plan.nodes > 1:
        raise UsageError(
            "the nodes need a folder that all of them see",
            why="SageMaker copies a bucket to each node, and none sees what another writes",
            remedy="name a file system with --with efs=fs-…:/FOLDER or --with lustre=fs-…:/MOUNT",
        )
    return []


def _network(plan: LaunchPlan) -> dict[str, list[str]] | None:
    subnets, groups = (_listed(plan.option(name)) for name in ("subnets", "security_groups"))
    if bool(subnets) != bool(groups) or (_shared(plan) and not subnets):
        what = "a file system is reached over its own network"
        remedy = "name it with --with subnets=subnet-… --with security_groups=sg-…"
        raise UsageError(what, remedy=remedy)
    return {"Subnets": subnets, "SecurityGroupIds": groups} if subnets else None


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _role(plan: LaunchPlan) -> str:
    role = plan.option("role")
    if not _ROLE.fullmatch(role):
        what = f"--with role={role} is no role" if role else "SageMaker needs a role"
        raise UsageError(
            what, remedy="name it with --with role=arn:aws:iam::123456789012:role/NAME"
        )
    return role


def _code(plan: LaunchPlan) -> list[dict[str, Any]]:
    if not plan.option("code"):
        return []
    source = {
        "S3DataType": "S3Prefix",
        "S3Uri": f"s3://{managed.address_parts(plan, 'code', 's3://')}/",
        "S3DataDistributionType": "FullyReplicated",
    }
    return [{"ChannelName": "code", "DataSource": {"S3DataSource": source}}]


def _words(plan: LaunchPlan) -> list[str]:
    folder = plan.folder or (str(CHANNELS / "code") if plan.option("code") else "")
    words = managed.in_folder(folder, node_words(plan, output=run_folder(plan)))
    too_long = [word for word in words if len(word) > LONGEST_WORD]
    if too_long or len(words) > MOST_WORDS:
        what = "SageMaker does not take a command as long as this"
        why = f"it takes {MOST_WORDS} words of {LONGEST_WORD} characters"
        raise UsageError(what, why=why, remedy="put arguments into a file, or into the workload")
    return words


def _environment(plan: LaunchPlan) -> dict[str, str] | None:
    for name, value in plan.environment:
        if len(value) > LONGEST_VALUE:
            why = f"it takes {LONGEST_VALUE} characters"
            raise UsageError(f"--env {name} is too long for SageMaker", why=why)
    return dict(plan.environment) or None


def _limits(plan: LaunchPlan) -> dict[str, int] | None:
    limit_s = round(plan.time_limit_s)
    if not managed.is_spot(plan):
        return {"MaxRuntimeInSeconds": limit_s} if limit_s else None
    if not limit_s:
        what = "SageMaker has to know how long spot machines may take"
        raise UsageError(what, remedy="say so with --time-limit")
    return {"MaxRuntimeInSeconds": limit_s, "MaxWaitTimeInSeconds": WAIT_RATIO * limit_s}


def _retries(plan: LaunchPlan) -> dict[str, int] | None:
    if plan.restarts > MOST_RETRIES:
        what = f"--restarts {plan.restarts} is more than SageMaker's {MOST_RETRIES}"
        raise UsageError(what, remedy=f"give {MOST_RETRIES} or fewer")
    return {"MaximumRetryAttempts": plan.restarts} if plan.restarts else None
