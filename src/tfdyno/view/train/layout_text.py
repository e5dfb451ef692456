"""How the weights of a model lie on its devices: what it saves first, then what no rule matches."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from tfdyno.core.base.codec import from_builtins
from tfdyno.core.base.units import format_bytes
from tfdyno.core.train.layout import (
    WHOLE,
    Layout,
    bytes_per_device,
    device_bytes,
    is_kernel,
    shard_shape,
    unmatched,
    whole_bytes,
)
from tfdyno.view.base.text import WIDTH, paint, table, wrapped
from tfdyno.words.base.amounts import plural
from tfdyno.words.base.language import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfdyno.core.train.layout import Placed

_NUMBER = re.compile(r"_\d+(?=/|$)")
_MOST_NAMED = 4


def read_layout(line: str) -> Layout | None:
    """Return the layout in a line of progress; None where it holds none."""
    if not line.startswith('{"event": "layout"'):
        return None
    return from_builtins(json.loads(line)["layout"], Layout, where="a layout")


def headline(layout: Layout) -> str:
    """Return what each device holds, of how much."""
    own, whole = device_bytes(layout), whole_bytes(layout)
    slots = ""
    if layout.whole_slot_bytes:
        held, all_ = format_bytes(layout.slot_bytes), format_bytes(layout.whole_slot_bytes)
        slots = say(" and {held} of {whole} of the optimizer", held=held, whole=all_)
    return say(
        "Mesh {mesh}, {rules}: each device holds {own} of {whole} of weights{share}{slots}.",
        mesh=layout.mesh,
        rules=say("as tfdyno proposes") if layout.is_proposed else say("by your rules"),
        own=format_bytes(own),
        whole=format_bytes(whole),
        share=say(" ({share:.0%})", share=own / whole) if whole else "",
        slots=slots,
    )


def warnings(layout: Layout) -> list[str]:
    """Return what silently does nothing: kernels without a rule, rules without a weight."""
    said = []
    if left := unmatched(layout):
        named = [f"{one.path} {format_bytes(one.bytes)}" for one in left[:_MOST_NAMED]]
        more = ""
        if len(left) > _MOST_NAMED:
            more = say(" and {count} more", count=len(left) - _MOST_NAMED)
        said.append(
            say(
                "{kernels} match no rule and are whole on every device, {total}: {names}{more}."
                if len(left) > 1
                else "{kernels} matches no rule and is whole on every device, {total}: {names}"
                "{more}.",
                kernels=plural(len(left), "kernel||weights"),
                total=format_bytes(sum(one.bytes for one in left)),
                names=", ".join(named),
                more=more,
            )
        )
    said += [say("The rule '{pattern}' matches nothing.", pattern=one) for one in layout.idle_rules]
    return said


def layout_text(layout: Layout, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return the whole of it.

    Args:
        layout: Of a built model.
        width: Columns of the screen.
        colour: Whether to print colours.
    """
    blocks = [paint(wrapped(headline(layout), width=width), "bold", colour=colour)]
    for sentence in warnings(layout):
        mark = f"{paint('!', 'yellow', colour=colour)} "
        blocks.append(wrapped(sentence, width=width, first=mark, rest="  "))
    blocks.append(
        table(
            (
                say("kernel||weights"),
                "",
                say("shape"),
                say("split"),
                say("on each device"),
                say("bytes"),
                say("of"),
            ),
            _rows(layout),
            align="<><<<>>",
            width=width,
            elastic=0,
            colour=colour,
        )
    )
    return "\n".join(blocks)


def _rows(layout: Layout) -> list[tuple[str, ...]]:
    """Join kernels that differ in their layer's number alone; the rest is the last row."""
    alike: defaultdict[tuple[str, tuple[int, ...], tuple[str, ...]], list[Placed]]
    alike = defaultdict(list)
    for one in layout.weights:
        if is_kernel(one):
            alike[_NUMBER.sub("", one.path), one.shape, one.axes].append(one)
    largest_first = sorted(
        alike.values(), key=lambda own: (-sum(one.bytes for one in own), own[0].path)
    )
    rows = [_row(own, layout) for own in largest_first]
    others = [one for one in layout.weights if not is_kernel(one)]
    if others:
        held = sum(bytes_per_device(one, layout.mesh) for one in others)
        total = sum(one.bytes for one in others)
        name = say("{count} of one dimension", count=len(others))
        rows.append((name, "", "", "", "", format_bytes(held), format_bytes(total)))
    return rows


def _row(alike: Sequence[Placed], layout: Layout) -> tuple[str, ...]:
    one, count = alike[0], len(alike)
    part = shard_shape(one.shape, one.axes, layout.mesh)
    split = ",".join(name or WHOLE for name in one.axes) if any(one.axes) else say("whole")
    return (
        one.path,
        f"×{count}" if count > 1 else "",
        _shape(one.shape),
        split if one.rule else say("no rule"),
        _shape(part) if part != one.shape else "",
        format_bytes(count * bytes_per_device(one, layout.mesh)),
        format_bytes(count * one.bytes),
    )


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))
