"""What XLA wrote about its rematerialisation of ResNet-50, with room and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfdyno.runtime.compile.xla_lines import PassRun, is_note, told

LINES = Path(__file__).parents[2] / "data" / "xla"


def lines(name: str) -> list[str]:
    return (LINES / f"{name}.txt").read_text().splitlines()


def test_a_limit_that_was_met_is_told_with_the_bytes_before_and_after() -> None:
    assert told(lines("remat_met")) == PassRun(
        instruction_count=45,
        before_bytes=5906781084,
        after_bytes=4017080600,
        limit_bytes=round(3.74 * 2**30),
        limit_met=True,
    )


def test_a_limit_that_was_not_met_is_told_to_the_byte() -> None:
    found = told(lines("remat_unmet"))
    assert found == PassRun(
        instruction_count=307,
        before_bytes=5906781084,
        after_bytes=4221728611,
        limit_bytes=2956378315,
        limit_met=False,
    )


def test_the_warning_alone_is_enough() -> None:
    warnings = [line for line in lines("remat_unmet") if line.startswith("W")]
    found = told(warnings)
    assert found
    assert (found.before_bytes, found.after_bytes) == (5906781084, 4221728611)
    assert (found.limit_met, found.instruction_count) == (False, 0)


def test_a_step_that_has_room_recomputes_nothing() -> None:
    assert told(lines("remat_none")) is None
    assert told([]) is None


def test_the_last_run_of_the_pass_counts() -> None:
    again = [*lines("remat_unmet"), *lines("remat_met")]
    assert told(again) == told(lines("remat_met"))


@pytest.mark.parametrize(("start", "note"), [("I1122 02:23:59", True), ("W1122 02:24:00", False)])
def test_notes_are_kept_apart_from_warnings(start: str, note: bool) -> None:
    assert is_note(f"{start}.806491 1 hlo_rematerialization.cc:3054] words") == note
