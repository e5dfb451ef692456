"""A plan as manifests: as expected, and as the schemas of Kubernetes and Kubeflow have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.render.plans import AWKWARD, check_golden, full, plan

from tfdyno.core.base.errors import UsageError
from tfdyno.render.base.yaml_text import without_none
from tfdyno.render.launch.kubernetes import (
    job_set,
    job_spec,
    pod_spec,
    render_kubernetes,
    train_job,
    training_runtime,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Value
    from tfdyno.core.cluster.launch_plan import LaunchPlan

EXTRA = (("claim", "team"), ("namespace", "ml"), ("queue", "gpus"), ("pull_secret", "key"),
         ("selector", "nvidia.com/gpu.product:NVIDIA-H100-80GB-HBM3"),
         ("service_account", "trainer"))  # fmt: skip


def rich(**given: Any) -> LaunchPlan:
    return full("kubernetes", folder="/workspace", **{"extra": EXTRA, **given})


def lean() -> LaunchPlan:
    return plan("kubernetes", image="train:1", folder="/workspace", extra=(("claim", "team"),))


def test_the_manifests_are_as_expected() -> None:
    check_golden("small.jobset.yaml", render_kubernetes(lean()))
    check_golden("full.jobset.yaml", render_kubernetes(rich()))
    kind = (*EXTRA, ("kind", "trainjob"))
    check_golden("full.trainjob.yaml", render_kubernetes(rich(extra=kind)))


def test_awkward_values_are_read_back_as_they_are() -> None:
    (made,) = yaml.safe_load_all(render_kubernetes(rich()))
    pod = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    values = {one["name"]: one["value"] for one in container["env"]}
    found = {name: values[name].replace("$$", "$") for name, _ in AWKWARD}
    assert found == dict(AWKWARD)
    assert container["command"][-1] == "it's; rm -rf $$HOME"


def test_a_dollar_is_one_and_of_a_name_given_twice_the_last_counts() -> None:
    """Kubernetes puts the value of a variable for $(NAME), and a dollar for $$."""
    twice = (("A", "1"), ("A", "$(HOME)"))
    made = rich(environment=twice, script_arguments=("$(A)",))
    (container,) = pod_spec(made)["containers"]
    assert [one for one in container["env"] if one["name"] == "A"] == [
        {"name": "A", "value": "$$(HOME)"}
    ]
    assert container["command"][-1] == "$$(A)"
    assert train_job(made)["spec"]["trainer"]["command"] == container["command"]


def test_pods_find_each_other_by_the_names_of_the_jobset() -> None:
    (made,) = yaml.safe_load_all(render_kubernetes(lean()))
    (job,) = made["spec"]["replicatedJobs"]
    env = job["template"]["spec"]["template"]["spec"]["containers"][0]["env"]
    expected = f"{made['metadata']['name']}-{job['name']}-0-{{rank}}.{made['metadata']['name']}"
    assert env == [{"name": "TFDYNO_ADDRESS", "value": expected}]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"image": ""}, "name it with --image"),
        ({"extra": ()}, "claim=NAME"),
        ({"extra": (("claim", "a"), ("kind", "trainjbo"))}, "did you mean trainjob"),
        ({"extra": (("claim", "a"), ("selector", "gpu"))}, "selector=key:value"),
    ],
)
def test_what_pods_lack_is_told(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        render_kubernetes(rich(**given))


def test_kubernetes_accepts_job_and_pod_strictly() -> None:
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing")
    pod = pod_spec(rich())
    for kind, version, spec in (("Pod", "v1", pod), ("Job", "batch/v1", job_spec(rich(), pod))):
        made = {"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, "spec": spec}
        validate.validate(without_none(made), "1.34", strict=True)
    wrong = without_none({**pod, "restartPolicyy": "Never"})
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": wrong}
    with pytest.raises(validate.ValidationError):
        validate.validate(made, "1.34", strict=True)


@pytest.mark.parametrize("make", [job_set, training_runtime, train_job])
def test_kubeflow_keeps_every_key(make: Callable[[LaunchPlan], dict[str, Any]]) -> None:
    """Its models drop what they do not know, so that a wrong key is one that does not come back."""
    models = pytest.importorskip(
        "kubeflow_trainer_api.models", reason="kubeflow_trainer_api is missing"
    )
    kinds: dict[object, Any] = {
        job_set: models.JobsetV1alpha2JobSet,
        training_runtime: models.TrainerV1alpha1TrainingRuntime,
        train_job: models.TrainerV1alpha1TrainJob,
    }
    kind = kinds[make]
    for made in (make(rich()), make(lean())):
        plain = without_none(made)
        assert lost(plain, kind.from_dict(plain).to_dict()) == []
    wrong = {**without_none(make(rich())), "specc": 1}
    assert lost(wrong, kind.from_dict(wrong).to_dict()) == ["/specc"]


def lost(given: Value, kept: Value, where: str = "") -> list[str]:
    """Paths of what is not in ``kept``, or is something else there."""
    if isinstance(given, dict) and isinstance(kept, dict):
        found = []
        for key, value in given.items():
            found += [f"{where}/{key}"] if key not in kept else lost(
                value, kept[key], f"{where}/{key}"
            )  # fmt: skip
        return found
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        pairs = enumerate(zip(given, kept, strict=True))
        return [path for n, (a, b) in pairs for path in lost(a, b, f"{where}/{n}")]
    return [] if str(given) == str(kept) else [where]
