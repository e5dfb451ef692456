"""A plan as a RayJob: as expected, and as the schema of KubeRay has it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.render.plans import AWKWARD, check_golden, full, plan

from tfdyno.core.base.errors import UsageError
from tfdyno.render.base.yaml_text import without_none
from tfdyno.render.launch.kuberay import ray_job
from tfdyno.render.launch.ray import render_ray

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value
    from tfdyno.core.cluster.launch_plan import LaunchPlan

CRD = os.environ.get("TFDYNO_RAYJOB_CRD", "")
EXTRA = (("claim", "team"), ("kuberay", "rayjob"), ("namespace", "ml"), ("pull_secret", "key"),
         ("queue", "gpus"), ("selector", "nvidia.com/gpu.product:NVIDIA-H100-80GB-HBM3"),
         ("service_account", "trainer"))  # fmt: skip


def rich(**given: Any) -> LaunchPlan:
    return full("ray", folder="/workspace", **{"extra": EXTRA, "gpu": "", **given})


def lean() -> LaunchPlan:
    extra = (("claim", "team"), ("kuberay", "rayjob"))
    return plan("ray", image="train:1", folder="/workspace", extra=extra)


def test_the_manifests_are_as_expected() -> None:
    check_golden("small.rayjob.yaml", render_ray(lean()))
    check_golden("full.rayjob.yaml", render_ray(rich()))


def test_the_command_is_read_back_as_it_is() -> None:
    """The shell of the submitting pod splits it once."""
    entry = yaml.safe_load(render_ray(rich()))["spec"]["entrypoint"].replace("$$", "$")
    words = shlex.split(entry)
    assert words[1:7] == ["-m", "tfdyno", "launch", "train.py", "--on", "ray"]
    assert words[-1] == "it's; rm -rf $HOME"
    given = [words[n + 1] for n, word in enumerate(words) if word == "--env"]
    assert given == [f"{name}={value}" for name, value in AWKWARD]


def test_each_node_is_a_pod_with_its_cards_and_the_head_has_none() -> None:
    cluster = ray_job(rich())["spec"]["rayClusterSpec"]
    (group,) = cluster["workerGroupSpecs"]
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (4, 4, 4)
    (worker,) = group["template"]["spec"]["containers"]
    assert worker["resources"]["limits"]["nvidia.com/gpu"] == "8"
    (head,) = cluster["headGroupSpec"]["template"]["spec"]["containers"]
    assert "limits" not in head["resources"]
    mounts = [one["mountPath"] for one in head["volumeMounts"]]
    assert mounts == ["/dev/shm", "/workspace"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"image": ""}, "name it with --image"),
        ({"extra": (("kuberay", "rayjob"),)}, "claim=NAME"),
        ({"extra": (("claim", "a"), ("kuberay", "rayjbo"))}, "did you mean rayjob"),
        ({"extra": (*EXTRA, ("address", "a:1"))}, "do not go together"),
    ],
)
def test_what_pods_lack_is_told(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        render_ray(rich(**given))


@pytest.mark.skipif(not CRD, reason="TFDYNO_RAYJOB_CRD names no schema of KubeRay's RayJob")
def test_kuberay_knows_every_key() -> None:
    (crd,) = yaml.safe_load_all(Path(CRD).read_text())
    (schema,) = [one["schema"]["openAPIV3Schema"] for one in crd["spec"]["versions"]
                 if one["name"] == "v1"]  # fmt: skip
    for made in (rich(), lean()):
        assert wrong(without_none(ray_job(made)), schema) == []
    assert wrong({**without_none(ray_job(lean())), "specc": 1}, schema) == ["/specc: unknown"]
    made = without_none(ray_job(lean()))
    made["spec"]["backoffLimit"] = "3"
    assert wrong(made, schema) == ["/spec/backoffLimit: no integer"]
    del made["spec"]["rayClusterSpec"]["headGroupSpec"]
    assert "/spec/rayClusterSpec: no headGroupSpec" in wrong(made, schema)


TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "integer": (int,),
    "number": (int, float),
}  # fmt: skip


def wrong(value: Value, schema: dict[str, Any], where: str = "") -> list[str]:
    """What an API server would refuse or drop, by path."""
    if schema.get("x-kubernetes-int-or-string"):
        return [] if isinstance(value, int | str) else [f"{where}: no number or text"]
    kind = schema.get("type", "")
    if kind and not isinstance(value, TYPES[kind]):
        return [f"{where}: no {kind}"]
    if "enum" in schema and value not in schema["enum"]:
        return [f"{where}: not one of {schema['enum']}"]
    if isinstance(value, list):
        return [one for n, item in enumerate(value)
                for one in wrong(item, schema["items"], f"{where}/{n}")]  # fmt: skip
    if not isinstance(value, dict):
        return []
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    found = [f"{where}: no {name}" for name in schema.get("required", ()) if name not in value]
    for name, item in value.items():
        if name in known or isinstance(others, dict):
            found += wrong(item, known.get(name, others), f"{where}/{name}")
        elif not schema.get("x-kubernetes-preserve-unknown-fields") and where != "/metadata":
            found.append(f"{where}/{name}: unknown")
    return found
