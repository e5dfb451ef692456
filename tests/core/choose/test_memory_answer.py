from __future__ import annotations

from dataclasses import replace

from tests.memories import FINDING, NAMES

from tfdyno.core.choose.memory_answer import MemoryAnswer


def test_only_a_finding_that_is_an_error_makes_the_exit_code_one() -> None:
    warning = replace(FINDING, severity="warning")
    assert MemoryAnswer(names=NAMES).exit_code == 0
    assert MemoryAnswer(names=NAMES, findings=(warning,)).exit_code == 0
    assert MemoryAnswer(names=NAMES, findings=(warning, FINDING)).exit_code == 1
