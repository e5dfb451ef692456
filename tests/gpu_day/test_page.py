"""gpu_day/page: every step with its reason and numbers, on one page that needs nothing else."""

from __future__ import annotations

import re
from typing import Any

from gpu_day.page import page
from gpu_day.verdict import Check, Row, raw_of

CHECK = Check(what="step, measured", found="10 ms", wanted="8 ms to 12 ms", ok=True)
ROWS = (
    Row(name="estimate", title="An estimate", status="passed", checks=(CHECK,), seconds_s=41.0,
        commands=("python -m tfdyno estimate <x>",), logs=("logs/estimate-1.err",)),
    Row(name="serve", title="A served model", status="failed", why="it ended & said <nothing>"),
    Row(name="tune", title="tune", status="not run", why="time was up"),
)  # fmt: skip
POINTS = [{"at_s": float(second), "load_percent": 50.0 + second} for second in range(5)]


def shown(points: list[dict[str, float]] = POINTS, **about: Any) -> str:
    told = {"card": "NVIDIA H200", "is_cpu": False, "seconds_s": 600.0, "cores": 16, **about}
    return page({"about": told, "note": "", "steps": [raw_of(row) for row in ROWS]}, points)


def test_the_heading_counts_and_every_step_has_its_reason_and_numbers() -> None:
    text = shown()
    assert "<h1>NVIDIA H200: 1 failed, 1 passed, 1 not run</h1>" in text
    assert "it ended &amp; said &lt;nothing&gt;" in text
    for part in ("10 ms", "8 ms to 12 ms", "41 s", "time was up", 'href="logs/estimate-1.err"'):
        assert part in text
    assert "&lt;x&gt;" in text


def test_it_loads_nothing_from_elsewhere_and_has_both_colours_and_a_phone() -> None:
    text = shown()
    assert not re.search(r"(?:src|href)=[\"']?https?:|@import|url\(", text)
    assert "prefers-color-scheme:dark" in text
    assert "width=device-width" in text
    assert "@media(max-width" in text


def test_each_figure_of_a_cpu_is_marked_as_one() -> None:
    text = shown(is_cpu=True, card="CPU")
    assert text.count("found (CPU)") == 2  # in the head of the table, and before it on a phone
    assert "says nothing of a card" in text
    assert "(CPU)" not in shown()


def test_telemetry_is_drawn_where_there_is_some() -> None:
    assert shown().count("<polyline") == 1
    assert "54 at most" in shown()
    assert "Nothing was watched." in shown([])
