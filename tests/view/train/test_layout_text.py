"""view/layout_text: what is saved stands first, then what a wrong rule leaves whole."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from tfdyno.core.train.device_mesh import DeviceMesh
from tfdyno.core.train.layout import Layout, Placed
from tfdyno.view.train.layout_text import headline, layout_text, read_layout, warnings

MESH = DeviceMesh(names=("data", "model"), sizes=(2, 2))
UP = [
    Placed(path=f"dense{n}/kernel", shape=(32, 128), width_bytes=4, axes=("", "model"),
           rule=r"dense(_\d+)?/kernel")
    for n in ("", "_1")
]  # fmt: skip
HEAD = Placed(path="head/kernel", shape=(32, 64), width_bytes=4)
BIAS = Placed(path="head/bias", shape=(64,), width_bytes=4)
LAYOUT = Layout(
    mesh=MESH, weights=(*UP, HEAD, BIAS), idle_rules=(".*/kernl",), slot_bytes=1024,
    whole_slot_bytes=2048,
)  # fmt: skip


def test_the_first_line_is_what_each_device_holds() -> None:
    assert headline(LAYOUT) == (
        "Mesh data=2,model=2, by your rules: each device holds 24.2 KiB of 40.2 KiB of weights "
        "(60%) and 1 KiB of 2 KiB of the optimizer."
    )
    assert "as tfdyno proposes" in headline(replace(LAYOUT, is_proposed=True))


def test_what_does_nothing_is_told_with_its_bytes() -> None:
    left, idle = warnings(LAYOUT)
    assert left == (
        "1 kernel matches no rule and is whole on every device, 8 KiB: head/kernel 8 KiB."
    )
    assert idle == "The rule '.*/kernl' matches nothing."
    assert warnings(replace(LAYOUT, weights=tuple(UP), idle_rules=())) == []


def test_layers_that_lie_alike_are_one_row() -> None:
    lines = layout_text(LAYOUT, width=100).splitlines()
    (row,) = [line.split() for line in lines if line.startswith("dense/kernel")]
    assert row == ["dense/kernel", "×2", "32×128", "-,model", "32×64", "16", "KiB", "32", "KiB"]
    assert any("head/kernel" in line and "no rule" in line for line in lines)
    assert lines[-1].startswith("1 of one dimension")


def test_a_layout_comes_through_a_line_of_progress() -> None:
    line = json.dumps({"event": "layout", "layout": asdict(LAYOUT)})
    assert read_layout(line) == LAYOUT
    assert read_layout('{"event": "epoch"}') is None
    assert read_layout("building train.py") is None
