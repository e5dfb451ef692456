from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.advice import estimate as of_few

from tfdyno.catalog.clusters import cluster_of
from tfdyno.catalog.gpus import all_gpus, find, parse_list
from tfdyno.core.base.errors import UsageError
from tfdyno.jobs.choose.estimate import EstimateRequest, check, counted, estimate, network_notes
from tfdyno.jobs.choose.reference import parse_reference

MODEL = Path(__file__).parents[1].parent / "data" / "models" / "small.py"
T4 = find("t4")


def request(**changes: object) -> EstimateRequest:
    base = EstimateRequest(
        workload=parse_reference(f"{MODEL}:convnet"), gpus=(T4,), batch_size=64, route="quick"
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def test_every_card_and_number_of_replicas_gets_an_ordered_finite_answer() -> None:
    cards = tuple(gpu for gpu in all_gpus() if gpu.vendor.upper() == "NVIDIA")
    answer = estimate(request(gpus=cards, replicas=(1, 4)))
    assert [one.gpu for one in answer.estimates[::2]] == [gpu.slug for gpu in cards]
    for one in answer.estimates:
        for value in (one.step_s, one.device_memory_bytes, one.energy_j_per_step):
            assert 0.0 < value.low <= value.best <= value.high < math.inf


def test_without_a_batch_the_default_of_keras_is_taken_and_said() -> None:
    answer = estimate(request(batch_size=0))
    assert answer.estimates[0].batch_size == 32
    assert answer.batch_source == "assumed: Keras' default"


def test_execution_is_what_keras_does_unless_it_is_named() -> None:
    one, many = estimate(request(replicas=(1, 2))).estimates
    assert (one.execution, many.execution) == ("xla", "graph")
    named = estimate(request(replicas=(1, 2), execution="xla")).estimates
    assert [each.execution for each in named] == ["xla", "xla"]


@pytest.mark.parametrize("verify", [None, True])
def test_a_step_without_xla_is_answered_without_a_compile_and_says_so(verify: bool | None) -> None:
    told: list[str] = []
    asked = request(route="exact", execution="graph", verify=verify)
    answer = estimate(asked, progress=told.append)
    assert answer.notes == ("Nothing was compiled: the step runs without XLA.",)
    (one,) = answer.estimates
    assert one.made_by == {"time": "quick", "memory": "quick"}
    assert not one.max_batch_verified
    assert not [line for line in told if line.startswith("compiling")]


def test_a_global_batch_is_shared_by_the_replicas() -> None:
    found = estimate(request(batch_size=0, global_batch_size=128, replicas=(1, 2, 4))).estimates
    assert [one.batch_size for one in found] == [128, 64, 32]
    assert {one.global_batch_size for one in found} == {128}


def test_a_named_link_replaces_the_cards_own() -> None:
    found = estimate(request(replicas=(8,), link="pcie3-x16")).estimates[0]
    assert found.link == "pcie3-x16"


def test_a_link_that_the_card_does_not_have_is_refused() -> None:
    with pytest.raises(UsageError, match="Tesla T4 has no NVLink; leave --link out"):
        check(request(replicas=(2,), link="nvlink3-nvswitch-a100"))


def test_more_cards_than_a_machine_holds_are_told_to_lack_a_network() -> None:
    (note,) = estimate(request(replicas=(8, 16))).notes
    assert note.startswith("More than 8 x Tesla T4 need several machines")
    assert not estimate(request(replicas=(8,))).notes
    assert not estimate(request(replicas=(16,), link="ib-hdr-200")).notes
    infer = parse_reference(f"{MODEL}:convnet", mode="infer")
    assert not estimate(request(workload=infer, replicas=(16,))).notes


def test_one_card_gets_its_curve_and_largest_tensors() -> None:
    one = estimate(request()).estimates[0]
    sizes = [each.held_bytes for each in one.largest_buffers]
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == 10
    peak_bytes = max(alive for _, alive in one.live_curve_bytes)
    assert peak_bytes <= one.peak_memory_bytes.high
    assert {each.layer for each in one.largest_buffers} - {""}


@pytest.mark.parametrize(
    ("precision", "warning"),
    [
        ("mixed_bfloat16", "bfloat16"),
        ("tf32", "has no TF32"),
    ],
)
def test_an_unsupported_precision_is_answered_with_a_warning(precision: str, warning: str) -> None:
    answer = estimate(request(precision=precision))
    assert any(warning in text for text in answer.estimates[0].warnings)


def test_tf32_and_strict_float32_share_a_trace_but_not_a_time() -> None:
    cards = parse_list("a100-sxm4-80gb")
    fast, strict = (estimate(request(gpus=cards, precision=name)) for name in ("tf32", "float32"))
    assert fast.trace == strict.trace
    assert fast.estimates[0].step_s.best < strict.estimates[0].step_s.best


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": -3}, "a batch of -3 is not possible"),
        ({"batch_size": 1 << 21}, "a batch of 2,097,152 is not possible"),
        ({"global_batch_size": 64}, "give --batch-size or --global-batch, not both"),
        ({"batch_size": 0, "global_batch_size": 65, "replicas": (2,)}, "cannot be shared by 2"),
        ({"replicas": (0,)}, "0 replicas are not possible"),
        ({"replicas": (2000,)}, "2000 replicas are not possible"),
        (
            {"nodes": (200,), "network": "eth-25g"},
            "200 nodes of 8 are not possible: they have 1,600 GPUs; give 1 to 128 nodes",
        ),
        (
            {"replicas": (16,), "link": "eth-25g", "network": "ib-hdr-200"},
            "name the network once: --link eth-25g is a network",
        ),
        (
            {"gpus": (find("rtx-2060-mobile"),), "replicas": (4,), "gpus_per_node": 4},
            "is the only card of its machine",
        ),
        ({"verify": True}, "--verify needs the compiler"),
        ({"gpus": (replace(T4, vendor="AMD", name="MI300X"),)}, "MI300X cannot be estimated"),
    ],
)
def test_a_question_without_an_answer_is_refused_before_any_work(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        check(request(**changes))


def test_a_network_as_the_link_has_one_layout_for_a_whole_series() -> None:
    small = counted(request(replicas=(1, 2, 8), link="eth-25g"))
    assert (small.link, small.network, small.gpus_per_node) == ("", "eth-25g", 1)
    large = counted(request(replicas=(1, 2, 16), link="eth-25g"))
    assert (large.network, large.gpus_per_node) == ("eth-25g", 0)
    named = counted(request(replicas=(1, 2), link="eth-25g", gpus_per_node=2))
    assert named.gpus_per_node == 2
    assert counted(small) == small


def test_nodes_have_the_usual_number_of_cards() -> None:
    found = counted(request(gpus=(find("a100-sxm4-80gb"),), nodes=(1, 2), network="ib-hdr-200"))
    assert (found.replicas, found.gpus_per_node) == ((8, 16), 8)


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"replicas": (4,), "network": "eth-25g"}, "eth-25g joins machines, and one machine holds"),
        ({"gpus": (find("gh200-96gb"),), "replicas": (4,)}, "ib-ndr-400 is taken between them"),
        ({"gpus": (find("rtx-2060-mobile"),), "replicas": (2,)}, "eth-10g is taken between them"),
        ({"replicas": (8, 16), "network": "eth-25g"}, ""),
        ({"gpus": (find("gh200-96gb"),), "replicas": (4,), "network": "eth-25g"}, ""),
    ],
)
def test_what_joins_the_machines_is_never_silent(changes: dict[str, Any], note: str) -> None:
    """By the cluster alone: nothing is traced."""
    asked = counted(request(**changes))
    found = []
    for count in asked.replicas:
        cluster = cluster_of(asked.gpus[0], count, network=asked.network)
        named = cluster.network.slug if cluster.network else ""
        found.append(of_few(gpu=asked.gpus[0].slug, replicas=count, nodes=cluster.nodes,
                            network=named, link=named or "pcie3-x16"))  # fmt: skip
    told = network_notes(asked, found)
    assert len(told) == bool(note)
    assert note in "".join(told)
    serving = [replace(one, mode="infer") for one in found]
    assert network_notes(asked, serving) == ()


def test_unknown_executions_and_links_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="execution 'fast' is not one of xla, graph"):
        estimate(request(execution="fast"))
    with pytest.raises(UsageError, match="no link 'nvlnk4'"):
        estimate(request(link="nvlnk4"))


def test_the_largest_batch_is_compiled_where_one_card_is_compiled_for() -> None:
    [card] = parse_list("a100-sxm4-40gb:1g.5gb")
    [one] = estimate(request(gpus=(card,), route="exact")).estimates
    assert one.max_batch_verified
    assert one.max_batch_size
    assert one.max_batch_size > 1000
    [unproven] = estimate(request(gpus=(card,), route="exact", verify=False)).estimates
    assert not unproven.max_batch_verified
    assert one.fits_verified  # compiled for this card at the batch that is asked for
    assert unproven.fits_verified
    assert one.max_batch_size == pytest.approx(unproven.max_batch_size, rel=0.1)
