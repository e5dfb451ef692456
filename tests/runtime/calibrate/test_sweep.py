"""What the child writes down while it sweeps; engines are real, their chains short."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tfdyno.core.base.errors import ToolError
from tfdyno.core.messages.calibrate import SWEEP, Peaks, SweepCard
from tfdyno.jobs.child.worker import run_child
from tfdyno.model.time.calibrate.windows import read_windows
from tfdyno.runtime.calibrate import sweep, tensorflow_chain
from tfdyno.runtime.calibrate.points import points

if TYPE_CHECKING:
    from tfdyno.core.base.untyped import Value
    from tfdyno.runtime.calibrate.points import Point


def request(
    tmp_path: Path, *, seconds_s: float = 0.0, smallest: bool = True, most_rounds: int = 200
) -> SweepCard:
    return SweepCard(
        framework="tensorflow", where="cpu", executions=("graph",), seconds_s=seconds_s,
        file=tmp_path / "windows.jsonl", smallest=smallest, most_rounds=most_rounds,
    )  # fmt: skip


def test_every_window_is_a_line_at_once(tmp_path: Path) -> None:
    asked = request(tmp_path, seconds_s=60.0, most_rounds=3)
    told = run_child(SWEEP, asked, timeout_s=120.0)  # sets options of its whole process
    lines = (tmp_path / "windows.jsonl").read_text().splitlines()
    assert json.loads(lines[0]) == {"version": told.version}
    windows = [json.loads(line) for line in lines if "call_s" in line]
    assert all(one["call_s"] > 0.0 for one in windows)
    assert all("used_s" in one for one in windows)
    names = [one["name"] for one in windows]
    assert set(names) == {"graph call", "graph sqrt f32 elements=1"}
    assert read_windows(lines).pace.call_s > 0.0


def test_without_time_the_names_of_all_that_is_left_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorflow_chain, "prepare", lambda **_: None)
    told = sweep.handle(request(tmp_path, smallest=False), lambda _: None)
    assert len(told.left_out) == len(points("cpu"))


def test_the_fewest_are_timed_without_time_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorflow_chain, "prepare", lambda **_: None)
    asked = replace(request(tmp_path, smallest=False), fewest=2)
    told = sweep.handle(asked, lambda _: None)
    assert len(told.left_out) == len(points("cpu")) - 2
    lines = (tmp_path / "windows.jsonl").read_text().splitlines()
    timed = {json.loads(line)["name"] for line in lines if "call_s" in line}
    assert len(timed - {"graph call"}) == 2


def test_a_kernel_that_fails_is_told_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(point: object, count: int, execution: str) -> object:
        if point is not None:
            raise MemoryError("no room\nsecond line")
        return chain(point, count, execution)

    chain = tensorflow_chain.chain
    monkeypatch.setattr(tensorflow_chain, "prepare", lambda **_: None)
    monkeypatch.setattr(tensorflow_chain, "chain", fail)
    told = sweep.handle(request(tmp_path, seconds_s=0.5), lambda _: None)
    assert list(told.failed.values()) == ["no room"]


def test_a_card_that_nobody_sees_is_an_error_that_says_what_to_do() -> None:
    engine: Any = SimpleNamespace(devices=list, NAME="TensorFlow")
    with pytest.raises(ToolError, match=r"TensorFlow sees no GPU.*tfdyno doctor"):
        sweep._device(engine, "gpu")
    assert sweep._device(engine, "cpu") == ""


def test_what_only_a_graph_has_is_swept_there_too() -> None:
    asked = SweepCard(
        framework="tensorflow", where="gpu", executions=("xla", "graph"), seconds_s=0.0,
        file=Path("windows.jsonl"),
    )  # fmt: skip
    wanted = sweep._wanted(asked)
    graph = {point.operation for point, execution in wanted if execution == "graph"}
    assert "multiply" in graph
    assert "gemm" not in graph
    assert [execution for _, execution in wanted[:2]] == ["xla", "graph"]


class Card:
    """Chains that compute nothing, and note what they were asked for."""

    NAME = "a card"

    def __init__(self) -> None:
        self.allowed = False
        self.calls: list[tuple[str, bool]] = []
        self.counts: dict[str, int] = {}
        self.wait = lambda _: None

    def allow_tf32(self, allowed: bool) -> None:
        self.allowed = allowed

    def chain(self, point: Point | None, count: int, _: str) -> Value:
        name = point.name if point else "call"
        self.counts[name] = count
        return lambda: self.calls.append((name, self.allowed))

    def paces(self, _: str) -> dict[str, float]:
        return {}


def swept(card: Card, tmp_path: Path, peaks: Peaks) -> None:
    """All points of a GPU, two rounds of them."""
    with (tmp_path / "windows.jsonl").open("w") as file:
        engine = sweep._Sweep(card, file, "gpu", lambda _: None, time.monotonic() + 60.0, peaks)
        products = [point for point in points("gpu") if point.operation == "gemm"]
        engine.begin([(point, "xla") for point in products])
        engine.repeat(2)


def test_a_product_may_run_in_tf32_whenever_it_is_called_and_no_other_may(tmp_path: Path) -> None:
    """XLA asks when a product runs, not when it is compiled."""
    card = Card()
    swept(card, tmp_path, Peaks())
    by_tf32 = {name: {allowed for one, allowed in card.calls if one == name}
               for name in card.counts}  # fmt: skip
    assert by_tf32 == {name: {"tf32" in name} for name in card.counts}
    assert {allowed for _, allowed in card.calls} == {True, False}


def test_the_faster_a_card_the_longer_its_chains(tmp_path: Path) -> None:
    slow, fast = Card(), Card()
    name = "gemm forward f16 m=4096 n=4096 k=4096"
    swept(slow, tmp_path, Peaks(flops_per_s={"f16": 6e13}, bytes_per_s=3e11))
    swept(fast, tmp_path, Peaks(flops_per_s={"f16": 1e15}, bytes_per_s=5e12))
    assert slow.counts[name] == 1
    assert fast.counts[name] > 10
