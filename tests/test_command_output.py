"""scripts/command_output: what a page shows is what the command prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.rules.cases import CASES

import command_output

ROOT = Path(__file__).parents[1]


def test_a_stale_output_is_replaced_and_the_rest_stays() -> None:
    page = "before\n\n<!-- shows: echo new -->\n```text\nold\n```\n\nafter\n"
    expected = "before\n\n<!-- shows: echo new -->\n```text\n$ echo new\nnew\n```\n\nafter\n"
    assert command_output.refreshed(page) == expected
    assert command_output.refreshed(expected) == expected


def test_a_finding_is_shown_and_wrong_use_is_not() -> None:
    assert "x\n" in command_output.refreshed("<!-- shows: echo x; false -->\n```text\n```\n")
    with pytest.raises(RuntimeError, match="ended with 2"):
        command_output.refreshed("<!-- shows: exit 2 -->\n```text\n```\n")


def test_the_example_logs_are_real_cases() -> None:
    logs = {case["log"].rstrip(): case["env"] for case in CASES}
    files = sorted((ROOT / "examples" / "doctor").glob("*.log"))
    assert len(files) == 5
    for path in files:
        told = path.with_suffix(".json")
        env = logs[path.read_text().rstrip()]
        assert not told.exists() or json.loads(told.read_text()) == env
