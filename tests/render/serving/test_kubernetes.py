"""Manifests of Kubernetes: as expected, and as its strict schemas have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.render.plans import check_golden
from tests.render.serving_plans import checked_by_schemas, full, small

from tfdyno.core.base.errors import UsageError
from tfdyno.render.serving.kubernetes import (
    autoscaler,
    deployment,
    pod_spec,
    quantity,
    render_kubernetes,
)

if TYPE_CHECKING:
    from tfdyno.core.deploy.serving_plan import ServingPlan

STRICT = """
import sys, yaml, kubernetes_validate
for text in sys.argv[1:]:
    for made in yaml.safe_load_all(text):
        kubernetes_validate.validate(made, "1.34", strict=True)
        print(made["kind"])
wrong = {**made, "specc": 1}
try:
    kubernetes_validate.validate(wrong, "1.34", strict=True)
except kubernetes_validate.ValidationError:
    sys.exit(0)
sys.exit("a wrong key is not seen")
"""


def lean() -> ServingPlan:
    return small("kubernetes", storage="pvc://models", replicas_min=2, replicas_max=8)


def kinds(plan: ServingPlan) -> dict[str, Any]:
    made = yaml.safe_load_all(render_kubernetes(plan)["kubernetes.yaml"])
    return {one["kind"]: one for one in made}


def test_the_manifests_are_as_expected() -> None:
    check_golden("serving/small.kubernetes.yaml", render_kubernetes(lean())["kubernetes.yaml"])
    rich = render_kubernetes(full("kubernetes"))
    check_golden("serving/full.kubernetes.yaml", rich["kubernetes.yaml"])
    assert list(rich) == ["kubernetes.yaml", "models/Fashion_cnn/config.pbtxt"]


def test_kubernetes_accepts_every_manifest_strictly() -> None:
    plans = (lean(), full("kubernetes"), small("kubernetes"))
    checked_by_schemas(STRICT, *(render_kubernetes(one)["kubernetes.yaml"] for one in plans))


def test_a_rate_of_the_sizing_scales_else_the_cpus_do() -> None:
    (by_rate,) = autoscaler(full("kubernetes"))["spec"]["metrics"]
    assert by_rate["pods"]["target"] == {"type": "AverageValue", "averageValue": "812500m"}
    (by_cpus,) = autoscaler(lean())["spec"]["metrics"]
    assert by_cpus["resource"]["target"]["averageUtilization"] == 70


@pytest.mark.parametrize(("number", "text"), [(812.5, "812500m"), (3.0, "3"), (0.0001, "1m")])
def test_a_quantity_has_no_point(number: float, text: str) -> None:
    assert quantity(number) == text


def test_a_fixed_number_of_replicas_has_no_autoscaler_and_an_autoscaled_one_no_number() -> None:
    fixed = kinds(small("kubernetes", replicas_min=3, replicas_max=3))
    assert fixed["Deployment"]["spec"]["replicas"] == 3
    assert "HorizontalPodAutoscaler" not in fixed
    assert "replicas" not in kinds(lean())["Deployment"]["spec"]


def test_service_and_budget_find_the_pods_of_the_deployment() -> None:
    made = kinds(lean())
    labels = deployment(lean())["spec"]["template"]["metadata"]["labels"]
    assert made["Service"]["spec"]["selector"] == labels
    assert made["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    names = {one["name"] for one in pod_spec(lean())["containers"][0]["ports"]}
    assert {one["targetPort"] for one in made["Service"]["spec"]["ports"]} == names


def test_a_pod_that_ends_answers_on_until_nobody_asks_it() -> None:
    pod = pod_spec(full("kubernetes"))
    (container,) = pod["containers"]
    assert container["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "10"]
    assert pod["terminationGracePeriodSeconds"] == 45  # 10 s more than Triton's own 30
    assert container["resources"]["limits"] == {"memory": "8192Mi", "nvidia.com/gpu": "1"}


def test_only_a_claim_is_mounted() -> None:
    with pytest.raises(UsageError, match=r"names no claim: .*\(--render kserve\)"):
        render_kubernetes(small("kubernetes", storage="s3://bucket/a"))
    volumes = [one["name"] for one in pod_spec(small("kubernetes"))["volumes"]]
    assert volumes == ["config", "shm"]  # the image holds the model
