"""view/memory_document: the documented keys, and numbers that are the nouns' own."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.memories import FINDING, GIB, NEED, answer, memory_map, plan, unfit

from tfdyno.core.base.codec import to_json
from tfdyno.core.choose.memory_answer import MemoryAnswer
from tfdyno.core.doctor.finding import Diagnosis
from tfdyno.core.doctor.oom import OomReport
from tfdyno.view.memory.document import memory_document


def test_a_card_has_its_course_its_tensors_and_its_layers() -> None:
    (card,) = memory_document(answer())["memory"]
    assert card["gpu"] == "card"
    assert card["peak"] == {
        "share": 0.5, "live_bytes": 4 * GIB, "layer": "head", "phase": "backward", "tensors": 3,
        "parts_bytes": {"weights": GIB, "activations": 3 * GIB},
    }  # fmt: skip
    assert [one["live_bytes"] for one in card["timeline"]] == [1.5 * GIB, 4 * GIB, 1.25 * GIB]
    assert list(card["largest"][0]["shape"]) == [64, 112, 112, 64]
    assert [one["layer"] for one in card["layers"]] == ["conv1", ""]
    assert card["fragmentation"] == {"largest_request_bytes": 3 * GIB, "is_fragmented": False}


def test_a_graph_has_what_the_allocator_made_of_it() -> None:
    one = answer()
    card = replace(one.cards[0], map=memory_map(allocator=NEED))
    (found,) = memory_document(replace(one, cards=(card,)))["memory"]
    assert found["fragmentation"]["fragment_bytes"] == GIB
    assert found["fragmentation"]["largest_free_bytes"] == 1.5 * GIB


def test_a_plan_has_every_option_flat_with_its_ratio_and_the_recipe() -> None:
    (found,) = memory_document(answer(plan()))["plan"]
    assert found["fits"] is True
    assert found["answer"].startswith("Should fit NVIDIA Card with mixed_float16")
    assert found["chosen"]["accumulation"] == 2
    assert found["chosen"]["time_ratio"]["best"] == 1.04
    assert len(found["options"]) == 2
    assert found["recipe"]["settings"]["batch_size"] == 16
    assert found["closest"] is None


def test_where_nothing_fits_there_is_no_recipe_but_a_finding() -> None:
    document = memory_document(answer(unfit(), findings=(FINDING,)))
    (found,) = document["plan"]
    assert (found["fits"], found["recipe"], found["chosen"]) == (False, None, None)
    assert found["closest"]["remat"] == "blocks"
    assert document["findings"][0]["cause"] == "mem.nothing_fits"


def test_a_log_alone_has_its_report() -> None:
    oom = OomReport(kind="gpu", in_use_bytes=2, pool_bytes=8, requested_bytes=4)
    log = Diagnosis(findings=(FINDING,), memory=("Something asked for 4 B.",))
    found = memory_document(MemoryAnswer(names={}, log=log, oom=oom, findings=(FINDING,)))
    assert (found["memory"], found["plan"], found["trace"]) == ([], [], None)
    assert found["log"]["memory"] == ["Something asked for 4 B."]
    assert (found["log"]["report"]["room_bytes"], found["log"]["report"]["is_fragmented"]) == (
        6, True,
    )  # fmt: skip


def test_the_document_is_json() -> None:
    document = memory_document(answer(plan(), unfit(), findings=(FINDING,)))
    assert json.loads(to_json(document))["trace"]["batch_source"] == "as asked"
