"""A made-up model while it is loaded; real ones are in test_child.py."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.core.messages.serve import Known, ServedBatching, ServeModel
from tfdyno.serving.model import loading as serve_loading
from tfdyno.serving.model.binding import describe
from tfdyno.serving.model.loading import Loading, sizes, warm_up
from tfdyno.serving.model.saved import Arrays, Signature, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

BATCHING = ServedBatching(max_batch_size=8, max_delay_ms=0.0)
REQUEST = ServeModel(
    model=Path("m"), name="m", scratch=Path("s"), address="a", max_batch_size=8, max_delay_ms=0.0
)


def signature(calls: list[int]) -> Signature:
    def call(arrays: Arrays) -> Arrays:
        calls.append(len(arrays["x"]))
        return {"y": arrays["x"] + 1}

    x, y = (Tensor(name=name, dtype="float32", shape=(None, 2)) for name in ("x", "y"))
    return Signature(name="serving_default", inputs=(x,), outputs=(y,), call=call)


def loading(
    monkeypatch: pytest.MonkeyPatch, one: Signature, load: Callable[[], object] = lambda: None
) -> Loading:
    """Of a model of which this signature is known, but for its shape in ``load``."""

    def loaded(_request: ServeModel) -> dict[str, Signature]:
        load()
        return {one.name: one}

    monkeypatch.setattr(serve_loading, "loaded", loaded)
    known = Known(signatures={one.name: describe(signature([]), "m")}, batching=BATCHING)
    return Loading(REQUEST, known)


def test_one_sample_and_a_full_batch_are_tried_first_and_the_sizes_between_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[int] = []
    model = loading(monkeypatch, signature(calls))
    model.start()
    model.wait(threading.Event())
    assert calls == [1, 1, 8]  # it is first seen whether made-up values fit
    calls.clear()
    model.warm_up_rest()
    assert calls == [1, 2, 4]


def test_who_asks_before_it_is_there_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    model = loading(monkeypatch, signature([]), gate.wait)
    model.start()
    threading.Timer(0.05, gate.set).start()
    answer = model.call("serving_default", {"x": np.zeros((1, 2), np.float32)})
    assert answer["y"].tolist() == [[1.0, 1.0]]


def test_another_signature_than_before_is_told_and_an_end_is_not_waited_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other = replace(signature([]), outputs=())
    model = loading(monkeypatch, other)
    model.start()
    with pytest.raises(ToolError, match="another than before"):
        model.wait(threading.Event())
    over = threading.Event()
    over.set()
    loading(monkeypatch, other).wait(over)  # never begun


def test_what_takes_one_request_at_a_time_is_tried_with_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert sizes(signature([]), BATCHING) == [1, 2, 4, 8]
    assert sizes(replace(signature([]), unbatched="it mixes rows"), BATCHING) == [1]

    def fail(_arrays: Arrays) -> Arrays:
        raise ValueError("no zeros")

    warm_up(replace(signature([]), call=fail), [1])
    assert "serving_default is not warmed up: no zeros" in capsys.readouterr().err
