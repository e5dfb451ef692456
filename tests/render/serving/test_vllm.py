"""render/serving/vllm: a compose file whose flags vLLM has, on loopback or with a token."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import yaml
from tests.language_models import LLAMA_8B, PLAN
from tests.render.serving.test_kubernetes import STRICT
from tests.render.serving_plans import COMPOSE, checked_by_schemas

from tfdyno.render.serving.images import vllm_image
from tfdyno.render.serving.vllm import FLAGS, arguments, figures, flags, render_vllm

if TYPE_CHECKING:
    from tfdyno.core.deploy.language_model import TextServerPlan


def service(**changes: Any) -> dict[str, Any]:
    document = yaml.safe_load(render_vllm(replace(PLAN, **changes))["compose.yaml"])
    assert list(document) == ["name", "services"]
    found: dict[str, Any] = document["services"]["vllm"]
    return found


def test_every_flag_that_is_written_is_in_the_table_with_its_source() -> None:
    known = flags()
    for plan in (PLAN, replace(PLAN, precision="float8")):
        assert {one for one in arguments(plan) if one.startswith("--")} <= set(known)
    assert set(known) == {one for one in arguments(replace(PLAN, precision="float8"))
                          if one.startswith("--")}  # fmt: skip
    assert FLAGS.read_text().count("vllm 0.33.0") >= len(known)
    assert vllm_image().endswith(":v0.33.0")


def test_the_sizes_are_the_plans() -> None:
    given = arguments(PLAN)
    assert dict(zip(given[::2], given[1::2], strict=True)) == {
        "--served-model-name": "chat",
        "--dtype": "bfloat16",
        "--tensor-parallel-size": "2",
        "--gpu-memory-utilization": "0.9",
        "--max-model-len": "2500",
        "--max-num-seqs": "30",
        "--max-num-batched-tokens": "2048",
    }
    [card] = service()["deploy"]["resources"]["reservations"]["devices"]
    assert card["count"] == 2


def test_float8_is_a_quantization_of_weights_and_computes_in_bfloat16() -> None:
    given = arguments(replace(PLAN, precision="float8"))
    assert given[given.index("--quantization") + 1] == "fp8"
    assert given[given.index("--dtype") + 1] == "bfloat16"


def test_it_is_published_on_loopback_unless_another_host_is_named_and_then_asks_for_a_token() -> (
    None
):
    assert service()["ports"] == ["127.0.0.1:8000:8000"]
    assert service()["environment"]["VLLM_API_KEY"] == "${VLLM_API_KEY:-}"
    assert service(host="::1")["ports"] == ["[::1]:8000:8000"]
    exposed = service(host="0.0.0.0", port=80)
    assert exposed["ports"] == ["0.0.0.0:80:8000"]
    assert exposed["environment"]["VLLM_API_KEY"].startswith("${VLLM_API_KEY:?")


def test_the_schema_of_compose_takes_the_file() -> None:
    for plan in (PLAN, replace(PLAN, precision="float8", host="0.0.0.0")):
        checked_by_schemas(COMPOSE, render_vllm(plan)["compose.yaml"])


def test_the_file_says_what_is_computed_assumed_and_not_measured() -> None:
    text = render_vllm(PLAN)["compose.yaml"]
    head = [line for line in text.splitlines() if line.startswith("#")]
    assert head[0] == ("# docker compose up; then http://127.0.0.1:8000/v1/completions, model chat")
    for words in ("8,030,261,248 parameters", "10 GiB to 12 GiB a card", "is assumed",
                  "Not measured: no vLLM was started"):  # fmt: skip
        assert words in text


CLUSTER = replace(PLAN, storage="pvc://models/chat", namespace="text", replicas=3)


def manifests(plan: TextServerPlan = CLUSTER) -> dict[str, dict[str, Any]]:
    documents = yaml.safe_load_all(render_vllm(plan)["kubernetes.yaml"])
    return {one["kind"]: one for one in documents}


def test_a_cluster_has_files_where_it_finds_the_model() -> None:
    assert list(render_vllm(PLAN)) == ["compose.yaml"]
    found = manifests()
    assert list(found) == ["Deployment", "Service", "PodDisruptionBudget"]
    assert {one["metadata"]["namespace"] for one in found.values()} == {"text"}
    assert found["Deployment"]["spec"]["replicas"] == 3
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["/model", *arguments(PLAN)]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "2"}}
    assert container["volumeMounts"][0]["subPath"] == "chat"
    ports = found["Service"]["spec"]["ports"]
    assert (ports[0]["port"], ports[0]["targetPort"]) == (8000, "http")


def test_in_a_cluster_clients_always_send_a_token() -> None:
    [container] = manifests()["Deployment"]["spec"]["template"]["spec"]["containers"]
    token = container["env"][0]
    assert token["name"] == "VLLM_API_KEY"
    assert token["valueFrom"]["secretKeyRef"] == {"name": "chat-token", "key": "token"}
    head = render_vllm(CLUSTER)["kubernetes.yaml"].splitlines()[0]
    assert head == (
        "# kubectl create secret generic chat-token --from-literal=token=TOKEN --namespace text"
    )


def test_a_new_pod_waits_for_the_cards_of_the_old_one() -> None:
    spec = manifests()["Deployment"]["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}


def test_the_strict_schemas_of_kubernetes_take_the_file() -> None:
    checked_by_schemas(STRICT, render_vllm(CLUSTER)["kubernetes.yaml"])


def test_windows_are_told_as_not_counted() -> None:
    windows = replace(PLAN, model=replace(LLAMA_8B, has_windows=True))
    assert "not counted" in " ".join(figures(windows))
    assert "not counted" not in " ".join(figures(PLAN))
