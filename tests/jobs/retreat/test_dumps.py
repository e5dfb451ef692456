from __future__ import annotations

from pathlib import Path

from tfdyno.jobs.retreat.dumps import without_programs

LOG = Path(__file__).parents[2] / "data" / "xla" / "symbolic_tile.log"


def heard(lines: list[str]) -> list[str]:
    found: list[str] = []
    hear = without_programs(found.append)
    for line in lines:
        hear(line)
    return found


def test_a_program_becomes_one_line_and_all_else_stays() -> None:
    lines = LOG.read_text().splitlines()
    found = heard(lines)
    assert [one for one in found if "%" in one and "HLO %parameter_0" not in one] == []
    assert found[:7] == lines[:7]
    assert found[-1] == lines[-1]
    assert found.count("(XLA printed its program; the log of the run has it)") == 1


def test_what_a_script_prints_is_left_alone() -> None:
    lines = ["}", "%d steps", "ENTRY 1", "see HloModule", "  %loss = 3"]
    assert heard(lines) == lines
