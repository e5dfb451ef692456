"""KServe's manifest: as expected, and as the schema of its own definition has it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from tests.render.plans import check_golden
from tests.render.serving_plans import checked_by_schemas, full, small

from tfdyno.core.base.errors import UsageError
from tfdyno.render.base.yaml_text import without_none
from tfdyno.render.serving.kserve import inference_service, render_kserve

if TYPE_CHECKING:
    from tfdyno.core.deploy.serving_plan import ServingPlan

DEFINITION = os.environ.get("TFDYNO_KSERVE_CRD", "")
"""``config/crd/full/serving.kserve.io_inferenceservices.yaml`` of KServe's repository."""
STRICT = """
import sys, yaml, jsonschema

def strict(one):
    if isinstance(one, dict):
        if "properties" in one and not one.get("x-kubernetes-preserve-unknown-fields"):
            one.setdefault("additionalProperties", False)
        if one.get("x-kubernetes-int-or-string"):
            one.pop("type", None)
    for inner in one.values() if isinstance(one, dict) else one if isinstance(one, list) else ():
        strict(inner)

with open(sys.argv[1]) as file:
    versions = yaml.safe_load(file)["spec"]["versions"]
(schema,) = [v["schema"]["openAPIV3Schema"] for v in versions if v["name"] == "v1beta1"]
strict(schema)
schema["properties"]["metadata"] = {"type": "object"}  # the server itself knows that
for text in sys.argv[2:]:
    made = yaml.safe_load(text)
    jsonschema.validate(made, schema)
made["spec"]["predictor"]["minReplica"] = 1
try:
    jsonschema.validate(made, schema)
except jsonschema.ValidationError:
    sys.exit(0)
sys.exit("a wrong key is not seen")
"""


def lean() -> ServingPlan:
    return small("kserve", storage="s3://bucket/cnn", replicas_max=4)


def rich() -> ServingPlan:
    return full("kserve", storage="gs://bucket/models")


def test_the_manifest_is_as_expected() -> None:
    check_golden("serving/small.kserve.yaml", render_kserve(lean())["kserve.yaml"])
    check_golden("serving/full.kserve.yaml", render_kserve(rich())["kserve.yaml"])


@pytest.mark.slow
@pytest.mark.skipif(not DEFINITION, reason="TFDYNO_KSERVE_CRD names no definition of KServe")
def test_kserve_accepts_the_manifest_strictly() -> None:
    texts = (render_kserve(plan)["kserve.yaml"] for plan in (lean(), rich()))
    checked_by_schemas(STRICT, DEFINITION, *texts)


def test_what_lies_beside_the_model_is_rendered_too() -> None:
    assert "models/batching.config" in render_kserve(lean())
    assert "models/Fashion_cnn/config.pbtxt" in render_kserve(rich())
    (argument,) = [
        one
        for one in inference_service(lean())["spec"]["predictor"]["model"]["args"]
        if "batching_parameters_file" in one
    ]
    assert argument.endswith("=/mnt/models/batching.config")


def test_it_scales_by_the_rate_of_the_sizing_else_by_what_is_in_flight() -> None:
    found = [inference_service(one)["spec"]["predictor"] for one in (rich(), lean())]
    assert [(one["scaleMetric"], one["scaleTarget"]) for one in found] == [
        ("rps", 812), ("concurrency", 64),
    ]  # fmt: skip


def test_nothing_is_in_it_that_knative_refuses() -> None:
    predictor = without_none(inference_service(rich()))["spec"]["predictor"]
    assert "lifecycle" not in predictor["model"]
    assert "terminationGracePeriodSeconds" not in predictor


def test_without_storage_there_is_nothing_to_fetch() -> None:
    with pytest.raises(UsageError, match="KServe fetches the model itself; say where it lies"):
        render_kserve(small("kserve"))
