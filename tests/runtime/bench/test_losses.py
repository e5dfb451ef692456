"""The child that tells losses of a loop: what it refuses, and that it stops where asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.runtime.bench.test_loop_losses import BY, FUNCTION
from tests.runtime.benches import asked
from tests.runtime.forks import handled

from tfdyno.core.messages.bench import LOSSES, TellLosses

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tf


def told(folder: Path, code: str) -> dict[str, Any]:
    return handled(LOSSES, TellLosses(**asked(folder, code), steps=3), folder)


def test_so_many_losses_are_told_as_were_asked_for(tmp_path: Path) -> None:
    # outputs of 0 against targets of 1, 2, 3
    found = told(tmp_path, FUNCTION + BY)
    assert found["answer"] == [1.0, 4.0, 9.0]


def test_code_that_fails_is_told_with_its_line(tmp_path: Path) -> None:
    code = FUNCTION + "raise ValueError('no data today')\n"
    found = told(tmp_path, code)
    assert "no data today" in found["refused"]
