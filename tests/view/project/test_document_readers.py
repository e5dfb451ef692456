"""view.document_readers: what a command printed, read back and printed again, is the same."""

from __future__ import annotations

import contextlib
import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from tests import past_runs

from tfdyno.core.base.codec import to_json
from tfdyno.core.base.errors import UsageError
from tfdyno.core.deploy.edge_document import edge_document
from tfdyno.view.bench.load_text import load_document
from tfdyno.view.deploy.export_text import export_document
from tfdyno.view.diagnose.document import diagnose_document
from tfdyno.view.project.document_readers import diagnosis_of, edge_of, export_of, load_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tfdyno.core.base.untyped import Value

WAYS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "diagnose": (diagnosis_of, diagnose_document), "edge": (edge_of, edge_document),
    "export": (export_of, export_document), "load": (load_of, load_document),
}  # fmt: skip


def shared(new: Value, old: Value) -> Value:
    """Return what is printed now, less the keys that a recorded document does not have yet."""
    if isinstance(new, dict) and isinstance(old, dict):
        return {key: shared(value, old[key]) for key, value in new.items() if key in old}
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        return [shared(value, before) for value, before in zip(new, old, strict=True)]
    return new


def again(printed: Value, raw: Value) -> Value:
    return shared(json.loads(to_json(printed)), raw)


@pytest.mark.parametrize("name", WAYS)
def test_a_recorded_document_comes_back_key_by_key(name: str) -> None:
    read, write = WAYS[name]
    raw = past_runs.document(name)
    assert again(write(read(raw)), raw) == raw


def test_a_difference_that_is_no_number_comes_back_as_infinite() -> None:
    raw = past_runs.document("export")
    raw["formats"][0]["verification"]["differences"][0]["max_abs"] = None
    found = export_of(raw)
    assert found.artefacts[0].verification.max_abs == math.inf
    printed = again(export_document(found), raw)
    assert printed["formats"][0]["verification"] == raw["formats"][0]["verification"]


def test_a_second_look_comes_back_as_well() -> None:
    raw = past_runs.document("diagnose")
    names = ("split_s", "compute_s", "step_s", "held_s", "batch_s")
    primary = {name: raw["primary"][name] for name in ("class", "cause", "summary")}
    raw["after"] = {**{name: raw[name] for name in names}, "primary": primary}
    assert again(diagnose_document(diagnosis_of(raw)), raw) == raw


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("other", [{}, {"format": "tfdyno load 9"}, None])
def test_something_else_is_refused_in_one_sentence(name: str, other: dict[str, Any] | None) -> None:
    raw = past_runs.document("train") if other is None else other
    with pytest.raises(UsageError, match="the file"):
        WAYS[name][0](raw)


@pytest.mark.parametrize("name", WAYS)
def test_a_document_without_one_of_its_keys_is_refused_not_a_defect(name: str) -> None:
    read, _ = WAYS[name]
    raw = past_runs.document(name)
    for key in raw:
        with contextlib.suppress(UsageError):  # some keys have defaults
            read({k: v for k, v in raw.items() if k != key})
