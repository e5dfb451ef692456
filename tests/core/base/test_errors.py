from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tfdyno.core.base.errors import (
    CompilerError,
    OSErrorsAs,
    RetreatAsked,
    TfdynoError,
    ToolError,
    UsageError,
    failure_of,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("what", "why", "remedy", "sentence"),
    [
        ("it failed", "", "", "it failed."),
        ("it failed.", "no disk.", "free some.", "it failed: no disk; free some."),
        ("there is no x", "", "did you mean y?", "there is no x; did you mean y?"),
        ("no file", "is this one?", "", "no file: is this one?"),
    ],
)
def test_a_message_is_one_sentence_and_a_question_keeps_its_mark(
    what: str, why: str, remedy: str, sentence: str
) -> None:
    assert str(UsageError(what, why=why, remedy=remedy)) == sentence


def test_a_reason_that_is_found_later_stands_in_the_same_sentence() -> None:
    error = UsageError("it failed", why="no memory", remedy="free some")
    error.add_note("kept")
    error.add_reason("meanwhile another held 2 GiB.")
    assert str(error) == "it failed: no memory; meanwhile another held 2 GiB; free some."
    assert error.__notes__ == ["kept"]


@pytest.mark.parametrize("kind", [UsageError, ToolError, CompilerError, RetreatAsked])
def test_an_error_keeps_its_kind_between_processes(kind: type[TfdynoError]) -> None:
    told = failure_of(kind("it failed", why="why", remedy="do")).error
    assert type(told) is kind
    assert str(told) == "it failed: why; do."


def test_what_the_system_refuses_in_a_block_is_told_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "none"
    with (
        pytest.raises(ToolError) as caught,
        OSErrorsAs(ToolError, f"cannot read {path}", remedy="make it"),
    ):
        path.read_bytes()
    assert str(caught.value) == f"cannot read {path}: No such file or directory; make it."
    with (
        pytest.raises(ToolError, match=r"^it is odd: no number\.$"),
        OSErrorsAs(ToolError, "it is odd"),
    ):
        raise OSError("no number")
    with pytest.raises(ValueError, match="mine"), OSErrorsAs(ToolError, "cannot"):
        raise ValueError("mine")
