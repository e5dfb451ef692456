"""core/serving_plan: names, claims and replicas as a cluster takes them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.serving_plan import ServingPlan, claim_of, dns_label, replicas


@pytest.mark.parametrize(
    ("name", "label"), [("cnn", "cnn"), ("Fashion_MNIST.v2", "fashion-mnist-v2"), ("3d", "m-3d")]
)
def test_a_name_is_made_one_that_kubernetes_takes(name: str, label: str) -> None:
    assert dns_label(name) == label


@given(name=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", fullmatch=True))
def test_every_name_of_a_model_is_a_label_or_refused(name: str) -> None:
    try:
        label = dns_label(name)
    except UsageError:
        return
    assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", label)


def test_a_name_that_is_too_long_is_told() -> None:
    with pytest.raises(UsageError, match="makes no name in Kubernetes: at most 63"):
        dns_label("a" * 64)


def test_a_claim_has_a_name_and_a_folder() -> None:
    assert claim_of("pvc://models/prod/a/") == ("models", "prod/a")
    assert claim_of("pvc://models") == ("models", "")
    for wrong in ("s3://bucket/a", "models", "pvc://", "pvc://A_b/c"):
        with pytest.raises(UsageError, match=r"names no claim.*write pvc://NAME/folder"):
            claim_of(wrong)


def test_replicas_are_a_number_or_two() -> None:
    assert (replicas("3"), replicas("2:10")) == ((3, 3), (2, 10))
    for wrong in ("0", "3:2", "a", "1:2:3", "", ":", "-1:3"):
        with pytest.raises(UsageError, match="cannot be read; write 3, or 2:10"):
            replicas(wrong)


@pytest.mark.parametrize(
    ("engine", "kind", "server"),
    [
        ("kubernetes", "savedmodel", "tfserving"),
        ("kserve", "onnx", "triton"),
        ("triton", "savedmodel", "triton"),
    ],
)
def test_the_server_follows_from_the_kind_of_model(engine: str, kind: str, server: str) -> None:
    plan = ServingPlan(engine=engine, name="a", kind=kind)  # type: ignore[arg-type]
    assert plan.server == server
    assert not plan.scales
