"""The answer on a terminal: needs, measured times, a line for each device, and why not."""

from __future__ import annotations

from dataclasses import replace

from tests.view.edge_reports import FITS, LACKS, REPORT

from tfdyno.view.deploy.edge_text import edge_text


def text(width: int = 80) -> str:
    return edge_text(REPORT, width=width, colour=False)


def test_every_part_is_told() -> None:
    found = text().splitlines()
    assert found[0] == "m.tflite"
    assert "  memory      10.6 KiB of values at once, at MUL of norm; LiteRT lays out" in found[2]
    assert "100% in 8 bits" in found[3]
    assert "  input       token_ids: int32 [any, 16]" in found
    assert "  Still in floats: SIN of wave." in found
    assert "  1 thread   4.2 ms  (4 ms to 5 ms; 9 rounds, 1,234 calls)" in found
    assert any(line.startswith("pi      yes ") and "2 µs to 210 µs" in line for line in found)
    assert any(line.startswith("chip    no ") and "real time to slow" in line for line in found)
    assert "chip: Micro has no GELU." in found


def test_a_single_device_is_told_all() -> None:
    found = edge_text(replace(REPORT, verdicts=(FITS,)), width=80, colour=False)
    assert "pi: Nothing to do. Bound by starting operators; runs by LiteRT." in found


def test_what_is_unverified_is_counted_and_marked() -> None:
    assert "unverified" not in text()
    doubted = replace(FITS, unverified="clock of the memory")
    found = edge_text(replace(REPORT, verdicts=(doubted, LACKS)), width=120, colour=False)
    assert "Figures of 1 device are unverified (*)" in found
    assert "\npi *    yes " in found
    assert "\nchip    no " in found
    alone = edge_text(replace(REPORT, verdicts=(doubted,)), width=120, colour=False)
    assert "Unverified: clock of the memory." in alone


def test_nothing_measured_is_said() -> None:
    assert "Nothing was measured here." in edge_text(
        replace(REPORT, timings=()), width=80, colour=False
    )


def test_colour_changes_no_word() -> None:
    coloured = edge_text(REPORT, width=80, colour=True)
    assert "\x1b[32myes \x1b[0m" in coloured
